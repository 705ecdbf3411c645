"""Readers for the histories that agents write: one function for every format, detected by content."""

from recede.transcripts._branches import Branch
from recede.transcripts._read import FORMATS, MAX_BYTES, Transcript, detect, read, read_all
from recede.transcripts._requests import Beside, Compaction, LoggedRequest, LoggedUsage

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
