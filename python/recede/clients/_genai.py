"""`wrap` for google-genai: its `interactions` send views; what else would send messages is refused."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from recede._bodies import CONTINUED, KEPT_INTERACTION, kept_words
from recede._encodable import warn_once
from recede._objects import changed, is_object, plain, read
from recede._off import is_off
from recede.clients._requests import ModelProvider
from recede.masker import Masker

_log = logging.getLogger("recede")

_WORDS = (
    "which recede.wrap does not mask; it masks interactions.create: send it with the client that was wrapped, or mask "
    "its contents with a recede.masker.Masker first"
)
# What sends contents, by the resources of a client; of a resource without names everything.
_REFUSED = {
    "models": ("generate_content", "generate_content_stream"),
    "batches": ("create",),
    "caches": ("create",),
    "chats": (),
    "live": (),
}


def is_genai(client: Any) -> bool:
    """Whether a client is one of google-genai, with interactions."""
    is_of_package = any(base.__module__.startswith("google.genai") for base in type(client).__mro__)
    return is_of_package and hasattr(type(client), "interactions")


def wrapped_genai(client: Any, masker: Masker[Any], providers: ModelProvider) -> Any:
    """A copy of the client whose interactions send views; it shares connections, and does not close them."""
    wrapped = copy.copy(client)
    vars(wrapped).pop("_recede_resources", None)
    wrapped.__class__ = _class_of(type(client), client, masker, providers)
    return wrapped


def _class_of(kind: Any, client: Any, masker: Masker[Any], providers: ModelProvider) -> Any:
    """The class of a client whose resources are wrapped when they are first asked for."""

    def resource(name: str) -> property:
        def of(self: Any) -> Any:
            found = getattr(client, name)  # the original one lives as long as its copy, and closes what they share
            if is_off():
                return found
            made = vars(self).setdefault("_recede_resources", {})
            if name not in made:
                make = {"aio": wrapped_genai, "interactions": _masking}.get(name)
                made[name] = _Refusing(found, name) if make is None else make(found, masker, providers)
                vars(made[name])["_recede_owner"] = client  # which closes its connections once nobody has it
            return made[name]

        return property(of)

    names = [name for name in ("aio", "interactions", *_REFUSED) if hasattr(kind, name)]
    fields: dict[str, Any] = {name: resource(name) for name in names}
    fields |= {"_recede_masker": masker, "__del__": lambda self: None}
    fields |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), fields)


class _Refusing:
    """A resource without its methods that send contents."""

    def __init__(self, resource: Any, name: str) -> None:
        self._resource, self._name = resource, name

    def __getattr__(self, name: str) -> Any:
        refused = _REFUSED[self._name]
        if name in refused or not refused:
            raise TypeError(f"{self._name}.{name} sends contents, {_WORDS}")
        return getattr(self._resource, name)


class _Asked(NamedTuple):
    """An interaction whose steps are to be masked: its arguments, its fields, its steps."""

    arguments: dict[str, Any]
    body: Any
    fields: dict[str, Any]
    history: list[Any]

    def around(self, providers: ModelProvider) -> dict[str, Any]:
        """The options of its view."""
        return {"provider": providers.of(self.fields.get("model")), "request": self.fields}

    def sent(self, view: list[Any]) -> dict[str, Any]:
        """The arguments with the view in place of the steps."""
        request = self.arguments.get("request")
        if request is None:
            return {**self.arguments, "input": view}
        body = changed(self.body, input=view)
        return {**self.arguments, "request": body if body is request else changed(request, body=body)}


def _asked(arguments: dict[str, Any]) -> _Asked | None:
    """What is to be masked of an interaction; None if nothing is."""
    request = arguments.get("request")
    body = arguments if request is None else read(request, "body")
    if body is None or is_off():
        return None
    given = body if isinstance(body, dict) else {name: read(body, name) for name in _names_of(body)}
    more = arguments.get("extra_body") or {}
    if "input" in more:
        raise TypeError(f"extra_body has an input, {_WORDS}")
    fields = {**given, **more}
    history = fields.get("input")
    kept = KEPT_INTERACTION if history is not None else (*KEPT_INTERACTION, CONTINUED)
    if (words := kept_words(fields, kept)) is not None:
        warn_once(words)
        return None
    if not isinstance(history, list) or all(read(one, "type") in _CONTENTS for one in history):
        return None  # it is one message of the user, which the client makes of contents
    return _Asked(arguments, body, fields, list(history))


_CONTENTS = frozenset({"text", "image", "audio", "document", "video", None})


def _names_of(body: Any) -> list[str]:
    return list(type(body).model_fields) if is_object(body) else list(vars(body))


def _masking(resource: Any, masker: Masker[Any], providers: ModelProvider) -> Any:
    """A copy of the resource of interactions that sends views."""
    kind: Any = type(resource)

    class Sync(kind):  # type: ignore[misc]
        def create(self, **arguments: Any) -> Any:
            asked = _asked(arguments)
            if asked is None:
                return super().create(**arguments)
            view = masker.view(asked.history, **asked.around(providers))
            return _reported(masker, asked.history, super().create(**asked.sent(view)))

    class Async(kind):  # type: ignore[misc]
        async def create(self, **arguments: Any) -> Any:
            asked = _asked(arguments)
            if asked is None:
                return await super().create(**arguments)
            view = await masker.aview(asked.history, **asked.around(providers))
            return _reported(masker, asked.history, await super().create(**asked.sent(view)))

        def connect(self, *_: Any, **__: Any) -> Any:
            raise TypeError(f"interactions.connect opens a WebSocket, which sends steps, {_WORDS}")

    masking = copy.copy(resource)
    masking.__class__ = Async if inspect.iscoroutinefunction(kind.create) else Sync
    masking.__class__.__name__, masking.__class__.__qualname__ = kind.__name__, kind.__qualname__
    return masking


def _reported(masker: Masker[Any], history: list[Any], answer: Any) -> Any:
    """The answer, whose usage is reported: now, or when the stream has it."""
    generator = getattr(answer, "generator", None)
    if isinstance(generator, Iterator):
        answer.generator = _events(masker, history, generator)
    elif isinstance(generator, AsyncIterator):
        answer.generator = _events_async(masker, history, generator)
    else:
        _report(masker, history, answer)
    return answer


def _events(masker: Masker[Any], history: list[Any], events: Any) -> Any:
    is_reported = False  # where the client went on by itself, the first of several requests has sent the view
    for event in events:
        is_reported = is_reported or _report(masker, history, read(event, "interaction"))
        yield event


async def _events_async(masker: Masker[Any], history: list[Any], events: Any) -> Any:
    is_reported = False
    async for event in events:
        is_reported = is_reported or _report(masker, history, read(event, "interaction"))
        yield event


def _report(masker: Masker[Any], history: list[Any], interaction: Any) -> bool:
    """Report the usage of an interaction, if it has one. An answer is worth more than that, whatever it may hold."""
    try:
        usage = plain(read(interaction, "usage"))
        if isinstance(usage, dict) and usage:
            # Where the client went on by itself, the sums are those of several requests.
            first = usage.get("initial_input_tokens")
            masker.reported(usage if first is None else {**usage, "total_input_tokens": first}, history)
            return True
    except Exception as error:
        _log.warning("what the provider counted is lost: %s", error)
    return False
