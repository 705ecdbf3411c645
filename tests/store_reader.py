"""Reads a turn store. Written from docs/store-format.md alone: nothing of recede is used."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

Record = tuple[int, int, list[bytes]]  # kind, number, fields


class Log:
    """The pages of a log up to its last complete commit. Its ID is None if it has none."""

    def __init__(self, log: bytes) -> None:
        self.pages: dict[int, bytes] = {}
        self.id: int | None = None
        self.log, self.base, self.salt = log, 0, 0
        if len(log) < 4_096 or log[:16] != b"recede  log\r\n\x1a\n\0":
            return
        version, page_bytes, identity, self.base, self.salt, checksum = struct.unpack_from("<IIQQQI", log, 16)
        if checksum != zlib.crc32(log[:48]):
            return
        assert version in (1, 2) and page_bytes == 4_096
        end, commits = self.commits(checksum)
        if commits:
            self.id = identity
        for at in range(end + 4_096, len(log) - 19, 4_096):
            _, length, unsynced, commit, salt = struct.unpack_from("<IHHII", log, at)
            is_frame = salt == self.salt & 0xFFFFFFFF and length <= 4_096
            assert not is_frame or commit - unsynced <= self.base + commits + 1, "the log is damaged"

    def refuse_later(self, commits: int) -> None:
        """Refuse a log without commits whose frames are of later ones than those of the file."""
        of_first = self.log[4_108:4_112]
        for at in range(4_096, len(self.log) - 19, 4_096):
            _, length, _, commit, _ = struct.unpack_from("<IHHII", self.log, at)
            is_frame = self.log[at + 12 : at + 16] == of_first and 0 < length <= 4_096
            assert self.salt or not is_frame or commit <= commits, "the first block of the log is damaged"

    def commits(self, checksum: int) -> tuple[int, int]:
        """Where the last complete commit ends, and how many there are."""
        at = end = 4_096
        commits, commit = 0, {}
        while at + 20 <= len(self.log):
            number, length, _, _, salt, wanted = struct.unpack_from("<IHHIII", self.log, at)
            page = self.log[at + 20 : at + 20 + length]
            checksum = zlib.crc32(page, zlib.crc32(self.log[at : at + 16], checksum))
            if salt != self.salt & 0xFFFFFFFF or length > 4_096 or len(page) < length or checksum != wanted:
                break
            commit[number] = page.ljust(4_096, b"\0")
            at += 20 + length
            if number == 0:
                self.pages |= commit
                at = end = -(-at // 4_096) * 4_096
                commits, commit = commits + 1, {}
        return end, commits


class Reader:
    """A store in one file, and its log if it was not closed."""

    def __init__(self, path: Path) -> None:
        self.file = path.read_bytes()
        beside = path.with_name(f"{path.name}-log")
        log = Log(beside.read_bytes() if beside.exists() else b"")
        self.logged = log.pages
        identity, commits = struct.unpack_from("<QQ", self.file, 40)
        if log.id is None:
            log.refuse_later(commits)
        else:
            (newest,) = struct.unpack_from("<Q", self.logged[0], 48)
            assert log.id == identity and log.base <= commits <= newest
        head = self.page(0, 1)
        assert head[16:32] == b"recede store\r\n\x1a\n"
        version, page_bytes = struct.unpack_from("<II", head, 32)
        assert (version, page_bytes) == (1, 4_096)
        (self.pages,) = struct.unpack_from("<I", head, 56)
        self.level, self.split, self.top, self.height = struct.unpack_from("<IIII", head, 68)
        (self.masked_before,) = struct.unpack_from("<Q", head, 112)
        self.last = struct.unpack_from("<4Q", head, 120)

    def page(self, number: int, *kinds: int) -> bytes:
        page = self.logged.get(number) or self.file[number * 4_096 : number * 4_096 + 4_096]
        assert struct.unpack_from("<I", page)[0] == zlib.crc32(struct.pack("<I", number) + page[4:])
        assert page[4] in kinds
        return page

    def bucket_page(self, bucket: int) -> int:
        number = self.top
        for height in range(self.height, 0, -1):
            entry = bucket // 1_020 ** (height - 1) % 1_020
            (number,) = struct.unpack_from("<I", self.page(number, 2), 16 + 4 * entry)
        return number

    def find(self, kind: int, number: int) -> Record:
        group = number // 8
        bucket = group % 2 ** (self.level + 1)
        if bucket >= 2**self.level + self.split:
            bucket = group % 2**self.level
        return next(record for record in self.bucket(bucket) if record[:2] == (kind, number))

    def raw(self, kind: int, number: int) -> bytes:
        """A record as it lies in its bucket."""
        buckets = range(2**self.level + self.split)
        return next(raw for bucket in buckets for raw in self.raws(bucket) if self.record(raw)[:2] == (kind, number))

    def bucket(self, bucket: int) -> Iterator[Record]:
        return map(self.record, self.raws(bucket))

    def raws(self, bucket: int) -> Iterator[bytes]:
        number = self.bucket_page(bucket)
        while number:
            page = self.page(number, 3, 4)
            count, _, _, number = struct.unpack_from("<HHHI", page, 6)
            at = 16
            for _ in range(count):
                (length,) = struct.unpack_from("<H", page, at)
                yield page[at : at + length]
                at += length

    def record(self, record: bytes) -> Record:
        kind, flags, number = struct.unpack_from("<BBQ", record, 2)
        rest = record[12:]
        if flags == 0:
            return kind, number, self.fields(rest)
        last = [self.text(rest[-16:])]
        return kind, number, self.fields(rest[:-16] if flags == 1 else self.text(rest[:16])) + last

    def fields(self, data: bytes) -> list[bytes]:
        (count,) = struct.unpack_from("<H", data)
        fields, at = [], 2
        for _ in range(count):
            (length,) = struct.unpack_from("<I", data, at)
            fields.append(data[at + 4 : at + 4 + length])
            at += 4 + length
        assert at == len(data)
        return fields

    def text(self, reference: bytes) -> bytes:
        number, offset, _, length, checksum = struct.unpack("<IHHII", reference)
        text = b""
        while len(text) < length:
            page = self.page(number, 5)
            used, _, number = struct.unpack_from("<HHI", page, 8)
            text += page[16 + offset : 16 + min(used, offset + length - len(text))]
            offset = 0
        assert zlib.crc32(text) == checksum
        return text


def header_of(options: bytes, version: int = 2) -> bytes:
    """The only field of record 1 of kind 4, by which a store is that of a history."""
    return b"recede s" + struct.pack("<H", version) + options


def event(field: bytes) -> tuple[int, ...]:
    """The numbers of an event."""
    return struct.unpack(f"<{len(field) // 8}Q", field)


def event_of(*numbers: int) -> bytes:
    """The first field of an event with these numbers."""
    return struct.pack(f"<{len(numbers)}Q", *numbers)
