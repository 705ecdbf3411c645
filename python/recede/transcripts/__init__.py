"""Readers for the histories that agents write: one function for every format, detected by content."""

from recede.transcripts._read import FORMATS, MAX_BYTES, Transcript, detect, read, read_all

__all__ = ["FORMATS", "MAX_BYTES", "Transcript", "detect", "read", "read_all"]
