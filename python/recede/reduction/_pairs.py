"""Pairs of calls and results: what is wrong with them, and their repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from recede import _engine
from recede._bodies import body_key, loads, messages_of
from recede._report import PairReport
from recede.reduction._input import as_bytes, ask_about, ask_engine, copy_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recede.reduction._exchange import Repair
    from recede.reduction._input import Json

    _History = TypeVar("_History", list[Any], dict[str, Any], bytes, str)


def check_pairs(messages: list[Any] | dict[str, Any] | Json) -> PairReport:
    """Find calls and results that do not pair, and pairs that providers refuse.

    Args:
        messages: as for `reduce`, or a whole request; also as JSON, in bytes or a str.

    Returns:
        A `PairReport` with its findings in the order of the messages.

    Raises:
        TranscriptError: the input is no history.

    Example:
        >>> import recede
        >>> report = recede.check_pairs([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        >>> report.findings
        (Finding(kind='result_without_call', message_index=0, id='9'),)
        >>> report.is_whole
        False
    """
    return PairReport(tuple(ask_about("check_pairs", messages)))


def repair_pairs(messages: _History) -> _History:
    """Repair orphans, and most of what providers refuse.

    Calls without result are answered by ``[no result recorded]``, in their shape and at the place that providers
    require. Results without call and reasoning without the item after it are dropped; of several results of a call the
    last one takes the place of the first.
    Results without an id get that of their call, which their place and name tell. Results go before the other blocks of
    their message, and where providers demand it into one message.

    Calls at the end that may still be answered stay open. What has no id, and no name that takes its place, stays;
    so do ``id_open_twice``, ``id_used_again``, ``other_kind`` and ``not_adjacent``.

    Args:
        messages: as for `reduce`, or a whole request; also as JSON, in bytes or a str.

    Returns:
        The repaired history, in the form of the input; the input itself if nothing is repaired. Of JSON every byte
        that is not repaired stays.

    Raises:
        TranscriptError: the input is no history.

    Example:
        >>> import recede
        >>> recede.repair_pairs([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        []
    """
    return _in_json(messages) if isinstance(messages, (bytes, bytearray, memoryview, str)) else _in_dicts(messages)  # type: ignore[no-any-return]


def _in_json(data: Any) -> Any:
    raw, surrogates = as_bytes(data)
    repaired = _engine.engine.repaired(raw, surrogates)
    if repaired is raw:
        return data
    return repaired.decode("utf-8", "surrogatepass") if isinstance(data, str) else repaired


def _in_dicts(history: Any) -> Any:
    copied = copy_of(messages_of(history))
    repairs, forms = ask_engine("repairs", copied)
    if not repairs:
        return history
    key = body_key(history)
    repaired = _repaired(copied, repairs) if forms is None else forms.restored(_repaired(forms.messages, repairs))
    return repaired if key is None else {**history, key: repaired}


def _repaired(messages: list[Any], repairs: list[Repair]) -> list[Any]:
    dropped: set[int | None] = set()
    blocks: dict[int, list[Repair]] = {}
    new: dict[int | None, list[Any]] = {}
    messages = _with_ids(messages, [repair for repair in repairs if repair.kind == "set_id"])
    for repair in repairs:
        if repair.kind == "set_id":
            continue
        if repair.kind == "drop_message":
            dropped.add(repair.message)
        elif repair.kind == "add_message":
            added = loads(repair.answer) if repair.source is None else messages[repair.source[0]]
            new.setdefault(repair.message, []).append(added)
        else:
            blocks.setdefault(repair.message, []).append(repair)
    changed = [_with_blocks(messages, at, blocks[at]) if at in blocks else one for at, one in enumerate(messages)]
    return _mended(changed, dropped, new)


def _with_ids(messages: list[Any], repairs: list[Repair]) -> list[Any]:
    """The messages, with copies of those whose results get the ids of their calls."""
    messages = [*messages] if repairs else messages
    for repair in repairs:
        path = repair.path if repair.field is None else (repair.field, repair.block, *repair.path)
        messages[repair.message] = _with(messages[repair.message], path, loads(repair.answer))
    return messages


def _with(holder: Any, path: Sequence[Any], value: Any) -> Any:
    """A copy of nested dicts and lists with this value at a path."""
    if not path:
        return value
    copied = list(holder) if isinstance(holder, list) else dict(holder)
    copied[path[0]] = _with(holder[path[0]], path[1:], value) if path[1:] else value
    return copied


def _with_blocks(messages: list[Any], index: int, repairs: list[Repair]) -> Any:
    message, field = messages[index], repairs[0].field
    dropped = {repair.block for repair in repairs if repair.kind == "drop_block"}
    added: dict[int | None, list[Any]] = {}
    for repair in repairs:
        if repair.kind == "add_block":
            source = repair.source
            block = loads(repair.answer) if source is None else messages[source[0]][field][source[1]]
            added.setdefault(repair.block, []).append(block)
    return {**message, field: _mended(message[field], dropped, added)}


def _mended(given: list[Any], dropped: set[int | None], added: dict[int | None, list[Any]]) -> list[Any]:
    """The list without what is at the dropped places, and with what is added before others."""
    mended: list[Any] = []
    for place, one in enumerate(given):
        mended += added.get(place, ())
        if place not in dropped:
            mended.append(one)
    return mended + added.get(len(given), [])
