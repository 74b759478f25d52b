"""Node calls about files: distributed files, ssconf, the watcher's pause."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.rpc.timing import NORMAL, URGENT, call


class FileCalls(ABC):
    """Answered by :class:`ganeti.node.files.Files`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def upload_file_single(
        self,
        file_name: str,
        content: list[Any],
        mode: int,
        uid: str,
        gid: str,
        atime: float,
        mtime: float,
    ) -> None:
        """Replace one of the files that the cluster distributes; any other path is refused."""

    @abstractmethod
    @call(timeout=NORMAL)
    def write_ssconf_files(self, values: dict[str, str]) -> None:
        """Replace ``ssconf_<key>`` files; unknown keys are refused."""

    @abstractmethod
    @call(timeout=URGENT)
    def set_watcher_pause(self, until: float | None) -> None:
        """Pause the watcher until a time (seconds since the epoch), or continue."""
