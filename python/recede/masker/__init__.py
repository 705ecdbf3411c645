"""Views of conversations that are handed over whole before each request, of messages of any type."""

from recede._recall import recall_tool
from recede.masker._facts import Adapter, CallFacts, Facts, ResultFacts
from recede.masker._finder import MaskerStats
from recede.masker._masker import Masker
from recede.reduction._masks import Mask, Masks, SummaryPlace

__all__ = [
    "Adapter",
    "CallFacts",
    "Facts",
    "Mask",
    "Masker",
    "MaskerStats",
    "Masks",
    "ResultFacts",
    "SummaryPlace",
    "recall_tool",
]
