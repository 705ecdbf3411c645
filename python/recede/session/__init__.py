"""The append-only history: each message is processed once, and views are cheap."""

from recede.session._history import History, HistoryStats

__all__ = [
    "History",
    "HistoryStats",
]
