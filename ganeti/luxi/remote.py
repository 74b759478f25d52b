"""The way to a master daemon on another node: LUXI through the remote shell.

Only who may log in there as root gets through. ``gnt-debug relay`` is at the other end.
"""

from __future__ import annotations

import socket
import subprocess

from ganeti.base import remote_shell
from ganeti.luxi.absence import is_master_here, master_name
from ganeti.net import unix_socket
from ganeti.paths import Paths

#: What runs on the master node.
COMMAND = ("gnt-debug", "relay")


class Remote:
    """At most one connection at a time; for one thread."""

    def __init__(self, io_timeout: float) -> None:
        self._io_timeout = io_timeout
        self._child: subprocess.Popen[bytes] | None = None

    def open(self, where: Paths) -> unix_socket.FramedClient | None:
        """A connection to the master that this node knows.

        None when that is this node itself, or when there is no remote shell. A connection that
        cannot be made is closed by the other end, which the first call finds out.
        """
        name = master_name(where)
        if name is None or is_master_here(where):
            return None
        self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._child = subprocess.Popen(
                    remote_shell.argv(name, COMMAND),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                )
            except OSError:  # the caller says where to log in by hand
                ours.close()
                return None
        return unix_socket.FramedClient(where.luxi_socket, io_timeout=self._io_timeout, sock=ours)

    def close(self) -> None:
        """End the remote shell. Idempotent."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
