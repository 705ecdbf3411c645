"""Reads the histories that agents write, as they are: one function for every format, told by the content."""

from recede.transcripts._read import FORMATS, MAX_BYTES, Transcript, detect, read, read_all

__all__ = ["FORMATS", "MAX_BYTES", "Transcript", "detect", "read", "read_all"]
