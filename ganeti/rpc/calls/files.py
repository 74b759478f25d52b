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
    @call(timeout=NORMAL)
    def etc_hosts_modify(self, mode: str, name: str, ip: str) -> None:
        """Add (``add``) a node to ``/etc/hosts``, or remove it (``remove``).

        Refused where root did not agree (``gnt-cluster init --no-etc-hosts``).
        """

    @abstractmethod
    @call(timeout=URGENT)
    def set_watcher_pause(self, until: float | None) -> None:
        """Pause the watcher until a time (seconds since 1970), or continue."""
