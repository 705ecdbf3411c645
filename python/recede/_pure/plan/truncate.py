"""Stage 3: what is kept, without a summary."""

from __future__ import annotations

from dataclasses import replace

from recede._pure.plan.facts import Plan
from recede._pure.plan.keep import Keeping


def truncate(before: Plan, keeping: Keeping) -> Plan:
    """What stage 1 left of what is kept."""
    return replace(before, stage="fallback", kept=keeping.kept_alone, cut=keeping.cut)
