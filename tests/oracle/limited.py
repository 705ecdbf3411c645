"""A history over its limit: the view of a session from which one was taken at each of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from oracle.plan import Costs, Facts, Given
from oracle.policy import NOW, Policy
from oracle.reading import JsonList
from oracle.report import places_of
from oracle.splice import edited, insertion_of
from oracle.walk import walk
from recede._report import BoundaryMove, ToolReport, Unmasked
from recede.reduction._exchange import CountRequest, RecountRequest, SummaryRequest

Answer = Callable[[Any], Any]


class Limited(NamedTuple):
    """The view, by messages of the input, and its figures."""

    kept: list[int]
    rendered: dict[int, bytes]  # messages of the input that are shown otherwise
    summary: tuple[int, bytes] | None  # its place in the view
    figures: dict[str, Any]

    def objects(self, messages: list[Any]) -> list[Any]:
        """The view of a list."""
        view = [json.loads(self.rendered[index]) if index in self.rendered else messages[index] for index in self.kept]
        if self.summary is not None:
            view.insert(self.summary[0], json.loads(self.summary[1]))
        return view

    def spliced(self, data: bytes, messages: JsonList) -> bytes:
        """The view of bytes."""
        edits = [(messages.spans[index], shown) for index, shown in self.rendered.items()]
        return edited(
            data, messages.spans, self.kept, insertion_of(data, messages.spans, self.kept, self.summary), edits
        )


def limited(
    facts: Facts, data: list[bytes], policy: Policy, costs: Costs | None, summary: Given, answer: Answer
) -> Any:
    """Play the session; only its newest request takes the summary that is given."""
    from definitions.messages import Messages  # it is made of this package

    cold = sorted(len(data) if request == NOW else request for request in policy.cold)
    session = Messages(Policy({**vars(policy), "cold": tuple(cold)}), 0, False)
    for end in [*(start for start in facts.runs.starts if start < len(data)), len(data)]:
        for index in range(len(session), end):
            results = [result.index for result in facts.outline.messages[index].results]
            counted = None if costs is None else (costs[0][index], [costs[1][place] for place in results])
            session.append(data[index], True, counted, None if costs is None else [*costs[2].items()])
        given: Given = None
        while not isinstance(asked := session.update_view(given), list):
            if isinstance(asked, CountRequest):
                session.update_view(given, texts=answer(asked))
            elif isinstance(asked, RecountRequest):
                session.update_view(costs=answer(asked))
            elif end == len(data) and policy.ask_summary and summary is None:
                dropped = [index for index in session.asked() if index is not None]
                return asked._replace(dropped=dropped)
            else:
                is_given = end == len(data) and policy.ask_summary
                given = summary if is_given else (asked.built_in, None)
    return _shown(facts, data, session)


def _shown(facts: Facts, data: list[bytes], session: Any) -> Limited:
    view, places = session.elements(), session.places
    kept = [place for place in places if place is not None]
    rendered = {place: one for place, one in zip(places, view, strict=True) if place is not None and one != data[place]}
    summaries = [(at, view[at]) for at, place in enumerate(places) if place is None]
    of_plan = {session.numbers[place] for place, one in session.plan.masked.items() if one.is_masked}
    numbers = {*session.masked, *of_plan}
    image_chars = facts.policy.image_chars
    masked: dict[int, int] = {}  # characters removed, by result
    clipped: dict[int, int] = {}
    cut: list[int] = []
    for index, shown in rendered.items():
        after = walk([json.loads(shown)])
        results = facts.outline.messages[index].results
        for result, now in zip(results, after.results, strict=True):
            removed = facts.observation_chars[result.index] - now.text.chars(image_chars)
            if result.index + 1 in numbers:
                masked[result.index] = removed
            elif removed > 0:
                clipped[result.index] = removed
        if not any(result.index in masked or result.index in clipped for result in results):
            cut.append(facts.raw_chars[index] - after.chars(image_chars))
    tools: dict[str, ToolReport] = {}
    for result in facts.outline.results:
        name, place = facts.tools[result.index] or "", result.index
        count, of_tool, chars, removed = tools.get(name, (0, 0, 0, 0))
        chars += facts.observation_chars[place]
        tools[name] = ToolReport(count + 1, of_tool + (place in masked), chars, removed + masked.get(place, 0))
    summary = summaries[0] if summaries else None
    drops = len(kept) < len(data)
    stage = "summarization" if summary else "fallback" if drops else "masking" if masked else None
    last = max((facts.outline.results[place].message for place in masked), default=None)
    changed = [at for at, place in enumerate(places) if place != at or place in rendered]
    figures = {
        "reduced": bool(changed) or drops,
        "dropped_count": len(data) - len(kept),
        "dropped": tuple(sorted({*range(len(data))} - {*kept})),
        "mask_places": places_of(facts, masked),
        "cut_places": places_of(facts, clipped),
        "unmasked": Unmasked(0, 0, False, False),
        "invariant_status": "fallback" if stage == "fallback" else "ok",
        "reduction_stage": stage,
        "masked_count": len(masked),
        "masked_chars": sum(masked.values()),
        "clipped_count": len(clipped) + bool(cut),
        "clipped_chars": sum(clipped.values()) + sum(cut),
        "tools": tools,
        "chars_before": sum(facts.raw_chars),
        "chars_after": session.facts.chars(session.plan),
        "within_limit": session.facts.fits(session.plan),
        "orphans": tuple(facts.pairs.orphans),
        "first_changed": min([*changed, *([len(kept)] if drops else [])], default=None),
        "boundary": max(masked, default=-1) + 1,
        "summarizer_error": None,
        "boundary_message": None if last is None else places.index(last),
        "turns": len(facts.runs.starts),
        "provider": facts.policy.provider,
        "boundary_moves": tuple(BoundaryMove(*move) for move in session.plan.moves),
    }
    return Limited(kept, rendered, summary, figures)


def written(messages: list[Any]) -> list[bytes]:
    """Each message as JSON."""
    texts = (json.dumps(message, ensure_ascii=False, separators=(",", ":")) for message in messages)
    return [text.encode("utf-8", "surrogatepass") for text in texts]


__all__ = ["Answer", "Limited", "SummaryRequest", "limited", "written"]
