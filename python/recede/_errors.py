"""The exceptions of recede, and the words of their messages."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RecedeError", "StoreError", "TranscriptError", "no_such"]


class RecedeError(Exception):
    """The base of the errors that recede raises for its input and its files.

    ::

        RecedeError
        ├── TranscriptError (ValueError)  no history: malformed JSON, a wrong shape, or a file of no known format
        └── StoreError (OSError)          a turn store failed: damage, a full disk, a second writer

    A wrong argument is a `TypeError` or a `ValueError`, as everywhere in Python.

    Example:
        >>> import recede
        >>> try:
        ...     recede.reduce_json(b"[", max_input_chars=100)
        ... except recede.RecedeError as error:
        ...     print(error)
        the input ends in the middle of a value at byte 1, message 0: it may have been cut; give the whole of it
    """

    __module__ = "recede"


# kind -> (what is wrong, what to do)
_WORDS = {
    "eof": ("the input ends in the middle of a value", "it may have been cut; give the whole of it"),
    "syntax": ("this byte cannot stand here in JSON", "the input must be strict JSON (RFC 8259)"),
    "control": ("a raw control character in a string", "write it as an escape, such as \\n"),
    "escape": ("an escape that JSON does not know", "write the backslash as \\\\"),
    "utf8": ("bytes that are not UTF-8", "encode the input as UTF-8"),
    "depth": ("nesting over 1,024 levels", "pass what is nested so deep as a string"),
    "number": ("a number that JSON does not know", "write it as JSON does: -1.5e3"),
    "trailing": ("something follows the end of the value", "give one JSON value; JSON Lines are for the command line"),
    "duplicate_key": ("a field stands twice", "readers differ on which one counts, so leave one"),
    "history": ("this is no history", "give a list of messages, or an object whose `messages` or `input` is one"),
    "message": ("a message is no object", "each message must be a JSON object (a dict)"),
    "content": ("a content of the wrong type", "it must be a string, a list of parts, or null"),
    "part": ("a part is no object", "each part of a content must be a JSON object (a dict)"),
    "session": ("this is no session of a History", "give what `save` wrote, whole and as it was"),
    "empty": ("the file is empty", "an empty history is written []"),
    "size": ("the text is longer than max_bytes", "give a larger max_bytes, on the command line --max-bytes"),
    "gzip": ("the gzip data is cut or damaged", "give the whole of it"),
    "format": ("the file is not of the format that was named", "leave the format out, and it is told by the content"),
}


class TranscriptError(RecedeError, ValueError):
    """The input is not a history that recede can read. Nothing was changed.

    Attributes:
        kind: what is wrong, as one word: ``eof``, ``syntax``, ``control``, ``escape``, ``utf8``,
            ``depth``, ``number``, ``trailing`` (malformed JSON); ``duplicate_key``, ``history``,
            ``message``, ``content``, ``part`` (JSON of a wrong shape); ``session`` (a file that `History.load`
            cannot take); ``empty``, ``size``, ``gzip``, ``format`` (a file that `recede.transcripts` cannot read).
        offset: the first offending byte of the UTF-8 form, of the line where one is named; None where the
            input was Python objects.
        message_index: the message it lies in, counted from 0; None outside of messages.
        field: the field it lies in, such as ``content[2].text``; None where no field is meant.
        source: the file, as the reader was told to name it; None where the input was no file.
        line: its line, from 1, where the file has one record a line.

    Example:
        >>> import recede
        >>> try:
        ...     recede.reduce_json(b'[{"role": "user", "content": 5}]', max_input_chars=100)
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
    ) -> None:
        what, advice = _WORDS[kind]
        places = [
            f"{name} {value}"
            for name, value in (("at byte", offset), ("message", message_index), ("field", field))
            if value is not None
        ]
        where = ", ".join(places)
        said = f"{what} {where}: {advice}" if where else f"{what}: {advice}"
        if line is not None:
            said = f"line {line}: {said}"
        if source is not None:
            said = f"{source if source.isprintable() else ascii(source)}: {said}"
        super().__init__(said)
        self.kind = kind
        self.offset = offset
        self.message_index = message_index
        self.field = field
        self.source = source
        self.line = line

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.kind, self.places)

    @property
    def places(self) -> dict[str, Any]:
        """Where it is, as the keywords that make an error of the same place."""
        return {name: getattr(self, name) for name in ("offset", "message_index", "field", "source", "line")}


def _rebuild(kind: str, places: dict[str, Any]) -> TranscriptError:
    return TranscriptError(kind, **places)


# kind -> (what is wrong, what to do)
_STORE_WORDS = {
    "io": ("the system failed at it", "nothing that was synced is lost; see `can_go_on`"),
    "missing": ("there is no such store", "a reader makes none"),
    "foreign": ("this is no turn store", "nothing was written to it; take another name for the store"),
    "version": ("the store was written by a newer recede", "update recede"),
    "damaged": ("the store is damaged", "what is intact stays readable; `recede store verify` names what is not"),
    "log": ("the log does not belong to the store", "put back the store that it lay beside, or move it away"),
    "locked": ("the store is in use", "close it there first, or open it with read_only=True"),
    "reading": ("the store is being read", "close its readers first"),
    "read_only": ("the store cannot be written to", "open it without read_only"),
    "broken": ("the store cannot go on", "close it and open it again: it has what was synced"),
    "gone": (
        "the file was deleted or replaced while the store was open",
        "put it back and sync again; until then nothing that is stored outlives this process",
    ),
    "too_long": ("the store cannot hold this", "nothing was added"),
    "closed": ("the store was closed", "open it again"),
    "forked": ("the store was opened by another process", "open it in this one, after the other has closed it"),
}


class StoreError(RecedeError, OSError):
    """A turn store could not do what it was asked for. What was synced before is still there.

    Attributes:
        kind: what is wrong, as one word: ``io`` (a full disk, a failed read or write), ``missing``, ``foreign`` (the
            file is no store), ``version`` (a newer format), ``damaged``, ``log`` (the log beside it is not its own),
            ``locked`` (a second writer), ``reading`` (readers are in the way), ``read_only``, ``broken`` (a sync failed
            before), ``gone`` (the file, or the log beside it, was deleted or replaced under its writer), ``too_long``,
            ``closed``, ``forked``.
        path: the file it lies in: that of the store, or the log beside it.
        page: the page of 4,096 bytes it lies in, from 0; None where no page is meant.
        what: what was found, or what was being done.
        errno: the number of the system's error; None where there was none.

    Example:
        >>> import pathlib, recede, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
        >>> _ = path.write_text("Not a store, but something that must not be lost.")
        >>> try:
        ...     recede.TurnStore(path)
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
        super().__init__(f"{name if name.isprintable() else ascii(name)}: {wrong}{where}: {advice}")
        self.kind = kind
        self.path = name
        self.page = page
        self.what = what
        self.errno = errno
        self._said = said

    def __reduce__(self) -> tuple[object, ...]:
        names = ("path", "page", "what", "errno")
        return _rebuild_store, (self.kind, {**{name: getattr(self, name) for name in names}, "said": self._said})


def _rebuild_store(kind: str, places: dict[str, Any]) -> StoreError:
    return StoreError(kind, **places)


def no_such(what: str, key: object) -> LookupError:
    """The error of a number or an id that nothing has. A number may have more digits than Python would write."""
    is_long = isinstance(key, int) and key.bit_length() > 512
    return LookupError(f"there is no {what} {f'{key:#x}'[:20] + '…' if is_long else repr(key)}")
