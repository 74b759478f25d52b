"""The history of the configuration: all changes, also those that are no longer in the journal.

When the journal is shortened, the lines that leave it go to a segment,
``<data>/history/<first serial>-<last serial>.gz`` (mode 0600). A segment is on disk before its
lines leave the journal. After a crash a change may therefore be in both; readers tell by the serial
and take it once. Small segments are joined. When all of them exceed ``MAX_SIZE``, the oldest ones
are removed.

Only the master has segments. After a failover the history of the new master begins with its copy of
the journal: the changes since the last checkpoint of the former master. Older segments stay on the
former master. If that node becomes the master again, it does not have the changes made meanwhile,
and readers report which are missing.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files, journal
from ganeti.paths import Paths

#: Most bytes of all segments: about half a million changes (ten times as much text). To read all of
#: them takes about five seconds.
MAX_SIZE = 32 * 1024 * 1024
#: Two segments are joined when together they have at most so many bytes.
SMALL = 256 * 1024

_NAME = re.compile(r"([0-9]{1,18})-([0-9]{1,18})\.gz")
_HEAD = re.compile(rb'[0-9a-f]{8} \{"serial":([0-9]{1,18}),"time":([0-9.e+]{1,30})[,}]')


@dataclass(frozen=True, slots=True)
class Line:
    """One line; the whole of it is only decoded on demand, as most are skipped."""

    serial: int
    #: when the change was made; seconds since 1970
    time: float
    raw: bytes

    def record(self) -> journal.Record:
        """The whole record; ConfigurationError when it is damaged."""
        return _decode(self.raw)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with the changes from ``first`` to ``last``."""

    first: int
    last: int
    path: Path

    def is_inside(self, other: Segment) -> bool:
        return other.first <= self.first and self.last <= other.last


class History:
    """All changes recorded on this node. Readers take no lock and never wait."""

    def __init__(self, paths: Paths) -> None:
        self._directory = paths.history
        self._journal = paths.journal_file

    # keeping ---------------------------------------------------------------------------------

    def keep(self, lines: bytes) -> None:
        """Write complete lines of the journal to a segment; they are on disk at return.

        For one caller at a time. May be repeated with the same lines. Blocks for some flushes of
        the disk and for the compression (about 20 ms for each MiB).

        Raises:
            OSError: the disk is full; nothing is lost.
        """
        first = _line(lines.partition(b"\n")[0]).serial
        last = _line(lines[:-1].rpartition(b"\n")[2]).serial
        files.ensure_dir(self._directory, 0o700)
        for path in self._directory.glob(".*"):  # unfinished files of a crash
            path.unlink()
        known = self.segments()
        made = self._write(first, last, gzip.compress(lines, 6, mtime=0))
        for segment in known:
            # Lines from the new beginning on are in the new segment too, or belong to changes that
            # were lost with a master and made again.
            if segment.last < first or segment.path == made:
                continue
            if segment.first < first:
                kept = [raw for raw in _read(segment.path) if _line(raw).serial < first]
                data = gzip.compress(b"".join(raw + b"\n" for raw in kept), 6, mtime=0)
                self._write(segment.first, first - 1, data)
            segment.path.unlink()
        self._join()
        self._prune()

    def _write(self, first: int, last: int, data: bytes) -> Path:
        path = self._directory / f"{first}-{last}.gz"
        files.write_atomic(path, data, mode=0o600)
        return path

    def _join(self) -> None:
        """Join the newest segments while they are small."""
        segments = self.segments()
        while len(segments) > 1:
            newer, older = segments[:2]
            if older.last + 1 != newer.first or _size(older) + _size(newer) > SMALL:
                break
            data = older.path.read_bytes() + newer.path.read_bytes()
            self._write(older.first, newer.last, data)
            segments = self.segments()
        for segment in set(self._all()) - set(segments):
            segment.path.unlink()

    def _prune(self) -> None:
        """Remove the oldest segments beyond MAX_SIZE; the newest one always stays."""
        room = MAX_SIZE
        for number, segment in enumerate(self.segments()):
            room -= _size(segment)
            if room < 0 and number:
                segment.path.unlink()

    # reading ---------------------------------------------------------------------------------

    def segments(self) -> list[Segment]:
        """The segments, newest first, without those whose changes are all in another one."""
        found: list[Segment] = []
        for segment in sorted(self._all(), key=lambda s: (-s.last, s.first)):
            if not any(segment.is_inside(other) for other in found):
                found.append(segment)
        return found

    def _all(self) -> list[Segment]:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        matches = [match for name in names if (match := _NAME.fullmatch(name))]
        return [Segment(int(m[1]), int(m[2]), self._directory / m[0]) for m in matches]

    def read_newest_first(self, upto: int, born: float) -> Iterator[Line]:
        """Each change once, from serial ``upto`` backwards; skips serials that are not recorded.

        Ends at changes older than ``born``, the creation of the cluster: those are of a former one.

        Raises:
            ConfigurationError: a segment is damaged; the text names it.
        """
        floor = upto + 1
        for line in self._read_backwards(upto):
            if line.serial >= floor:
                continue
            if line.time < born:
                return
            floor = line.serial
            yield line

    def _read_backwards(self, upto: int) -> Iterator[Line]:
        # The journal first: lines that leave it meanwhile are then found in a segment.
        floor = upto + 1
        for raw in reversed(self._journal_lines()):
            line = _line(raw)
            floor = min(floor, line.serial)
            yield line
        while True:
            segment = next((s for s in self.segments() if s.first < floor), None)
            if segment is None:
                return
            try:
                lines = _read(segment.path)
            except FileNotFoundError:
                continue  # just joined with another one, or removed
            yield from map(_line, reversed(lines))
            floor = segment.first

    def _journal_lines(self) -> Sequence[bytes]:
        try:
            data = self._journal.read_bytes()
        except FileNotFoundError:
            return []
        return data.split(b"\n")[:-1]  # the last line, if incomplete, is just being written

    def beginning(self, upto: int, born: float) -> Line | None:
        """The oldest change from which on none is missing up to ``upto``; None without a change."""
        begin: Line | None = None
        head = next(iter(self._journal_lines()), None)
        if head is not None:
            line = _line(head)
            begin = line if line.serial <= upto else None
        expected = begin.serial if begin else upto + 1
        for segment in self.segments():
            if segment.first >= expected:
                continue
            try:
                line = _first_line(segment.path)
            except FileNotFoundError:
                return self.beginning(upto, born)
            if segment.last < expected - 1 or line.time < born:
                break
            begin, expected = line, segment.first
        return begin


def _size(segment: Segment) -> int:
    return segment.path.stat().st_size


def _line(raw: bytes) -> Line:
    match = _HEAD.match(raw)
    if match:
        return Line(int(match[1]), float(match[2]), raw)
    record = _decode(raw)
    return Line(int(record["serial"]), float(record["time"]), raw)


def _decode(raw: bytes) -> journal.Record:
    record = journal.decode(raw)
    if record is None:
        raise errors.ConfigurationError(
            f"the history of the configuration is damaged at {raw[:60]!r}: restore the files"
            " in its directory from a backup, or move the damaged one away"
        )
    return record


def _make_error(path: Path, err: Exception) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        f"{path} is damaged ({err}): restore it from a backup, or move it away to continue without"
        " this part of the history"
    )


def _read(path: Path) -> list[bytes]:
    """Lines of a segment."""
    data = path.read_bytes()
    try:
        return gzip.decompress(data).split(b"\n")[:-1]
    except (OSError, EOFError, zlib.error) as err:
        raise _make_error(path, err) from err


def _first_line(path: Path) -> Line:
    with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as file:
        try:
            return _line(file.readline().rstrip(b"\n"))
        except (OSError, EOFError, zlib.error) as err:
            raise _make_error(path, err) from err
