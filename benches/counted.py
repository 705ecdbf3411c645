"""How near limits count: `python benches/counted.py` prints the table of docs/bill.md.

Of each recorded context with logged usage (`make corpus`) the growth of its requests is compared with what a door
counts of the messages between them. Steps whose logged input falls, that have an image or another model than the step
before are left out, and so are contexts of fewer than 8 steps or 3,000 tokens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from recorded import files

from recede import Provider, _engine, transcripts
from recede.reduction._policy import own_policy

LEAST_STEPS, LEAST_TOKENS = 8, 3_000
PRIOR_TOKENS = 15_000
"""Tokens that count as they are counted, beside the reported ones, where a door calibrates."""


class Step(NamedTuple):
    """The growth between two requests, and the input of the second, in tokens."""

    logged: int
    counted: float
    input: int


class Context(NamedTuple):
    format: str
    steps: list[Step]

    def error(self, steps: Iterable[Step]) -> float:
        """How far the sum of what was counted is from what was logged."""
        return sum(step.counted for step in steps) / sum(step.logged for step in self.steps) - 1

    @property
    def calibrated(self) -> list[Step]:
        """Its steps as a door counts them that has seen the usage of all requests before."""
        scaled, logged, counted = [], float(PRIOR_TOKENS), float(PRIOR_TOKENS)
        for step in self.steps:
            scaled.append(step._replace(counted=step.counted * logged / counted))
            logged, counted = logged + step.logged, counted + step.counted
        return scaled


def contexts(paths: Iterable[Path]) -> Iterator[Context]:
    """The contexts of these files that are measured."""
    for path in paths:
        for session in transcripts.read_all(path):
            for context in session.each_context():
                steps = list(steps_of(context))
                if len(steps) >= LEAST_STEPS and sum(step.logged for step in steps) >= LEAST_TOKENS:
                    yield Context(context.format, steps)


def steps_of(context: transcripts.Transcript) -> Iterator[Step]:
    """What came between two requests: as logged, and as a door counts it."""
    logged = [one for one in context.requests if one.usage is not None and one.usage.sent_tokens]
    if len(logged) <= LEAST_STEPS:
        return
    model = next((one.model for one in logged if one.model), None)
    counted = counts_of(context.messages, model, {one.messages for one in logged})
    for before, after in pairwise(logged):
        assert before.usage is not None and after.usage is not None
        grown = after.usage.sent_tokens - before.usage.sent_tokens
        new = json.dumps(context.messages[before.messages : after.messages])
        is_alike = before.model == after.model and '"type": "image"' not in new
        if grown > 0 and is_alike and counted.keys() >= {before.messages, after.messages}:
            tokens = (counted[after.messages] - counted[before.messages]) / 4
            yield Step(grown, tokens, after.usage.sent_tokens)


def counts_of(messages: list[dict[str, Any]], model: str | None, places: set[int]) -> dict[int, int]:
    """What a door counts of the first messages, in quarter tokens, before each of these places."""
    provider = None if model is None else Provider.of_model(model)
    options = {"max_input_tokens": 1 << 40, "keep": 1 << 40, **({} if provider is None else {"provider": provider})}
    policy = own_policy(_engine.engine, options, reduces=True, model=model)
    session, counted = _engine.engine.Session(policy), {}
    for place, message in enumerate(messages, 1):
        session.append(json.dumps(message).encode(), True)
        if place in places:
            session.update_view()
            counted[place] = session.view_identity()[2]
    return counted


def table(measured: list[Context]) -> str:
    """The table, as it stands in the document."""
    columns = ["format", "sessions", "within 15 %", "median", "median step", "calibrated: within 15 %", "median"]
    columns += ["next input: within 2 %", "within 5 %"]
    lines = [f"| {' | '.join(columns)} |", "|---" + "|--:" * 8 + "|"]
    names = sorted({context.format for context in measured})
    for name in [*names, "all"]:
        of = [context for context in measured if name in (context.format, "all")]
        plain = [abs(context.error(context.steps)) for context in of]
        steps = [median(abs(step.counted / step.logged - 1) for step in context.steps) for context in of]
        scaled = [abs(context.error(context.calibrated)) for context in of]
        inputs = [abs(step.counted - step.logged) / step.input for context in of for step in context.calibrated]
        shares = [_share(plain, 0.15), median(plain), median(steps), _share(scaled, 0.15), median(scaled)]
        cells = [name, str(len(of)), *(f"{100 * one:.0f} %" for one in shares)]
        cells += [f"{100 * _share(inputs, most):.1f} %" for most in (0.02, 0.05)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _share(errors: list[float], most: float) -> float:
    return sum(error <= most for error in errors) / len(errors)


if __name__ == "__main__":
    sys.stdout.write(table(list(contexts(files()))))
