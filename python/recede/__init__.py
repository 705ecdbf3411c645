"""recede replaces old tool outputs in the history of an LLM agent with a one-line placeholder.

The most used names are here; the rest is in the subpackages: `recede.reduction`, `recede.session`, `recede.masker`,
`recede.clients`, `recede.turns`, `recede.agent`, `recede.costs`, `recede.providers`, `recede.proxy`, `recede.store`,
`recede.transcripts`, `recede.summarizers`, `recede.types`, `recede.arrow`, `recede.testing`.
"""

from recede._engine import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from recede._errors import RecedeError, StoreError, TranscriptError
    from recede.agent import Budget, Conversation, auto_continue, auto_continue_async
    from recede.clients import wrap
    from recede.masker import Masker
    from recede.providers import Provider
    from recede.proxy import RequestMasker
    from recede.reduction import (
        HistoryReducer,
        JsonReduction,
        Reduction,
        approx_tokens,
        check_pairs,
        count_chars,
        mask_observations,
        mask_observations_json,
        mask_old_observations,
        mask_old_observations_json,
        reduce,
        reduce_json,
        repair_pairs,
    )
    from recede.session import History
    from recede.store import TurnStore
    from recede.turns import (
        HybridContextManager,
        ObservationMaskingContextManager,
        ProductionHybridContextManager,
        apply_observation_masking,
    )
del TYPE_CHECKING

__all__ = [
    "Budget",
    "Conversation",
    "History",
    "HistoryReducer",
    "HybridContextManager",
    "JsonReduction",
    "Masker",
    "ObservationMaskingContextManager",
    "ProductionHybridContextManager",
    "Provider",
    "RecedeError",
    "Reduction",
    "RequestMasker",
    "StoreError",
    "TranscriptError",
    "TurnStore",
    "__version__",
    "apply_observation_masking",
    "approx_tokens",
    "auto_continue",
    "auto_continue_async",
    "check_pairs",
    "count_chars",
    "mask_observations",
    "mask_observations_json",
    "mask_old_observations",
    "mask_old_observations_json",
    "reduce",
    "reduce_json",
    "repair_pairs",
    "wrap",
]


# Imported on first use, so that `import recede` stays fast; the rest of the names is in `recede.reduction`.
_LATER = {
    "Budget": "agent",
    "Conversation": "agent",
    "History": "session",
    "HybridContextManager": "turns",
    "Masker": "masker",
    "ObservationMaskingContextManager": "turns",
    "ProductionHybridContextManager": "turns",
    "Provider": "providers",
    "RecedeError": "_errors",
    "RequestMasker": "proxy",
    "StoreError": "_errors",
    "TranscriptError": "_errors",
    "TurnStore": "store",
    "apply_observation_masking": "turns",
    "auto_continue": "agent",
    "auto_continue_async": "agent",
    "wrap": "clients",
}
_MODULES = (
    "agent",
    "arrow",
    "clients",
    "costs",
    "masker",
    "providers",
    "proxy",
    "reduction",
    "session",
    "store",
    "summarizers",
    "transcripts",
    "turns",
    "types",
)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"recede.{name}")
    if name in __all__:
        value = globals()[name] = getattr(import_module(f"recede.{_LATER.get(name, 'reduction')}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
