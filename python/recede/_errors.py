"""Exceptions and their messages; untrusted text, such as names in logs and of files, made safe for a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any


def printable(text: str, keep: str = "") -> str:
    """Escape, as JSON does, each character of a text that is not printable.

    These are controls, such as those that begin the commands of a terminal, ends of lines, marks that turn the
    direction of writing, what has no width, and lone surrogates, which no file in UTF-8 may hold. Those in `keep` stay.
    """
    if text.isprintable():
        return text
    import json  # here, since names are seldom like this

    return "".join(one if one.isprintable() or one in keep else json.dumps(one)[1:-1] for one in text)


class RecedeError(Exception):
    """Base class of the errors that recede raises for its input and its files.

    ::

        RecedeError
        ├── TranscriptError (ValueError)  not a history: malformed JSON, a wrong shape, or an unknown file format
        └── StoreError (OSError)          a turn store failed: damage, a full disk, a second writer

    A wrong argument raises `TypeError` or `ValueError`, as everywhere in Python.

    Example:
        >>> import recede
        >>> try:
        ...     recede.reduce(b"[")
        ... except recede.RecedeError as error:
        ...     print(error)
        the input ends in the middle of a value at byte 1, message 0: it may be truncated; pass all of it
    """

    __module__ = "recede"


# kind -> (what is wrong, what to do)
_WORDS = {
    "eof": ("the input ends in the middle of a value", "it may be truncated; pass all of it"),
    "syntax": ("malformed JSON", "the input must be strict JSON (RFC 8259)"),
    "control": ("an unescaped control character in a string", "escape it, such as \\n"),
    "escape": ("an invalid escape in a string", "write the backslash as \\\\"),
    "utf8": ("bytes that are not UTF-8", "encode the input as UTF-8"),
    "depth": ("nesting deeper than 1,024 levels", "pass deeply nested data as a string"),
    "number": ("an invalid number", "write it as JSON does, such as -1.5e3, with at most 4,300 digits"),
    "trailing": ("data after the end of the value", "pass one JSON value; the command line reads JSON Lines"),
    "duplicate_key": ("a duplicate field", "parsers differ on which one counts, so keep one"),
    "history": (
        "not a history",
        "pass a list of messages, or an object whose `messages`, `input` or `contents` is one",
    ),
    "request": ("a whole request", "pass its list of messages; recede.reduce takes whole requests"),
    "message": (
        "a message that is not an object",
        "each message must be a JSON object (a dict) or an object of a client; of a response, pass its message",
    ),
    "content": ("a content of the wrong type", "it must be a string, a list of parts, or null"),
    "part": ("a part that is not an object", "each part of a content must be a JSON object (a dict)"),
    "session": ("not a saved session of a History", "pass what `save` wrote, unchanged"),
    "empty": ("the file is empty", "an empty history is written []"),
    "size": ("the text, or a line of it, is longer than is read", "raise max_bytes (--max-bytes on the command line)"),
    "gzip": ("the gzip data is truncated or damaged", "pass the whole file"),
    "format": ("the file does not have the given format", "omit the format to detect it from the content"),
}


_PLACES = ("offset", "message_index", "field", "source", "line", "seen")


class TranscriptError(RecedeError, ValueError):
    """The input is not a history that recede can read. Nothing was changed.

    Attributes:
        kind: what is wrong, as one word: ``eof``, ``syntax``, ``control``, ``escape``, ``utf8``,
            ``depth``, ``number``, ``trailing`` (malformed JSON); ``duplicate_key``, ``history``,
            ``request``, ``message``, ``content``, ``part`` (JSON of a wrong shape); ``session`` (a file that
            `History.load` rejects); ``empty``, ``size``, ``gzip``, ``format`` (a file that `recede.transcripts` cannot
            read).
        offset: the offset of the first offending byte in the UTF-8 input, or in its line where `line` is given; None
            for Python objects.
        message_index: the index of the message, from 0; None outside of messages.
        field: the path of the field, such as ``content[2].text``; None where no single field is at fault.
        source: the name of the file; None where the input was not a file.
        line: its line, from 1, where the file has one record per line.
        seen: what a file of an unknown format has: types of its lines, or fields.

    Example:
        >>> import recede
        >>> try:
        ...     recede.reduce(b'[{"role": "user", "content": 5}]')
        ... except recede.TranscriptError as error:
        ...     print(error)
        ...     print(error.kind, error.offset, error.message_index, error.field)
        a content of the wrong type at byte 29, message 0, field content: it must be a string, a list of parts, or null
        content 29 0 content
    """

    __module__ = "recede"

    def __init__(
        self,
        kind: str,
        *,
        offset: int | None = None,
        message_index: int | None = None,
        field: str | None = None,
        source: str | None = None,
        line: int | None = None,
        seen: str | None = None,
    ) -> None:
        what, advice = _WORDS[kind]
        if kind == "syntax" and offset == 0:
            advice += ", in UTF-8 without a byte order mark"
        if seen is not None:
            what = f"{what}, but {printable(seen)}"
        places = [
            f"{name} {value}"
            for name, value in (("at byte", offset), ("message", message_index), ("field", field))
            if value is not None
        ]
        where = ", ".join(places)
        where = f" {where}" if offset is not None else f" in {where}" if where else ""
        said = f"{what}{where}: {advice}"
        if line is not None:
            said = f"line {line}: {said}"
        if source is not None:
            said = f"{printable(source)}: {said}"
        super().__init__(said)
        self.kind = kind
        self.offset = offset
        self.message_index = message_index
        self.field = field
        self.source = source
        self.line = line
        self.seen = seen

    def __reduce__(self) -> Any:
        return partial(type(self), **self.places), (self.kind,)

    @property
    def places(self) -> dict[str, Any]:
        """The location, as keyword arguments for another error at the same place."""
        return {name: getattr(self, name) for name in _PLACES}


# kind -> (what is wrong, what to do)
_STORE_WORDS = {
    "io": ("the operating system reported an error", "nothing that was synced is lost; see `is_usable`"),
    "missing": ("the store does not exist", "open it without read_only to create it"),
    "folder": ("its folder does not exist", "make the folder first, or give another path"),
    "foreign": ("not a turn store", "nothing was written; choose another path for the store"),
    "ledger": ("not a ledger of requests", "nothing was written; choose another path for it"),
    "version": ("the store was written by another version of recede", "use that version, or the newest one"),
    "damaged": ("the store is damaged", "intact records stay readable; `recede store verify` lists the damage"),
    "log": ("the log does not belong to the store", "restore the store it belongs to, or move the log away"),
    "locked": ("the store is in use", "close it there first, or open it with read_only=True"),
    "reading": ("the store is being read", "close its readers first"),
    "read_only": ("the store cannot be written to", "open it without read_only"),
    "broken": ("an earlier write or sync failed", "close the store and open it again; everything synced is there"),
    "gone": (
        "the file was deleted or replaced while the store was open",
        "put it back and sync again; until then nothing that is stored survives this process",
    ),
    "too_long": ("the record is too large for the store", "nothing was added"),
    "closed": ("the store was closed", "open it again"),
    "forked": ("the store was opened by another process", "open it in this one, after the other has closed it"),
}


class StoreError(RecedeError, OSError):
    """An operation of a turn store failed. Everything synced before is still there.

    Attributes:
        kind: what is wrong, as one word: ``io`` (a full disk, a failed read or write), ``missing``, ``folder`` (it is
            missing), ``foreign`` (the file is not a store), ``ledger`` (it is not the state of a `RequestMasker`),
            ``version`` (another format), ``damaged``, ``log`` (the log belongs to another store), ``locked`` (a
            second writer), ``reading`` (the store has readers), ``read_only``, ``broken`` (an earlier write or sync
            failed), ``gone`` (the file or its log was deleted or replaced while it was open), ``too_long``,
            ``closed``, ``forked``.
        path: the file of the store, or its log.
        page: the number of the 4,096-byte page, from 0; None where no single page is at fault.
        what: what was found, or which operation failed.
        errno: the error number of the operating system; None where there is none.

    Example:
        >>> import pathlib, recede, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
        >>> _ = path.write_text("Not a store, but something that must not be lost.")
        >>> try:
        ...     recede.store.TurnStore(path)
        ... except recede.StoreError as error:
        ...     print(error.kind, error.page)
        foreign None
    """

    __module__ = "recede"

    def __init__(
        self,
        kind: str,
        *,
        path: str | os.PathLike[str],
        page: int | None = None,
        what: str | None = None,
        errno: int | None = None,
        said: str | None = None,
    ) -> None:
        wrong, advice = _STORE_WORDS[kind]
        name = os.fspath(path)
        found = [part for part in (what, None if page is None else f"page {page}", said) if part is not None]
        where = f" ({', '.join(found)})" if found else ""
        super().__init__(f"{printable(name)}: {wrong}{where}: {advice}")
        self.kind = kind
        self.path = name
        self.page = page
        self.what = what
        self.errno = errno
        self._said = said

    def __reduce__(self) -> Any:
        places = {name: getattr(self, name) for name in ("path", "page", "what", "errno")}
        return partial(type(self), **places, said=self._said), (self.kind,)


def without_text(observation: object) -> LookupError:
    """The error for an observation that cannot be recalled as text."""
    return LookupError(f"observation {observation!r} has no text, only images or documents")


def no_such(what: str, key: object) -> LookupError:
    """The error for an unknown number or id. A number may have more digits than Python is willing to format."""
    is_long = isinstance(key, int) and key.bit_length() > 512
    return LookupError(f"there is no {what} {f'{key:#x}'[:20] + '…' if is_long else repr(key)}")


def meant(name: str, known: Iterable[str]) -> str:
    """The end of an error that names what a wrong name is close to; empty if it is close to none."""
    import difflib  # here, since names are seldom wrong

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def one_of(known: Iterable[str]) -> str:
    """The end of an error that names all that there is."""
    return f"; there are {', '.join(known)}" if known else "; it has none"
