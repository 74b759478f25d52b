"""Small files of one directory, durable with a single flush.

A write goes to a journal, which is flushed. The files follow a moment later
(:meth:`FileJournal.catch_up`): they are replaced and flushed, each once with its newest content,
and the journal forgets them. After a crash, opening the journal does what was left to do. So a file
that changes three times in a moment costs one flush for each change, and is itself written once.
Of a large file a write may hold the members that change (see ``base/file_parts.py``).

A record of the journal has for each file a text, its whole content, or an object, what changes.

Whoever opens the journal must have the directory for itself (see ``base/files.py:FileLock``).
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ganeti import errors
from ganeti.base import file_parts, files, journal
from ganeti.base.file_parts import Contents, Parts
from ganeti.base.journal import Journal

_LOG = logging.getLogger(__name__)

#: Seconds from a write to the moment when the files follow, if no further write comes.
DELAY = 1.0
#: Seconds after which they follow even while writes go on.
LONGEST_DELAY = 10.0
#: Bytes of journal after which they follow at once.
LIMIT = 2 * 1024 * 1024
#: Seconds before the next try when the files could not be written.
RETRY_AFTER = 5.0
NAME = "journal"


class FileJournal:
    """Thread-safe. Names may have one directory in them (``keys/abc``), which must exist."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / NAME
        self._journal = Journal(self.path)
        #: guards the journal
        self._lock = threading.Lock()
        #: held while files are replaced
        self._catching_up = threading.Lock()

    def open(self) -> None:
        """Take what is in the journal into the files, and be ready for writes.

        Raises:
            ConfigurationError: the journal is damaged; nothing was changed.
            OSError: the files cannot be written; the journal still has everything.
        """
        with self._catching_up:
            with self._lock:
                self._journal.open()
            self._catch_up()

    def close(self) -> None:
        """Let go of the journal; idempotent. Contents that the files do not have yet stay in it."""
        with self._catching_up, self._lock:
            self._journal.close()

    def write(self, contents: Contents) -> None:
        """Make new contents of files (UTF-8) durable; one flush.

        Raises:
            FileError: the disk is full or the journal cannot be written; nothing of this will
                ever get into the files.
        """
        texts = {name: data.decode("utf-8") for name, data in contents.whole.items()}
        # one record has a whole or its changes
        records = [record for record in (texts, contents.parts) if record]
        with self._lock:
            self._journal.append(records)

    @property
    def size(self) -> int:
        """Bytes in the journal."""
        return self._journal.size

    def read_pending(self) -> dict[str, bytes]:
        """Contents that the files do not have yet, read from the journal; needs no :meth:`open`.

        Raises:
            ConfigurationError: the journal is damaged.
        """
        return self._contents(journal.read(self.path))

    def catch_up(self) -> None:
        """Bring the files up to date and shorten the journal; blocks for some flushes.

        Writes go on meanwhile; what they bring is for the next time.

        Raises:
            OSError: a file cannot be written; the journal keeps everything.
        """
        with self._catching_up:
            self._catch_up()

    @contextlib.contextmanager
    def hold_caught_up(self) -> Iterator[None]:
        """Let the files catch up, then allow no writes: to read, move or remove the files."""
        with self._catching_up:
            self._catch_up()
            yield

    def _catch_up(self) -> None:
        with self._lock:
            size = self._journal.size
            data = self._journal.begin(size) if size else b""
        if not size:
            return
        records = (journal.decode(line) for line in data.splitlines())
        newest = self._contents(record for record in records if record)
        files.write_many(self.directory, newest)
        with self._lock:
            self._journal.drop(size)

    def _contents(self, records: Iterable[Mapping[str, str | Parts]]) -> dict[str, bytes]:
        """The files as they are after some records."""
        newest = Contents()
        for record in records:
            newest.add(
                {
                    name: content.encode("utf-8") if isinstance(content, str) else content
                    for name, content in record.items()
                }
            )
        found = dict(newest.whole)
        for name, parts in newest.parts.items():
            try:
                data = found[name] if name in found else (self.directory / name).read_bytes()
                found[name] = file_parts.apply(data, parts)
            except (FileNotFoundError, errors.ParseError) as err:
                # Whoever reads the file finds the damage.
                _LOG.error("%s cannot be brought up to date: %s", self.directory / name, err)
        return found


class LateWriter:
    """A thread that lets the files catch up some time after :meth:`wrote`."""

    def __init__(self, size: Callable[[], int], catch_up: Callable[[], None], name: str) -> None:
        """``catch_up`` may raise OSError or GanetiError: it is called again later."""
        self._size = size
        self._catch_up = catch_up
        self._cond = threading.Condition()
        self._news = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def wrote(self) -> None:
        """There is something to catch up with."""
        with self._cond:
            self._news += 1
            if self._news == 1 or self._size() > LIMIT:
                self._cond.notify()

    def stop(self) -> None:
        """End the thread, without settling."""
        with self._cond:
            self._stopping = True
            self._cond.notify()
        self._thread.join()

    def _loop(self) -> None:
        while self._wait_for_calm():
            try:
                self._catch_up()
            except (OSError, errors.GanetiError) as err:
                reason = files.failure(err) if isinstance(err, OSError) else err
                _LOG.error("files do not follow their journal, trying again: %s", reason)
                with self._cond:
                    self._news += 1
                    self._cond.wait_for(lambda: self._stopping, RETRY_AFTER)

    def _wait_for_calm(self) -> bool:
        """Wait for a write, and until no more come; False when told to stop."""
        with self._cond:
            self._cond.wait_for(lambda: self._news or self._stopping)
            for _ in range(int(LONGEST_DELAY / DELAY)):
                seen = self._news
                full = self._cond.wait_for(lambda: self._stopping or self._size() > LIMIT, DELAY)
                if full or seen == self._news:
                    break
            self._news = 0
            return not self._stopping
