"""Stage 3: the keep set, and the task."""

from __future__ import annotations

from dataclasses import replace

from recede._pure.plan.facts import Facts, Plan
from recede._pure.plan.keep import keep_set


def truncate(facts: Facts, before: Plan) -> Plan:
    """What stage 1 left of the keep set, of earlier summaries and of the first user message."""
    kept = keep_set(facts).union(facts.earlier_summaries)
    if facts.task is not None:
        kept.add(facts.task.index)
    return replace(before, stage="fallback", kept=sorted(kept))
