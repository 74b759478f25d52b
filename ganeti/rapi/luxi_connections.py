"""LUXI connections of the remote API: each worker thread keeps one open."""

from __future__ import annotations

import threading
from pathlib import Path

from ganeti.luxi.client import Client

#: Seconds a request may wait for a master daemon that is being restarted.
PATIENCE = 2.0


class Clients:
    """Call it for the client of the calling thread."""

    def __init__(self, path: Path | None = None, *, io_timeout: float = 180.0) -> None:
        """``path`` is the LUXI socket (default: that of this node); times are seconds."""
        self._path = path
        self._io_timeout = io_timeout
        self._local = threading.local()
        self._all: list[Client] = []

    def __call__(self) -> Client:
        client: Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = Client(
                self._path,
                connect_timeout=PATIENCE,
                io_timeout=self._io_timeout,
                reconnect_limit=PATIENCE,
            )
            self._all.append(client)
        return client

    def close(self) -> None:
        """Close the connections of all threads; call it when none of them works any more."""
        for client in self._all:
            client.close()
