"""Readers for the histories that agents write: one function for every format, detected by content."""

from recede._usage import Beside, LoggedUsage
from recede.transcripts._formats import FORMATS
from recede.transcripts._read import detect, read, read_all
from recede.transcripts._requests import Branch, Compaction, LoggedRequest
from recede.transcripts._source import MAX_BYTES
from recede.transcripts._transcript import Transcript

__all__ = [
    "FORMATS",
    "MAX_BYTES",
    "Beside",
    "Branch",
    "Compaction",
    "LoggedRequest",
    "LoggedUsage",
    "Transcript",
    "detect",
    "read",
    "read_all",
]
