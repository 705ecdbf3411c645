"""What the recorded agents quote: the shares that the rule was measured with."""

from __future__ import annotations

import sys

import pytest
from shared_data import CORPUS, need

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import misses as bench

# In percent, by window, as a prototype measured them. What is removed at line starts was chosen by this table. The
# cells that differ probably have quotations of results that no request had shown, or that a context shows again after
# a compaction: those do not count here.
MEASURED = {
    "all": (8.2, 6.3, 5.4, 3.8, 2.7, 1.5),
    "long": (13.0, 10.5, 9.2, 7.0, 4.9, 2.8),
    "claude_code": (14.7, 11.5, 9.9, 7.4, 5.1, 2.9),
    "codex": (11.6, 9.2, 8.3, 4.8, 2.9, 0.8),
    "pi": (8.8, 6.5, 4.7, 3.7, 3.4, 3.0),
}
NOT_SHOWN_YET = {(group, 1) for group in MEASURED}
SHOWN_AGAIN = {("pi", 3), ("pi", 5)}


@pytest.mark.slow
def test_shares_of_the_corpus_are_those_measured_before() -> None:
    need(CORPUS)
    sessions = bench.recorded()
    assert (len(sessions), sum(one.misses.requests for one in sessions)) == (193, 4_445)
    groups = {name: [one.misses for one in sessions if one.session.format == name] for name in MEASURED}
    groups |= {"all": [one.misses for one in sessions], "long": [one.misses for one in sessions if one.is_long]}
    far = {
        (name, window)
        for name, shares in MEASURED.items()
        for window, share in zip(bench.WINDOWS, shares, strict=True)
        if abs(100 * bench.share_of(groups[name], window) - share) > 0.3
    }
    assert far == NOT_SHOWN_YET | SHOWN_AGAIN
