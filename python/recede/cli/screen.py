"""The first screen: what was paid, what would have been, what it would have cost otherwise, and what to type now."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from statistics import median
from textwrap import wrap
from typing import NamedTuple

from recede.cli.notices import counted
from recede.cli.played import MASKED, Session, paid_parts, summarized, unpriced_models
from recede.cli.tables import compact, gain, money, percent, span_of, tenths
from recede.costs import quoted_share
from recede.costs._misses import LONG_SESSION
from recede.proxy.launch import started
from recede.transcripts._unread import NOTHING, Unread

_COMMANDS = {  # formats of known agents
    "claude_code": "claude",
    "codex": "codex",
    "codex_exec": "codex",
    "gemini": "gemini",
    "gemini_stream": "gemini",
    "opencode": "opencode",
    "pi": "pi",
    "qwen_code": "qwen",
}
# Programs with a setting for the address of their provider.
_PROGRAMS = {
    "cline": "Cline",
    "copilot": "Copilot CLI",
    "openhands": "OpenHands",
    "openhands_v1": "OpenHands",
    "swe_agent": "SWE-agent",
    "mini_swe": "mini-SWE-agent",
}


class Advice(NamedTuple):
    """What to type for an agent, a framework or "your own loop": a command or Python, and what else is to be done."""

    title: str
    line: str
    note: str = ""


def title_of(format: str) -> str:
    """Name the agent whose sessions have this format."""
    agent = started((_COMMANDS[format],)).agent if format in _COMMANDS else None
    if agent is not None:
        return agent.title
    return _PROGRAMS.get(format) or ("LangChain" if format == "langsmith" else "your own loop")


def advice(
    formats: Iterable[str], textual: Container[str] = (), keep: int = 10, *, summarizes: bool = False
) -> list[Advice]:
    """A line for each origin, in order; agents of the `textual` ones call tools in texts, which a proxy cannot see.

    With `summarizes` it is the line that has summaries of old turns too; `f` in it is a summarizer.
    """
    found = (_advice(format, format in textual, keep, summarizes) for format in formats)
    return list(dict.fromkeys(one._replace(note="") if summarizes else one for one in found))


def _advice(format: str, is_textual: bool, keep: int, summarizes: bool) -> Advice:
    options = f"keep={keep}, summarizer=f" if summarizes else f"keep={keep}"
    title, own = title_of(format), f"recede.History({options})"
    proxy = "recede proxy" if keep == 10 else f"recede proxy --keep {keep}"
    proxy += " --summaries" if summarizes else ""
    if format in _COMMANDS:
        return Advice(title, f"{proxy} -- {_COMMANDS[format]}")
    if format in _PROGRAMS and is_textual:
        return Advice(title, own, "in its loop; no tool calls")
    if format in _PROGRAMS:
        return Advice(title, proxy, "and set its base URL to that address")
    if format == "langsmith":
        middleware = f"RecedeMiddleware({options})"
        return Advice(title, middleware if summarizes else f"create_agent(..., middleware=[{middleware}])")
    return Advice(title, own, "append(...), send view()")


COLUMNS = 80
LINES = 24
ELONGATION = 0.15  # the research has 13 to 18 % more turns of agents with summaries

_LEAST = 0.005  # a share below it is nothing
_WORTH = 0.05  # of what was paid: summaries that save less than that besides are no reason to ask a model
_MOST = 0.9  # the sessions that are named bring this share of what is saved
_WINDOWS = (200_000, 400_000, 1_000_000, 2_000_000)  # of current models, in tokens


class Asked(NamedTuple):
    """Inputs of the screen besides the sessions."""

    again: str = "recede replay"  # the command that was typed; empty where it had options that change what is shown
    notes: int = 0  # how many `-v` has
    damaged: str = ""  # a sentence on the files and lines that could not be read
    unread: Unread = NOTHING
    is_plan: bool = False  # whether a subscription is assumed, whatever the logs say
    context_window: int = 0  # the tokens that the model takes; 0: the smallest usual number that all requests fit into
    window: int | None = None  # the advised one: how many of the newest results stay raw; None: there is no advice
    elongation: float = ELONGATION  # by what share agents with summaries take more turns
    names_html: bool = True  # not where `--html` was given, and not on the page itself

    @property
    def masked(self) -> str:
        return MASKED if self.window is None else f"break_even:window={self.window}"

    @property
    def summarized(self) -> str:
        return summarized(self.window or 10)

    def typed(self, option: str) -> str:
        return f"{self.again} {option}" if self.again and len(self.again) < 25 else f"the same with {option}"


class Choice(NamedTuple):
    """A choice over all sessions: its dollars, tokens sent, those of the largest request, and dollars of summaries."""

    dollars: float
    tokens: float
    largest: int
    quoted: float | None  # the share of requests that quote what it had hidden
    summaries: float


def _with_summaries(sessions: Sequence[Session], raw: Choice, masked: Choice, asked: Asked) -> Choice | None:
    """Summaries of old turns, where a door can have them; None where they do not save enough besides."""
    policy = asked.summarized
    if not all(any(one.policy == policy for one in session.replay.policies) for session in sessions):
        return None
    found = _choice([one.instead_of(policy, asked.masked) if one.is_plan else one for one in sessions], policy)
    return found if found.dollars < masked.dollars - _WORTH * raw.dollars else None


def _choice(sessions: Sequence[Session], policy: str) -> Choice:
    return Choice(
        sum(session.would_pay(policy) for session in sessions),
        sum(session.tokens(policy) for session in sessions),
        max((turn.view_tokens for session in sessions for turn in session.played(policy).turns), default=0),
        None if policy == "raw" else quoted_share([session.replay for session in sessions], policy),
        sum(session.would_pay(policy, of_summaries=True) for session in sessions),
    )


def screen(sessions: Sequence[Session], asked: Asked) -> list[str]:
    """The lines of the screen, at most 24 of at most 80 columns, of sessions that were played with misses."""
    if not any(session.requests for session in sessions):
        said = asked.unread.words(has_results=False)
        why = said or "no request was made: nothing here is an answer of an agent"
        return [_head(sessions), why, *_not_read(asked, is_said=True)]
    raw, masked = (_choice(sessions, policy) for policy in ("raw", asked.masked))
    is_plan = asked.is_plan or all(session.is_plan for session in sessions)
    in_tokens = is_plan or not raw.dollars
    more = None if in_tokens else _with_summaries(sessions, raw, masked, asked)
    sent, less = (raw.tokens, masked.tokens) if in_tokens else (raw.dollars, masked.dollars)
    silent = [session for session in sessions if session.requests and not session.has_dollars]
    if in_tokens and not is_plan and (shares := _shares(silent, asked)).count(0.0) == 0:
        sent, less = shares  # fewer tokens may cost more
    saves = less < (1 - _LEAST) * sent
    has_results = any(session.results for session in sessions if session.requests)
    costs_more = less > (1 + _LEAST) * sent
    lines = [] if saves else [*_nothing(sessions, asked.unread, has_results=has_results, costs_more=costs_more), ""]
    if more is not None and not saves:
        lines[0] = lines[0].replace("nothing would be saved", "masks save nothing")
    rows = _token_rows(raw, masked, asked) if in_tokens else _rows(raw, masked, more, paid_parts(sessions))
    if in_tokens and any(session.has_dollars for session in sessions):
        rows += ["", f"  at API prices: {money(raw.dollars)}; {money(masked.dollars)} masked when it pays"]
    lines += [_head(sessions), "", *rows, "", *_without_dollars(silent, asked), *_quoted(sessions, masked, asked)]
    if saves:
        lines += [*_saved_by(sessions, asked, in_tokens=in_tokens), *_to_type(sessions, asked, is_plan=is_plan)]
    end = _end(asked, is_said=not (saves or has_results))
    if more is not None:
        lines += _summaries(sessions, raw, more, asked, LINES - len(lines) - len(end))
    return lines + end


def _end(asked: Asked, *, is_said: bool) -> list[str]:
    """The last lines: what else there is to type, what could not be read, and how many notes there are."""
    lines = [""]
    every = "all choices: recede replay -h"
    pictures = f"  pictures: {asked.typed('--html report.html')}" if asked.names_html else ""
    fits = pictures and len(pictures) + 3 + len(every) <= COLUMNS
    lines += [f"{pictures}{every:>{COLUMNS - len(pictures)}}"] if fits else filter(None, [pictures, f"  {every}"])
    lines += _not_read(asked, is_said=is_said)
    if asked.notes:
        verbose = "recede -v" if asked.again == "recede replay" else asked.typed("-v")
        lines.append(f"  {counted(asked.notes, 'note')}: {verbose}")
    return lines


def _head(sessions: Sequence[Session]) -> str:
    """The head of the screen: whose sessions these are, how many requests, and of which days."""
    titles = list(dict.fromkeys(title_of(session.format) for session in sessions))
    agents = [title for title in titles if title != "your own loop"]
    whose = f" of {', '.join(agents)}" if len(agents) == len(titles) else ""
    times = [time for session in sessions if session.log is not None for time in session.log.times]
    days = span_of(times)
    requests = counted(sum(session.requests for session in sessions), "request")
    head = counted(len(sessions), "session")
    tries = [f"{head}{whose}; {requests}{f', {days}' if days else ''}", f"{head}{whose}; {requests}"]
    tries.append(f"{head} of {len(agents)} agents; {requests}{f', {days}' if days else ''}")
    return next((line for line in tries if len(line) <= COLUMNS), f"{head}; {requests}")


_PAID = {"logged": "you paid", "estimated": "you paid, as estimated", "subscription": "subscription, at API prices"}


def _rows(raw: Choice, masked: Choice, more: Choice | None, paid: Mapping[str, float]) -> list[str]:
    """A line for each part that was paid, their sum if there are several, and what else it would have cost."""
    amounts = [(_PAID[part], dollars) for part, dollars in paid.items()]
    if len(paid) > 1:
        amounts.append(("together, at API prices" if "subscription" in paid else "together", raw.dollars))
    lines = [f"  {words:31} {money(dollars):>11}" for words, dollars in amounts]
    for words, one in (("masked when it pays", masked), ("with summaries of old turns too", more)):
        if one is not None:
            quoted = "" if one.quoted is None else f"   quoted in {tenths(one.quoted)}"
            less = gain(one.dollars, raw.dollars)
            lines.append(f"  {words:31} {money(one.dollars):>11}   {less:9}{quoted}".rstrip())
    return lines


def _token_rows(raw: Choice, masked: Choice, asked: Asked) -> list[str]:
    """A line for each choice where dollars are not known, or not paid: tokens and share of the context window."""
    window = asked.context_window or next((size for size in _WINDOWS if raw.largest <= size), raw.largest)
    less = gain(masked.tokens, raw.tokens)
    fullest = [f"{percent(choice.largest / window):>18}" for choice in (raw, masked)]
    return [
        f"{'tokens':>41}{f'fullest, of {compact(window)}':>30}{'quoted':>9}",
        f"  {'you sent':31} {compact(raw.tokens):>7}   {'':9}{fullest[0]}",
        f"  {'masked when it pays':31} {compact(masked.tokens):>7}   {less:9}{fullest[1]}{tenths(masked.quoted):>9}",
    ]


def _without_dollars(silent: Sequence[Session], asked: Asked) -> list[str]:
    """Lines on sessions whose models have no known price: how many, which models, their tokens and what they save."""
    if not silent:
        return []
    raw, masked = (sum(session.tokens(policy) for session in silent) for policy in ("raw", asked.masked))
    cost, less = _shares(silent, asked)
    fewer, cheaper = gain(masked, raw), gain(less, cost)
    return [
        f"  no dollars {counted(len(silent), 'session')}: no price is known of {unpriced_models(silent)}",
        f"{'':13}(--prices FILE gives one); {compact(raw)} tokens; masked, tokens are",
        f"{'':13}{fewer}, and the cost by usual shares {cheaper}",
    ]


def _shares(silent: Sequence[Session], asked: Asked) -> tuple[float, float]:
    """What sessions without dollars cost raw and masked at the usual prices: only the share of them is known."""
    raw, masked = (sum(session.cost(policy) for session in silent) for policy in ("raw", asked.masked))
    return raw, masked


def _quoted(sessions: Sequence[Session], masked: Choice, asked: Asked) -> list[str]:
    found = [session.replay.misses for session in sessions if session.replay.misses is not None]
    examined = sum(one.examined for one in found)
    if masked.quoted is None or not examined:
        return []
    count = sum(len(one.by_policy.get(asked.masked, ())) for one in found)
    if not count:
        return [f"  quoted     none of {counted(examined, 'request')} wrote text that masking had hidden by then"]
    return [
        f"  quoted     {count:,} of {counted(examined, 'request')} wrote text that was only in a result which",
        f"             would have been masked by then (list: {asked.typed('--misses')})",
    ]


def _saved_by(sessions: Sequence[Session], asked: Asked, *, in_tokens: bool) -> list[str]:

    def worth(session: Session) -> tuple[float, float]:
        """What it cost, and what masking saves of it; in tokens where no dollars are paid."""
        if in_tokens:
            return session.tokens("raw"), session.tokens("raw") - session.tokens(asked.masked)
        return session.paid, session.paid - session.would_pay(asked.masked)

    worths = [(*worth(session), session.requests) for session in sessions if session.requests]
    gains = sorted(((saved, requests) for _, saved, requests in worths if saved > 0), key=lambda one: -one[0])
    whole = sum(saved for saved, _ in gains)
    few, sums = 0, 0.0
    while sums < _MOST * whole:
        sums += gains[few][0]
        few += 1
    none = [requests for value, saved, requests in worths if abs(saved) < _LEAST * value]
    are_apart = bool(none) and median(requests for _, requests in gains[:few]) >= 2 * median(none)
    long, short = ("long ", "short ") if are_apart else ("", "other ")
    show: Callable[[float], str] = compact if in_tokens else money
    of = (f" of {show(whole)}" if few < len(gains) else "") + (" tokens" if in_tokens else "")
    line = f"  saved by   {few:,} {long}{'session' if few == 1 else 'sessions'}: {show(sums)}{of}"
    return [line + (f"; {len(none):,} {short}{'one' if len(none) == 1 else 'ones'}: nothing" if none else "")]


def _to_type(sessions: Sequence[Session], asked: Asked, *, is_plan: bool) -> list[str]:
    """Lines on which window to take, and how to get the saving, for each origin of the sessions that have requests."""
    said = f"  window     {asked.window} saves most for each quotation ({asked.typed('--curve')})"
    advised = advised_for(sessions, asked)
    lines = [*([] if asked.window is None else [said]), *_listed("to get it", advised)]
    if is_plan and any(one.line.startswith("recede proxy") for one in advised):
        lines.append(f"{'':13}recede proxy was not tried with a subscription")
    return lines


def advised_for(sessions: Sequence[Session], asked: Asked, *, summarizes: bool = False) -> list[Advice]:
    """What to type for each origin of these sessions."""
    played = [session for session in sessions if session.requests]
    named = {session.format for session in played if any(session.tools)}
    textual = {session.format for session in played if session.results} - named
    return advice((session.format for session in played), textual, asked.window or 10, summarizes=summarizes)


def _listed(label: str, advised: Sequence[Advice]) -> list[str]:
    labels = [label, *[""] * len(advised)]
    return [
        f"  {label:10} {one.title:14} {one.line}   {one.note}".rstrip()
        for label, one in zip(labels, advised, strict=False)
    ]


def _summaries(sessions: Sequence[Session], raw: Choice, more: Choice, asked: Asked, room: int) -> list[str]:
    """Lines on how to have summaries, which need an API key, and on what they cost; as many as there is room for."""
    advised = advised_for([session for session in sessions if not session.is_plan], asked, summarizes=True)
    longer = more.dollars * (1 + asked.elongation)
    said = f"With an API key; {money(more.summaries)} of it is for the model that reads old turns. "
    share = gain(longer, raw.dollars)
    said += f"{percent(asked.elongation)} more turns, as in research, make it {money(longer)}, {share}."
    lines = wrap(said, COLUMNS - 13)
    if any(one.line.endswith("f)") for one in advised):
        lines.insert(0, "f is one of recede.summarizers, or your own function.")
    if len(advised) + len(lines) > room:
        every = "add --summaries to recede proxy, summarizer=f to a line of Python"
        return [f"  {'summaries':10} {every}", *(f"{'':13}{line}" for line in lines[-2:] if room > 2)]
    return [*_listed("summaries", advised), *(f"{'':13}{line}" for line in lines)]


def _not_read(asked: Asked, *, is_said: bool) -> list[str]:
    """Lines on what could not be read; messages that were not understood are in another line where that is said."""
    unread = None if is_said else asked.unread.words(has_results=True)
    return [f"  {said}" for said in (asked.damaged, unread) if said]


def _nothing(sessions: Sequence[Session], unread: Unread, *, has_results: bool, costs_more: bool) -> list[str]:
    middle_one = round(median(session.results for session in sessions if session.requests))
    if not has_results:
        if said := unread.words(has_results=False):
            return [said]
        return ["nothing would be saved: your sessions have no tool results to mask"]
    if middle_one < LONG_SESSION:
        return [
            f"nothing would be saved: your sessions are short: {counted(middle_one, 'tool result')} at the median;",
            f"masking begins to pay after about {LONG_SESSION}",
        ]
    if costs_more:
        return [
            "nothing would be saved: your sessions ended before their masks had paid;",
            "by default no session costs more than 10 % over sending everything",
        ]
    return ["nothing would be saved: your tool results are too small for masking to pay"]
