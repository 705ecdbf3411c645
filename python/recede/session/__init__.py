"""The append-only history: each message is processed once, and views are cheap."""

from recede.session._history import History
from recede.session._stats import HistoryStats, ReportedUsage

__all__ = ["History", "HistoryStats", "ReportedUsage"]
