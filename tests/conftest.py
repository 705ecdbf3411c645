"""Fixtures and the closing report: which corpus files and suite cases were read, and what was skipped."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE), str(_HERE / "data"), str(_HERE / "integration")]

from recede import _engine
from support import ENGINES, SHARED, engine_module

# Stores sync each commit to the disk, which takes most of their tests' time and is not what these check: lost syncs are
# tested with a disk that loses them (tests/core/store), and by killing children (tests/kill.py).
_MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and Path(_MEMORY).is_dir() and shutil.disk_usage(_MEMORY).free > 1 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY

# A client reads the certificates of the system before its first request, which takes longer than most of these tests;
# no server here has one.
os.environ.update(SSL_CERT_FILE="", SSL_CERT_DIR=str(_HERE))

# What a shell starts in the background ignores Ctrl-C, and so would the commands whose Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
# `make test` tries the same few examples each time; `make test-slow` tries many others, with a seed that it prints.
settings.register_profile(
    "default", max_examples=20, deadline=None, suppress_health_check=_QUIET, derandomize=True, database=None
)
settings.register_profile("random", settings.get_profile("default"), max_examples=200, derandomize=False)
settings.register_profile("long", settings.get_profile("random"), max_examples=2_000)
settings.register_profile(
    "unshrunk", settings.get_profile("random"), max_examples=800, phases=[Phase.explicit, Phase.generate]
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(_PROFILE)
if _PROFILE == "default" and hasattr(providers, "_get_local_constants"):
    # Else examples take constants from the modules that a process has imported by then, and no two runs try the same.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test once with each engine."""
    name: str = request.param
    monkeypatch.setattr(_engine, "engine", engine_module(name))
    return name


# Sessions, managers of turns, replays and the kit have no oracle, but definitions, compared with the core where a test
# asks both (`test_sessions`, `test_both_engines_...`, `test_replay_under_any_policy_...`). The rest needs the core.
_WITHOUT_ORACLE = frozenset(
    """
    test_agent_formats
    test_branches_of_logs
    test_callbacks
    test_cli_bill
    test_datasets
    test_histories_of_requests
    test_provider_answers
    test_provider_rules
    test_question
    test_provider_usage
    test_reason
    test_said_rightly
    test_unread
    test_arrow
    test_awaited_views
    test_bill
    test_budget
    test_caches
    test_cli
    test_cli_hostile
    test_cli_many
    test_cli_replay
    test_cli_screen
    test_cli_sessions
    test_cli_store
    test_coming_from
    test_history
    test_hybrid
    test_logged_requests
    test_masker
    test_off
    test_omitted_texts
    test_over_limit
    test_reasoning_in_sessions
    test_panics
    test_pins_in_sessions
    test_replay
    test_share_of_window
    test_replay_hybrid
    test_replayed
    test_replayed_summaries
    test_reported
    test_request_masker
    test_request_summaries
    test_rewind
    test_serving
    test_logs_of_makers
    test_cli_models
    test_store
    test_testing
    test_texts
    test_stored_histories
    test_stored_managers
    test_cli_misses
    test_engine
    test_forks
    test_misses
    test_default_providers
    test_models_in_sessions
    test_summaries_asked_for
    test_totals
    test_transcripts
    test_turn_managers
    test_turns
    test_usage
    """.split()
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def asks_the_oracle(item: pytest.Item) -> bool:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        return "oracle" in (parameters.get("engine"), parameters.get("engine_name"))

    items[:] = [item for item in items if not (item.path.stem in _WITHOUT_ORACLE and asks_the_oracle(item))]
    for item in items:
        # Real terminals, signals and servers on a busy machine: what fails once and not twice is listed as a rerun.
        if item.path.parent.name in ("integration", "integrations") and item.config.pluginmanager.hasplugin(
            "rerunfailures"
        ):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """What was collected stays: no collection of garbage has to look through it again."""
    gc.collect()
    gc.freeze()


class _SharedReport:
    """Collects what tests read of the shared folder, also from the workers of pytest-xdist."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.read.update(str(name) for name, _ in report.user_properties if name.startswith("read: "))
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            if f"{SHARED}{os.sep}" in reason:
                self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and SHARED.is_dir() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.read and not self.skipped:
            return
        terminalreporter.section("shared data")
        for name, count in sorted(self.read.items()):
            terminalreporter.write_line(f"{name.removeprefix('read: ')}: {count} read")
        for line in self.skipped:
            terminalreporter.write_line(f"SKIPPED {line}")
        if self.skipped and SHARED.is_dir():
            terminalreporter.write_line(f"{SHARED} is there, so skipping its tests is a failure", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SharedReport(), "recede-shared-report")
