"""Readers for the histories that agents write: one function for every format, detected by content."""

from recede.transcripts._read import FORMATS, MAX_BYTES, Transcript, detect, read, read_all
from recede.transcripts._requests import Compaction, LoggedRequest, LoggedUsage

__all__ = [
    "FORMATS",
    "MAX_BYTES",
    "Compaction",
    "LoggedRequest",
    "LoggedUsage",
    "Transcript",
    "detect",
    "read",
    "read_all",
]
