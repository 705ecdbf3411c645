"""Turns on disk: an append-only file that survives a crash."""

from recede.store._turn_store import StoredTurn, StoreFault, StoreReport, StoreStats, TurnStore

__all__ = ["StoreFault", "StoreReport", "StoreStats", "StoredTurn", "TurnStore"]
