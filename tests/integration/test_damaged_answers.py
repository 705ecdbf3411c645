"""Whatever a provider answers with, the conversation can be gone on with: the real clients, damaged answers."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import recede
from damage import Damage
from provider_server import Server, serving, text
from recede.designs import Budget, Conversation

KINDS = [
    f"{way}{name}{streamed}"
    for way in ("", "async ")
    for name in ("anthropic", "openai")
    for streamed in ("", " stream")
]
TURNS_OF_A_CONVERSATION = 20
_RECEDE = str(Path(recede.__file__).parent)
_CLIENTS = tuple(str(Path(client.__file__).parent) for client in (anthropic, openai))


class _Tool:
    """Gives whatever tools give, and fails as they do."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self, name: str, value: Any) -> Any:
        assert isinstance(value, (dict, str)), "an input that is no object was handed to a tool"
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        results = [
            "a line\n" * 40,
            "",
            None,
            "caf\udce9",
            {"é": 1},
            ["a.txt", "b\udcff.txt"],
            [],
            {1, 2},
            object(),
            b"\xff",
            cyclic,
            float("nan"),
            [{"type": "text", "text": "x\ud83d"}],
            [{"type": "text", "text": ""}],
            [{"type": "file"}, 5],
            [{"type": "text"}],
            [{"type": "text", "text": "x", "more": object()}],
        ]
        if self._rng.random() < 0.2:
            raise OSError(2, "no such file", "caf\udce9")
        return self._rng.choice(results)


def _client(kind: str, server: Server) -> Any:
    url = server.url + ("/v1" if "openai" in kind else "")
    names = ("AsyncOpenAI", "OpenAI") if "openai" in kind else ("AsyncAnthropic", "Anthropic")
    make = getattr(openai if "openai" in kind else anthropic, names["async" not in kind])
    return make(api_key="none", base_url=url, max_retries=0, timeout=60)


def _is_documented(error: BaseException) -> bool:
    """Whether it is an error of the client, or one that `Conversation.turn` names."""
    if isinstance(error, ConnectionError):
        return "before the answer was whole" in str(error)
    if isinstance(error, TypeError) and "that is not a response" in str(error):
        return True
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return any(file.startswith(_CLIENTS) for file in files) and not files[-1].startswith(_RECEDE)


async def _play(kind: str, seed: int, turns: int) -> Counter[str]:
    """Turns against damaged answers, each followed by one against a sound answer; counts how the former ended."""
    rng = random.Random(f"{kind} {seed}")
    damage = Damage(rng)
    ended: Counter[str] = Counter()
    is_anthropic = "anthropic" in kind

    async def done(step: Any) -> recede.agent.Answer:
        result = step()
        answer: recede.agent.Answer = await result if inspect.isawaitable(result) else result
        return answer

    with serving() as server:
        client = _client(kind, server)
        create = client.messages.create if is_anthropic else client.chat.completions.create
        for number in range(turns):
            if number % TURNS_OF_A_CONVERSATION == 0:
                heard: list[str] = []
                conversation = Conversation(
                    create,
                    # A damaged pause may have lost the server's tool that it ended with, and new models refuse that.
                    model="claude-haiku-4-5" if is_anthropic else "m",
                    shape="anthropic" if is_anthropic else "openai",
                    tools=[{"name": "run"}],
                    run_tool=_Tool(rng),
                    parallel_tools=False,
                    max_tool_rounds=4,
                    budget=Budget(500),
                    on_text=heard.append if "stream" in kind else None,
                    **({"max_tokens": 500} if is_anthropic else {}),
                )
            turn = conversation.turn_async if "async" in kind else conversation.turn
            resume = conversation.resume_async if "async" in kind else conversation.resume
            server.script = [damage.answer(is_anthropic), *(text("Go on.") for _ in range(9))]
            heard.clear()
            try:
                answer = await done(lambda turn=turn: turn("Go."))
                answer.text.encode()
                ended[str(answer.stop_reason)[:20]] += 1
            except Exception as error:
                assert _is_documented(error), damage.done  # noqa: PT017 - each client has its own
                ended[type(error).__name__] += 1
            for said in heard:
                said.encode()
            assert server.refusals == [], (server.refusals, server.requests[-1]["messages"][-4:], damage.done)
            server.script = [text("Well.")]
            answer = await done(resume if rng.random() < 0.3 else lambda turn=turn: turn("And?"))
            assert answer.text == "Well.", damage.done
            assert server.refusals == [], (server.refusals, server.requests[-1]["messages"][-4:], damage.done)
            assert recede.check_pairs(conversation.history.messages).is_whole, damage.done
        closed = client.close()
        if inspect.isawaitable(closed):
            await closed
    return ended


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_answer_leaves_a_history_that_can_be_sent(kind: str) -> None:
    ended = asyncio.run(_play(kind, seed=16, turns=TURNS_OF_A_CONVERSATION))
    assert ended.total() == TURNS_OF_A_CONVERSATION
    assert len(ended) > 2, "the damage does little"


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_answers_leave_histories_that_can_be_sent(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("RECEDE_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
    turns = int(os.environ.get("RECEDE_FUZZ_CASES") or 1_000)
    with capsys.disabled():
        print(f"\n{kind}: {turns} damaged answers, RECEDE_FUZZ_SEED={seed}")
    ended = asyncio.run(_play(kind, seed, turns))
    with capsys.disabled():
        print(f"{kind}: {dict(ended.most_common())}")
