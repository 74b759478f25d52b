"""The interface of a repository of backups: a directory, restic or borg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from ganeti.backup.sums import Sums
from ganeti.model.backup import Manifest

#: Receives the bytes that are done and the bytes read; may block, and raise to end the work.
Tell = Callable[[int, int], None]
#: Is called from time to time while something works; may raise to end it.
Look = Callable[[], None]


class Sink(Protocol):
    """Writes the content of a disk; BlockDeviceError or GenericError when it cannot."""

    def write(self, offset: int, data: bytes) -> None: ...

    def zero(self, offset: int, length: int) -> None: ...

    def flush(self) -> None: ...


class Content(NamedTuple):
    """A file that shows the content of a disk. It must be left as it is."""

    path: Path
    format: str


class Repository(Protocol):
    """The backups of one instance in a repository.

    Raises (all methods): GenericError when something in it is damaged or cannot be read.
    """

    @property
    def label(self) -> str:
        """The name of the repository in messages."""

    @property
    def instance(self) -> str: ...

    def watch(self, look: Look) -> None:
        """``look`` is called at least every second while a program works."""

    def list_all(self) -> list[Manifest]:
        """All backups without their settings, the oldest first; one that is damaged says why."""

    def find(self, backup: str) -> Manifest:
        """One backup with its settings; OpPrereqError when there is none."""

    def newest(self) -> Manifest | None:
        """The last backup, maybe damaged; None without any."""

    def lock(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Keep others from changing backups of the instance; with ``shared`` they may read.

        Without ``shared`` it also removes what an interrupted backup left. A directory that is
        locked is refused at once; restic and borg wait for their lock for ``LOCK_WAIT`` seconds.

        Raises:
            GenericError: others hold the lock, or there is no repository.
        """

    def find_base(self, manifest: Manifest, index: int) -> Sums | None:
        """Checksums of a disk on which a new backup can be built; None to store all again."""

    def find_chain(self, manifest: Manifest, index: int) -> tuple[str, ...]:
        """This backup and those that it is built on, the newest first."""

    def open_disk(
        self, backup: str, index: int, size: int, base: tuple[Manifest, int] | None, work: Path
    ) -> AbstractContextManager[Sink]:
        """Open a disk of a new backup for writing its changes, in the order of offsets."""

    def finish(self, manifest: Manifest, tables: Sequence[Sums]) -> None:
        """Make it a backup: all of it is durable when this returns, and is there from then on."""

    def discard(self, backup: str) -> None:
        """Remove what a backup that failed has written; no error when that fails, too."""

    def note(self, manifest: Manifest) -> None:
        """Record the proof of a backup."""

    def remove(self, backups: Sequence[str], tell: Tell) -> None:
        """Remove backups; what later ones need of them stays."""

    def restore_disk(
        self, manifest: Manifest, index: int, target: Sink | None, work: Path, tell: Tell
    ) -> None:
        """Write the content of a disk, or only compare it with its checksums.

        Raises:
            GenericError: it is damaged; the text says where.
        """

    def place_disk(self, manifest: Manifest, index: int, work: Path, tell: Tell) -> Content:
        """A file with the content of a disk, which was compared with its checksums.

        It is valid under the lock. What has to be put together first is in ``work``.

        Raises:
            GenericError: it is damaged; the text says where.
        """
