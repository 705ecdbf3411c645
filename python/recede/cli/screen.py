"""The first screen: what was paid, what would have been, what it would have cost otherwise, and what to type now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from textwrap import wrap

from recede.cli.advice import Advice
from recede.cli.notices import counted
from recede.cli.record import Choice, Record, Unpriced
from recede.cli.tables import compact, first_of, gain, money, percent, tenths

COLUMNS = 80
LINES = 24


def screen(record: Record, *, names_html: bool = True) -> list[str]:
    """The lines of the screen, at most 24 of at most 80 columns."""
    raw, masked, more = record.raw, record.masked, record.summarized
    if raw is None or masked is None:
        said = record.asked.unread.words(has_results=False)
        why = said or "no request was made: nothing here is an answer of an agent"
        return [_head(record), why, *_not_read(record, is_said=True)]
    saves, has_results = record.saves, any(row.results for row in record.sessions if row.requests)
    lines = [] if saves else [*_nothing(record, has_results=has_results), ""]
    if more is not None and not saves:
        lines[0] = lines[0].replace("nothing would be saved", "masks save nothing")
    rows = _token_rows(record, raw, masked) if record.in_tokens else _rows(record, raw, masked, more)
    if record.in_tokens and record.paid:
        rows += ["", f"  at API prices: {money(raw.dollars)}; {money(masked.dollars)} masked when it pays"]
    silent = [] if record.unpriced is None else _without_dollars(record.unpriced)
    lines += [_head(record), "", *rows, "", _doors(record), *silent, *_quoted(record)]
    if saves:
        lines += [*_saved_by(record), *_to_type(record)]
    end = _end(record, is_said=not (saves or has_results), names_html=names_html)
    if more is not None:
        lines += _summaries(record, raw, more, LINES - len(lines) - len(end))
    return lines + end


def typed(record: Record, option: str) -> str:
    """The command with one more option."""
    again = record.asked.again
    return f"{again} {option}" if again and len(again) < 25 else f"the same with {option}"


def _end(record: Record, *, is_said: bool, names_html: bool) -> list[str]:
    """The last lines: what else there is to type, what could not be read, and how many notes there are."""
    lines = [""]
    every = "all choices: recede replay -h"
    pictures = f"  pictures: {typed(record, '--html report.html')}" if names_html else ""
    fits = pictures and len(pictures) + 3 + len(every) <= COLUMNS
    lines += [f"{pictures}{every:>{COLUMNS - len(pictures)}}"] if fits else filter(None, [pictures, f"  {every}"])
    lines += _not_read(record, is_said=is_said)
    if record.asked.notes and not record.asked.tells_notes:
        verbose = "recede -v" if record.asked.again == "recede replay" else typed(record, "-v")
        lines.append(f"  {counted(len(record.asked.notes), 'note')}: {verbose}")
    return lines


def _head(record: Record) -> str:
    """The head of the screen: whose sessions these are, how many requests, and of which days."""
    agents = [title for title in record.agents if title != "your own loop"]
    whose = f" of {', '.join(agents)}" if len(agents) == len(record.agents) else ""
    days = record.days
    requests = counted(record.requests, "request")
    head = counted(len(record.sessions), "session")
    tries = [f"{head}{whose}; {requests}{f', {days}' if days else ''}", f"{head}{whose}; {requests}"]
    tries.append(f"{head} of {len(agents)} agents; {requests}{f', {days}' if days else ''}")
    return next((line for line in tries if len(line) <= COLUMNS), f"{head}; {requests}")


_PAID = {"logged": "you paid", "estimated": "you paid, as estimated", "subscription": "subscription, at API prices"}


def _rows(record: Record, raw: Choice, masked: Choice, more: Choice | None) -> list[str]:
    """A line for each part that was paid, their sum if there are several, and what else it would have cost."""
    amounts = [(_PAID[part], dollars) for part, dollars in record.paid.items()]
    if len(record.paid) > 1:
        amounts.append(("together, at API prices" if "subscription" in record.paid else "together", raw.dollars))
    lines = [f"  {words:31} {money(dollars):>11}" for words, dollars in amounts]
    for words, one in (("masked when it pays", masked), ("with summaries of old turns too", more)):
        if one is not None:
            quoted = "" if one.quoted is None else f"   quoted in {tenths(one.quoted)}"
            lines.append(f"  {words:31} {money(one.dollars):>11}   {gain(one.of_raw):9}{quoted}".rstrip())
    return lines


def _token_rows(record: Record, raw: Choice, masked: Choice) -> list[str]:
    """A line for each choice where dollars are not known, or not paid: tokens and share of the context window."""
    window = record.context_window
    fullest = [f"{percent(choice.largest_tokens / window):>18}" for choice in (raw, masked)]
    return [
        f"{'tokens':>41}{f'fullest, of {compact(window)}':>30}{'quoted':>9}",
        f"  {'you sent':31} {compact(raw.tokens):>7}   {'':9}{fullest[0]}",
        f"  {'masked when it pays':31} {compact(masked.tokens):>7}   {gain(masked.of_raw):9}{fullest[1]}"
        f"{tenths(masked.quoted):>9}",
    ]


def _without_dollars(silent: Unpriced) -> list[str]:
    """Lines on sessions whose models have no known price: how many, which models, their tokens and what they save."""
    fewer = gain(silent.masked_tokens, silent.tokens)
    return [
        f"  no dollars {counted(silent.sessions, 'session')}: no price is known of {first_of(silent.models)}",
        f"{'':13}(--prices FILE gives one); {compact(silent.tokens)} tokens; masked, tokens are",
        f"{'':13}{fewer}, and the cost by usual shares {gain(silent.of_raw)}",
    ]


def _doors(record: Record) -> str:
    """Name the doors that were played."""
    counts = Counter(row.door for row in record.sessions if row.requests)
    said = (f"{door}: {counted(count, 'session')}" for door, count in counts.items())
    return f"  played as  {', '.join(said)}"


def _quoted(record: Record) -> list[str]:
    if not record.examined:
        return []
    if not record.quoted:
        return [
            f"  quoted     none of {counted(record.examined, 'request')} wrote text that masking had hidden by then"
        ]
    return [
        f"  quoted     {len(record.quoted):,} of {counted(record.examined, 'request')} wrote text that was only in a "
        "result which",
        f"             would have been masked by then (list: {typed(record, '--misses')})",
    ]


def _saved_by(record: Record) -> list[str]:
    saved = record.saved
    long, short = ("long ", "short ") if saved.are_apart else ("", "other ")
    show: Callable[[float], str] = compact if record.in_tokens else money
    of = f" of {show(saved.whole)}" if saved.others_amount else ""
    line = f"  saved by   {saved.sessions:,} {long}{'session' if saved.sessions == 1 else 'sessions'}"
    line += f": {show(saved.amount)}{of}" + (" tokens" if record.in_tokens else "")
    rest = show(abs(saved.others_amount)) if saved.others_amount else "nothing"
    rest = f"cost {rest} more" if saved.others_amount < 0 else rest
    return [
        line + (f"; {saved.others:,} {short}{'one' if saved.others == 1 else 'ones'}: {rest}" if saved.others else "")
    ]


def _to_type(record: Record) -> list[str]:
    """Lines on which window to take, and how to get the saving, for each origin of sessions that are cheaper by it."""
    window = record.asked.window
    said = f"  window     {window} saves most for each quotation ({typed(record, '--curve')})"
    lines = [*([] if window is None else [said]), *_listed("to get it", record.advice)]
    if record.is_plan and any(one.line.startswith("recede proxy") for one in record.advice):
        lines.append(f"{'':13}recede proxy was not tried with a subscription")
    return lines


def _listed(label: str, advised: Sequence[Advice]) -> list[str]:
    labels = [label, *[""] * len(advised)]
    return [
        f"  {label:10} {one.title:14} {one.line}   {one.note}".rstrip()
        for label, one in zip(labels, advised, strict=False)
    ]


def _summaries(record: Record, raw: Choice, more: Choice, room: int) -> list[str]:
    """Lines on how to have summaries, which need an API key, and on what they cost; as many as there is room for."""
    longer, advised = record.with_more_turns or 0.0, record.summary_advice
    said = f"With an API key; {money(more.summary_dollars)} of it is for the model that reads old turns. "
    share = gain(longer, raw.dollars)
    said += f"{percent(record.asked.elongation)} more turns, as in research, make it {money(longer)}, {share}."
    lines = wrap(said, COLUMNS - 13)
    if any(one.line.endswith("f)") for one in advised):
        lines.insert(0, "f is one of recede.summarizers, or your own function.")
    if len(advised) + len(lines) > room:
        every = "add --summaries to recede proxy, summarizer=f to a line of Python"
        return [f"  {'summaries':10} {every}", *(f"{'':13}{line}" for line in lines[-2:] if room > 2)]
    return [*_listed("summaries", advised), *(f"{'':13}{line}" for line in lines)]


def _not_read(record: Record, *, is_said: bool) -> list[str]:
    """Lines on what could not be read; messages that were not understood are in another line where that is said."""
    unread = None if is_said else record.asked.unread.words(has_results=True)
    return [f"  {said}" for said in (record.asked.damaged, unread) if said]


def _nothing(record: Record, *, has_results: bool) -> list[str]:
    if not has_results:
        if said := record.asked.unread.words(has_results=False):
            return [said]
        return ["nothing would be saved: your sessions have no tool results to mask"]
    if record.results_at_median < record.pays_after_results:
        results = counted(record.results_at_median, "tool result")
        return [
            f"nothing would be saved: your sessions are short: {results} at the median;",
            f"masking begins to pay after about {record.pays_after_results}",
        ]
    if record.costs_more:
        return [
            "nothing would be saved: your sessions ended before their masks had paid;",
            f"by default no session costs more than {percent(record.max_overcost)} over sending everything",
        ]
    return ["nothing would be saved: your tool results are too small for masking to pay"]
