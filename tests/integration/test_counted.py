"""What counts the growth of logged sessions for docs/bill.md."""

from __future__ import annotations

import sys

from shared_data import CORPUS, need

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import counted as bench
from recorded import files


def test_limits_count_most_sessions_within_a_sixth() -> None:
    need(CORPUS)
    contexts = list(bench.contexts(files()))
    assert len(contexts) > 40
    within = [abs(context.error(context.steps)) <= 0.15 for context in contexts]
    calibrated = [abs(context.error(context.calibrated)) for context in contexts]
    assert sum(within) / len(within) > 0.8
    assert sum(error <= 0.15 for error in calibrated) / len(calibrated) >= 0.95
