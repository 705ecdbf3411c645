"""Outline -> pairs of calls and results, orphans, findings, and repairs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from oracle.outline import Call, Half, Message, Outline, Result
from oracle.shape import Shape
from oracle.shape.responses import takes
from oracle.turns import Turns
from recede._report import Finding
from recede.reduction._exchange import Repair

if TYPE_CHECKING:
    from recede._report import FindingKind

Place = tuple[int, int]
"""A message, and a block of it."""


class Pairs:
    """Which result answers which call: the nearest earlier call of its id, or in some shapes an open one.

    Attributes:
        call_of: for each result its call, or None.
        is_answered: for each call, whether it has a result.
        is_open: for each call, whether it has none, but its answer may still come.
        orphans: messages with a call without result (unless it is open) or a result without call.
        links: of each call that the provider runs, the messages with its halves.
        alone: halves without the other one.
    """

    def __init__(self, outline: Outline, turns: Turns) -> None:
        self.call_of: list[Call | None] = [None] * len(outline.results)
        self.is_answered = [False] * len(outline.calls)
        nearest: dict[str, Call] = {}
        again: dict[int, Call] = {}  # for a result the call that it answers again if it finds no other
        plain_before = _last_plain(outline.messages)
        for message in outline.messages:
            for exchange in message.exchanges:
                if isinstance(exchange, Result):
                    if (named := nearest.get(exchange.id) if exchange.id is not None else None) is not None:
                        again[exchange.index] = named
                        self._pair(exchange, self._of_shared(outline, turns, named, exchange))
                elif exchange.id is not None:
                    nearest[exchange.id] = exchange
            for result in sorted(message.results, key=lambda result: result.id is None):
                if self.call_of[result.index] is None:
                    first = _first_open(turns, plain_before, message.index)
                    open_calls = [call for one in outline.messages[first : message.index] for call in one.calls]
                    fitting = [call for call in open_calls if self._fit(call, result)]
                    fitting.sort(key=lambda call: (call.id is not None, *_place(call)))
                    self._pair(result, next(iter(fitting), again.get(result.index)))
        tail = _tail([message.results for message in outline.messages])
        self.is_open = [
            not self.is_answered[call.index] and turns.ends[call.message] + 1 >= tail for call in outline.calls
        ]
        self.first_result: dict[int, Result] = {}
        for result, call in zip(outline.results, self.call_of, strict=True):
            if call is not None:
                self.first_result.setdefault(call.index, result)
        self._link(outline)
        self.orphans = [message.index for message in outline.messages if any(map(self.is_orphan, message.exchanges))]

    def _link(self, outline: Outline) -> None:
        """Link the halves of calls that the provider runs: a result to the nearest earlier use of its id."""
        self.links: list[tuple[int, int]] = []
        earlier: dict[str, Half] = {}
        alone: dict[int, Half] = {}
        for half in (half for message in outline.messages for half in message.halves):
            other = earlier.get(half.id) if half.is_result else None
            if other is None:
                alone[id(half)] = half
            else:
                alone.pop(id(other), None)
                self.links.append((other.message, half.message))
            if not half.is_result:
                earlier[half.id] = half
        self.alone = list(alone.values())

    def linked_before(self, message: int) -> list[int]:
        """The earlier messages that are tied to this one."""
        return [one for one, other in self.links if other == message > one]

    def _pair(self, result: Result, call: Call | None) -> None:
        if call is not None:
            self.call_of[result.index] = call
            self.is_answered[call.index] = True

    def _fit(self, call: Call, result: Result) -> bool:
        """Whether an open call and a result pair by their place."""
        is_free = call.shape.name == result.shape.name and not self.is_answered[call.index]
        is_of_tool = not call.shape.names_results if result.name is None else call.name == result.name
        return is_free and is_of_tool and (call.id is None or result.id is None)

    def _of_shared(self, outline: Outline, turns: Turns, named: Call, result: Result) -> Call | None:
        """The call of a result among those of a turn that share its id; None if all are answered."""
        sharing = [named]
        for call in reversed(outline.calls[: named.index]):
            if turns.ends[call.message] != turns.ends[named.message]:
                break
            sharing += [call] if call.id == named.id else []
        if len(sharing) == 1:
            return named
        unanswered = sorted((call for call in sharing if not self.is_answered[call.index]), key=_place)
        of_tool = [call for call in unanswered if call.name == result.name is not None]
        return next(iter(of_tool + unanswered), None)

    def is_orphan(self, exchange: Call | Result) -> bool:
        if isinstance(exchange, Call):
            return not self.is_answered[exchange.index] and not self.is_open[exchange.index]
        return self.call_of[exchange.index] is None


def _place(call: Call) -> tuple[int, int]:
    """Calls answered by their place are so in this order: the last message first, unless each message is one call."""
    return 0 if call.shape.is_one_call else -call.message, call.index


def _first_open(turns: Turns, plain_before: list[int], message: int) -> int:
    """The first message whose calls are open before this one."""
    last_plain = plain_before[message - 1] if message else -1
    first = message
    while first > 0 and turns.ends[first - 1] >= last_plain:
        first -= 1
    return first


def _can_be_answered(call: Call, asked: Message) -> bool:
    """Whether an answer can be made up. A screenshot cannot."""
    return _is_known(call) and asked.type != "computer_call"


def _is_known(exchange: Call | Result) -> bool:
    """Whether it has an id, or a name in its place."""
    return exchange.id is not None or (exchange.name is not None and exchange.shape.takes_names_for_ids)


def _lacks_id(pairs: Pairs, result: Result) -> bool:
    """Whether a result has no id, nor a name in its place, though its call has one."""
    call = pairs.call_of[result.index]
    return result.id is None and not result.takes_name and call is not None and call.id is not None


def _pairs_without_ids(pairs: Pairs, exchange: Call | Result) -> bool:
    """Whether neither a call nor its first result has an id, where that is no fault."""
    call = exchange if isinstance(exchange, Call) else pairs.call_of[exchange.index]
    first = None if call is None else pairs.first_result.get(call.index)
    return first is not None and call.id is None is first.id and exchange.shape.takes_names_for_ids


def _tail(answers: Sequence[object]) -> int:
    """The first of the trailing messages that answer."""
    return 1 + max((index for index, answer in enumerate(answers) if not answer), default=-1)


def _last_plain(messages: Sequence[Message]) -> list[int]:
    """For each message the last one, up to itself, without results; or -1."""
    return list(accumulate((-1 if message.results else message.index for message in messages), max))


def _next_plain(answers: Sequence[bool]) -> list[int]:
    """For each message, and the end, the first one from there on that does not answer."""
    end = len(answers)
    places = (end if answers[index] else index for index in reversed(range(end)))
    return list(accumulate(places, min, initial=end))[::-1]


def findings(outline: Outline) -> list[Finding]:
    """The faults of the pairs, in document order, and open calls, which are none."""
    turns = Turns(outline)
    pairs = Pairs(outline, turns)
    plain_before = _last_plain(outline.messages)
    split = _split(outline, pairs, turns, plain_before)
    alone = _alone(outline)
    found: list[Finding] = []
    refused = _refused(outline, pairs)
    unanswered: Counter[str] = Counter()  # calls of an id that have no result so far
    answered: set[int] = set()  # calls that have a result so far
    for message in outline.messages:
        if message.index in alone:
            found.append(Finding("reasoning_alone", message.index, None))
        of_halves = refused[message.index]
        for exchange in message.exchanges:
            kinds: list[FindingKind] = []
            while of_halves and of_halves[0][0] < exchange.block:
                found.append(of_halves.pop(0)[1])
            is_known = _is_known(exchange) or _pairs_without_ids(pairs, exchange)
            if not is_known or (isinstance(exchange, Result) and _lacks_id(pairs, exchange)):
                kinds.append("missing_id")
            if isinstance(exchange, Call):
                if exchange.id is not None:
                    if unanswered[exchange.id]:
                        kinds.append("id_open_twice")
                    elif exchange.id in unanswered and exchange.shape.wants_unique_ids:
                        kinds.append("id_used_again")
                    unanswered[exchange.id] += 1
                if not pairs.is_answered[exchange.index]:
                    kinds.append("open_call" if pairs.is_open[exchange.index] else "call_without_result")
            else:
                call = pairs.call_of[exchange.index]
                if call is None:
                    kinds.append("result_without_call")
                else:
                    if call.index in answered:
                        kinds.append("second_result")
                    elif call.id is not None:
                        unanswered[call.id] -= 1
                    answered.add(call.index)
                    asked = outline.messages[call.message]
                    both = asked.type or "", message.type or ""
                    if "responses" in (call.shape.name, exchange.shape.name) and not takes(*both):
                        kinds.append("other_kind")
                    end = turns.ends[call.message]
                    if not (message.index > end and plain_before[message.index] <= end):
                        kinds.append("not_adjacent")
                    elif exchange.index in split:
                        kinds.append("split_results")
                if not exchange.is_leading:
                    kinds.append("not_leading")
            found += [Finding(kind, message.index, exchange.id) for kind in kinds]
        found += [finding for _, finding in of_halves]
    return found


def _refused(outline: Outline, pairs: Pairs) -> dict[int, list[tuple[int, Finding]]]:
    """By message the blocks of tools of the provider that have no other half, in order; a use may be open."""
    turns, tail = Turns(outline), _tail([message.results for message in outline.messages])
    found = defaultdict[int, list[tuple[int, Finding]]](list)
    for half in pairs.alone:
        of_use: FindingKind = "open_call" if turns.ends[half.message] + 1 >= tail else "call_without_result"
        kind = "result_without_call" if half.is_result else of_use
        found[half.message].append((half.block, Finding(kind, half.message, half.id)))
    return found


def _alone(outline: Outline) -> set[int]:
    """Reasoning after which its answer ends. What is not understood may belong to that."""
    alone, ends = set(), True
    for message in reversed(outline.messages):
        if message.is_reasoning:
            alone |= {message.index} if ends else set()
        else:
            is_said = message.is_system or message.role == "user" or bool(message.results)
            ends = is_said and not message.is_agent_made
    return alone


def _split(
    outline: Outline, pairs: Pairs, turns: Turns, plain_before: Sequence[int], gone: Collection[int] = ()
) -> dict[int, int]:
    """The results that must be in an earlier message, the first with results of their turn, and that one."""
    split: dict[int, int] = {}
    first: dict[tuple[int, Shape], int] = {}
    last_mixed = -1
    for message in outline.messages:
        for result in message.results if not message.calls else ():
            call, shape = pairs.call_of[result.index], result.shape
            if call is None or call.shape is not shape or not shape.results_are_blocks or result.index in gone:
                continue
            if pairs.first_result[call.index] is not result:
                continue
            end = turns.ends[call.message]
            if message.index > end and plain_before[message.index] <= end:
                target = first.setdefault((end, shape), message.index)
                if target < message.index and (shape.wants_one_message or last_mixed >= target):
                    split[result.index] = target
        if message.blocks > len(message.results):
            last_mixed = message.index
    return split


class _Step(NamedTuple):
    """A repair, and the calls that it answers."""

    kind: str
    message: int
    block: int | None
    calls: list[Place]
    source: Place | None = None

    def repair(self, messages: list[Any], outline: Outline) -> Repair:
        shape: Any = outline.messages[self.calls[0][0] if self.calls else self.message].shape
        calls = [(messages[message], block) for message, block in self.calls]
        answer = b""
        if self.source is not None:
            pass  # it is in the history
        elif self.kind == "add_block":
            answer = json.dumps(shape.answer_block(*calls[0])).encode()
        elif self.kind == "add_message":
            answer = json.dumps(shape.answer(calls)).encode()
        return Repair(
            self.kind, self.message, self.block, None if self.block is None else shape.field, answer, self.source
        )  # type: ignore[arg-type]


def repairs(messages: list[Any], outline: Outline) -> list[Repair]:
    """The repairs, by place in the input.

    Orphan results, and reasoning that is alone, are dropped; with them a message that holds nothing else. Of several
    results of a call the last one takes the place of the first.
    Results move before other blocks, and to the first message of their turn. A result is added there, or in a new one.
    """
    turns = Turns(outline)
    pairs = Pairs(outline, turns)
    found: list[_Step] = []
    alone = _alone(outline)
    lasts = _lasts(outline, pairs)
    gone = {result.index for result in outline.results if _goes(result, pairs)}
    moved: set[int] = set()
    refused = {
        index: [block for block, finding in halves if finding.kind != "open_call"]
        for index, halves in _refused(outline, pairs).items()
    }

    def leaves(message: Message) -> int:
        results = sum(result.index in gone or result.index in moved for result in message.results)
        return results + len(refused.get(message.index, ()))

    def is_whole(message: Message) -> bool:
        is_result = message.shape is None or not message.shape.results_are_blocks
        return message.index in alone or 0 < leaves(message) == (leaves(message) if is_result else message.blocks)

    def answering() -> list[bool]:
        """Messages that answer; a dropped message does not interrupt answers."""
        return [is_whole(one) or any(r.index not in gone for r in one.results) for one in outline.messages]

    plain_before = list(accumulate((-1 if is_one else place for place, is_one in enumerate(answering())), max))
    split = _split(outline, pairs, turns, plain_before, gone)
    for message in outline.messages:
        for result in message.results if not message.calls else ():
            if result.index in gone:
                continue
            last = lasts.get(result.index, result)
            if not result.shape.results_are_blocks:
                if last is not result:
                    found.append(_Step("add_message", message.index, None, [], (last.message, 0)))
                    found.append(_Step("drop_message", message.index, None, []))
                continue
            target = outline.messages[split.get(result.index, message.index)]
            moves = target is not message or _is_led(result, message)
            if moves or last is not result:
                place = _place_of_answers(target) if moves else result.block
                found.append(_Step("add_block", target.index, place, [], (last.message, last.block)))
                moved.add(result.index)
                if target is not message:
                    gone.add(result.index)
    for message in outline.messages:
        if is_whole(message):
            found.append(_Step("drop_message", message.index, None, []))
        else:
            left = [one for one in message.results if one.index in gone or one.index in moved]
            blocks = [*(result.block for result in left), *refused.get(message.index, ())]
            found += [_Step("drop_block", message.index, block, []) for block in blocks]
    answers = answering()
    tail = _tail(answers)
    next_plain = _next_plain(answers)
    called_again = _called_again(outline, turns)
    siblings = _messages_that_answer(outline, turns, pairs, next_plain, gone)
    new_messages: dict[tuple[int, Shape], list[Place]] = {}  # end of a turn -> the calls that a new message will answer
    for call in outline.calls:
        end = turns.ends[call.message]
        sibling = siblings.get((end, call.shape.name))
        place = sibling.index if sibling else next_plain[end + 1]
        is_open = end + 1 >= tail
        can_be_answered = _can_be_answered(call, outline.messages[call.message]) and called_again[call.index] >= place
        if pairs.is_answered[call.index] or is_open or not can_be_answered:
            continue
        here = call.message, call.block
        if sibling:
            found.append(_Step("add_block", place, _place_of_answers(sibling), [here]))
        elif (end, call.shape) in new_messages:
            new_messages[end, call.shape].append(here)
        else:
            calls = [here]
            if call.shape.results_are_blocks:
                new_messages[end, call.shape] = calls
            found.append(_Step("add_message", place, None, calls))
    found.sort(key=lambda one: (one.message, -1 if one.block is None else one.block, one.kind[:4] == "drop"))
    ids = [_id_repair(messages, pairs, result) for result in outline.results if _lacks_id(pairs, result)]
    return ids + [step.repair(messages, outline) for step in found]


def _id_repair(messages: list[Any], pairs: Pairs, result: Result) -> Repair:
    """The step that gives a result the id of its call."""
    call, shape = pairs.call_of[result.index], result.shape
    assert call is not None
    field, block = (shape.field, result.block) if shape.results_are_blocks else (None, None)
    path = shape.path_of_id(messages[result.message])
    answer = json.dumps(call.id, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Repair("set_id", result.message, block, field, answer, path=path)


def _lasts(outline: Outline, pairs: Pairs) -> dict[int, Result]:
    """Of the first results of calls that have later ones of their shape, the last one."""
    lasts: dict[int, Result] = {}
    for result in outline.results:
        call = pairs.call_of[result.index]
        first = result if call is None else pairs.first_result[call.index]
        if first is not result and type(first.shape) is type(result.shape):
            lasts[first.index] = result
    return lasts


def _goes(result: Result, pairs: Pairs) -> bool:
    """Whether it is dropped: it has no call, or its call has another. What has no id may be of any call, and stays."""
    call = pairs.call_of[result.index]
    if call is None:
        return result.id is not None or (result.name is not None and result.shape.names_results)
    return pairs.first_result[call.index] is not result


def _is_led(result: Result, message: Message) -> bool:
    """Whether it must come before another block that it follows."""
    return result.shape.wants_results_first and result.block >= message.leading_results


def _place_of_answers(message: Message) -> int:
    """Where another answer goes. By their place answers pair in order, so that is after all others."""
    is_first = message.results[0].shape.wants_results_first
    return message.leading_results if is_first else message.results[-1].block + 1


def _called_again(outline: Outline, turns: Turns) -> list[float]:
    """For each call the message of the next call with its id in a later turn, or infinity."""
    places: list[float] = [float("inf")] * len(outline.calls)
    later: dict[str, Call] = {}
    for call in reversed(outline.calls):
        if call.id is not None:
            again = later.get(call.id)
            if again is not None:
                is_of_turn = turns.ends[again.message] == turns.ends[call.message]
                places[call.index] = places[again.index] if is_of_turn else again.message
            later[call.id] = call
    return places


def _messages_that_answer(
    outline: Outline, turns: Turns, pairs: Pairs, next_plain: list[int], gone: Collection[int]
) -> dict[tuple[int, str], Message]:
    """For the end of a turn and the name of a shape, the first message after it that has its results as blocks."""
    answers: dict[tuple[int, str], Message] = {}
    for result in outline.results:
        call, shape = pairs.call_of[result.index], result.shape
        if call is not None and shape.results_are_blocks and result.index not in gone:
            end = turns.ends[call.message]
            if end < result.message < next_plain[end + 1]:
                answers.setdefault((end, shape.name), outline.messages[result.message])
    return answers
