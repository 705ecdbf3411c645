"""Claude Code with models that verify their reasoning, by an account of today: nothing of it is refused or dropped.

The agent is found as in test_agents.py. In the middle the proxy is started again, with what its file has.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from proxied import Answer, Proxy, Request, proxying, recording
from test_agents import _claude, _environment

from played import CORPUS_SIZES, LAST, PlayedModel
from provider_rules import NEW, PROVIDERS
from recede.proxy import RequestMasker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]

TURNS, SECONDS = 250, 1_200
OPTIONS: dict[str, Any] = {"keep": 4, "boundary": 8}  # so that masks move often


class Judged(PlayedModel):
    """A model that keeps what the provider dropped of requests, and lets something happen before one of them."""

    def __init__(self, turns: int) -> None:
        super().__init__(turns, CORPUS_SIZES, account=NEW)
        self.dropped: list[Any] = []
        self.thoughts: list[int] = []  # in each request
        self.restart: Any = None

    def __call__(self, request: Request) -> Answer:
        if len(self.requests) == self.turns // 2 and self.restart is not None:
            restart, self.restart = self.restart, None
            restart()
        return super().__call__(request)

    def _fault(self, path: str, body: dict[str, Any]) -> str | None:
        taken = PROVIDERS["anthropic"].take(body, self.account)
        self.dropped += [one for one in taken.dropped if one["reason"] != "model_binding_mismatch"]
        self.thoughts.append(json.dumps(body["messages"]).count('"signature"'))
        return taken.fault


@pytest.mark.parametrize("name", ["claude-opus-5-5", "claude-fable-5-2"])
def test_claude_code_with_a_model_that_verifies_is_never_refused(name: str, tmp_path: Path) -> None:
    model, state = Judged(TURNS), tmp_path / "state"
    with recording(model) as upstream, proxying(upstream.url, RequestMasker(state=state, **OPTIONS)) as proxy:
        model.restart = lambda: _start_again(proxy, state)
        done = subprocess.run(
            _claude(tmp_path, name),
            env=_environment(tmp_path, proxy.url),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert model.restart is None and LAST in done.stdout, (done.stdout[-500:], done.stderr[-500:])
    assert len(model.requests) > TURNS and not model.refused and not model.dropped
    assert max(model.thoughts) > 10 and sum(map(_is_masked, model.bodies)) > TURNS / 2


def _start_again(proxy: Proxy, state: Path) -> None:
    proxy._masker.close()
    proxy._masker = RequestMasker(state=state, **OPTIONS)


def _is_masked(body: dict[str, Any]) -> bool:
    return "old tool output cleared" in json.dumps(body["messages"])
