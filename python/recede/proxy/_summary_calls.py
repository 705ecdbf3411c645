"""The calls of `recede proxy` for summaries: a request to the API of a conversation, and the text of its answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from recede._question import (
    PROMPT,
    SUMMARY_TOKENS,
    UnfinishedError,
    answer_tokens,
    checked_answer,
    effort_field,
    question,
    read_answer,
    room_for_question,
)
from recede._usage import LoggedUsage
from recede.proxy._answers import AnswerReader, decoded
from recede.proxy._keys import has_login
from recede.proxy._masked import MaskedRequest
from recede.proxy._masker import RequestMasker
from recede.proxy._routes import Target
from recede.proxy._summaries import AskedSummary
from recede.proxy._totals import Totals
from recede.reduction._kinds import CHARS_PER_TOKEN

_log = logging.getLogger("recede.proxy")

_SECONDS = 120
_MOST_BYTES = 4 << 20  # of an answer
_MOST_SAID = 20
_SENT_ON = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "anthropic-version")
_GENERATE = re.compile(r"/models/([^/]+):(?:streamG|g)enerateContent$")
_KEY = re.compile(r"(?:^|&)(key=[^&]*)")


class SummaryCall(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


def call_of(path: str, headers: Mapping[str, str], model: str | None, asked: AskedSummary) -> SummaryCall:
    """Make the call for a summary, with the key of a request and nothing else of it.

    The path of the request has its query, and the names of its headers are in small letters; without a `model` the path
    names it.
    """
    place, _, query = path.replace("%3A", ":").partition("?")
    named_in_path = _GENERATE.search(place)
    asks = model or (named_in_path[1] if named_in_path else "")
    most = answer_tokens(asks, SUMMARY_TOKENS)
    text = question(asked.messages, asked.previous, room_for_question(asks, most, PROMPT))
    user = {"role": "user", "content": text}
    named = {} if model is None else {"model": model}
    body: dict[str, Any]
    if named_in_path:
        name = r"\1" if model is None else urllib.parse.quote(model, safe="").replace("\\", "")
        place = _GENERATE.sub(rf"/models/{name}:generateContent", place)
        body = {
            "systemInstruction": {"parts": [{"text": PROMPT}]},
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": {"maxOutputTokens": most, **effort_field(asks, "gemini")},
        }
    elif place.endswith("/interactions"):
        config = {"max_output_tokens": most, **effort_field(asks, "interactions")}
        body = {**named, "system_instruction": PROMPT, "input": text, "generation_config": config, "store": False}
    elif "/responses" in place:
        place = place.removesuffix("/compact")
        body = {**named, "instructions": PROMPT, "input": [user], "max_output_tokens": most, "store": False}
        body |= effort_field(asks, "responses")
    elif place.endswith("/chat/completions"):
        told = [{"role": "system", "content": PROMPT}, user]
        body = {**named, "max_completion_tokens": most, "messages": told, **effort_field(asks, "chat")}
    else:
        body = {**named, "max_tokens": most, "system": PROMPT, "messages": [user], **effort_field(asks, "anthropic")}
    key = _KEY.search(query)
    given = {name: headers[name] for name in _SENT_ON if name in headers}
    given |= {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "recede"}
    return SummaryCall(f"{place}?{key[1]}" if key else place, given, json.dumps(body).encode())


class SummaryCalls:
    """Asks for the summaries that a masker wants, in the background; whatever a provider answers, sessions go on.

    The `model` writes them, or with "" that of the conversation. `proxies` are those of the network, by upstream.
    """

    def __init__(self, masker: RequestMasker, totals: Totals, model: str, proxies: dict[str, str]) -> None:
        self._masker, self._totals, self._model, self._proxies = masker, totals, model, proxies
        self._running: set[asyncio.Task[None]] = set()
        self._said: set[str] = set()

    def ask(
        self,
        session: aiohttp.ClientSession,
        target: Target,
        path: str,
        headers: Mapping[str, str],
        masked: MaskedRequest,
    ) -> None:
        """Ask for the summary that a request wants, if it does."""
        if not self._masker.summarizes or masked.provider is None:
            return
        named = {name.lower(): value for name, value in headers.items()}
        if has_login(named):
            self._say("the login of a subscription belongs to its agent: its conversations get no summaries")
        if masked.asked is not None:
            work = self._give(session, target, path, named, masked, masked.asked)
            task = asyncio.get_running_loop().create_task(work)
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def _give(self, *how: Any) -> None:
        asked, text, unfinished = how[-1], None, False
        try:
            text = await self._text(*how)
        except UnfinishedError as error:
            unfinished = True
            self._say(f"no summary: {error}; requests are masked alone")
        except Exception as error:
            self._say(f"no summary: {type(error).__name__}; requests are masked alone")
        finally:
            self._masker.give(asked, text, unfinished=unfinished)

    async def _text(
        self,
        session: aiohttp.ClientSession,
        target: Target,
        path: str,
        headers: dict[str, str],
        masked: MaskedRequest,
        asked: AskedSummary,
    ) -> str | None:
        """The text of a summary; None if the provider refuses the call."""
        model = self._model or masked.model
        call = await asyncio.to_thread(call_of, path, headers, model, asked)
        async with session.post(
            URL(target.url_of(call.path), encoded=True),
            headers=call.headers,
            data=call.body,
            skip_auto_headers=("Accept",),
            allow_redirects=False,
            proxy=self._proxies.get(target.url),
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
        ) as found:
            if found.status != 200:
                self._say(f"no summary: {target.provider} answered {found.status}; requests are masked alone")
                return None
            data = await found.content.read(_MOST_BYTES + 1)
            while len(data) <= _MOST_BYTES and (more := await found.content.read(_MOST_BYTES)):
                data += more
            data = decoded(data, found.headers.get("Content-Encoding", ""), _MOST_BYTES)
        reader = AnswerReader("application/json", "")
        reader.feed(data)
        reader.end()
        text, finish = read_answer(json.loads(data))
        usage = reader.usage or LoggedUsage(len(call.body) // CHARS_PER_TOKEN, 0, 0, 0, len(text) // CHARS_PER_TOKEN)
        self._totals.summarized(masked, usage, model or reader.model, target.has_price(headers))
        return checked_answer(text, finish, PROMPT)

    def _say(self, what: str) -> None:
        if what not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(what)
            _log.warning("%s", what)
