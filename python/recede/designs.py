"""The names of the published designs, each with its design's words, defaults and placeholder.

docs/coming-from.md has every statement of the designs beside what these do.
"""

from importlib import import_module

# Where each name is: imported on first use, since the kit alone takes as long to import as all else.
_HOMES = {
    "Budget": "agent._budget",
    "Conversation": "agent._conversation",
    "HistoryReducer": "reduction",
    "HybridContextManager": "turns._hybrid",
    "ObservationMaskingContextManager": "turns._masking",
    "ProductionHybridContextManager": "turns._production",
    "apply_observation_masking": "turns._masking",
    "approx_tokens": "reduction",
    "auto_continue": "agent._auto_continue",
    "auto_continue_async": "agent._auto_continue",
    "mask_observation": "reduction",
    "mask_observations": "reduction",
    "mask_observations_json": "reduction",
    "mask_old_observations": "reduction",
    "mask_old_observations_json": "reduction",
    "summarize_history": "reduction",
    "truncate_history": "reduction",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"recede.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
