"""The connection of a LUXI client: it waits for a master daemon that starts, and comes back.

A client connects with its first request and is for one thread. When the connection is lost, a
request that only reads is asked again on a new connection; a request that changes something is
not, because nobody knows whether it was carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from ganeti import constants, errors, paths
from ganeti.base import patience
from ganeti.luxi import calls
from ganeti.luxi.absence import explain_absence, is_master_here
from ganeti.net import unix_socket

#: Seconds the socket may be missing right after its daemon ended (it is being restarted).
RESTART_GRACE = 2.0
#: Seconds a daemon that holds its pid file may take until it listens.
STARTING_LIMIT = 30.0
#: Seconds to look for a new master daemon when a connection was lost while reading.
RECONNECT_LIMIT = 60.0


class Connection:
    """A connection to the master daemon.

    Every method may raise, besides the errors that the master sends as their own classes:

    NoMasterError: nobody listens; the text tells what to do (see :func:`explain_absence`).
    TimeoutError: no answer within twice ``io_timeout`` seconds.
    ConnectionClosedError: the daemon ended before it answered.
    RequestError: the daemon did not understand the request.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        connect_timeout: float = 30.0,
        io_timeout: float = float(constants.LUXI_READ_TIMEOUT),
        reconnect_limit: float = RECONNECT_LIMIT,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        """``path`` is the socket (default: that of this node); times are seconds, to be scaled.

        ``on_lost`` is called once whenever the connection is lost, before it is made again.
        """
        self._paths = paths.current()
        self._path = path or self._paths.luxi_socket
        self._connect_timeout = patience.scale(connect_timeout)
        self._io_timeout = patience.scale(io_timeout)
        self._reconnect_limit = patience.scale(reconnect_limit)
        self._on_lost = on_lost
        self._link: unix_socket.FramedClient | None = None

    def connect(self) -> None:
        """Open the connection unless it is open.

        Raises:
            NoMasterError: no master daemon listens here.
        """
        if self._link is None:
            self._link = self._connect()

    def close(self) -> None:
        """Close the connection; the next request opens a new one. Idempotent."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def call(self, name: str, *args: object) -> Any:
        """Send any request and return its result."""
        return self._read(calls.decode_response, name, args)

    def fetch(self, name: str, *args: object) -> bytes:
        """Send any request and return the JSON text of its result, without reading it."""
        data: bytes = self._read(calls.result_bytes, name, args)
        return data

    def _read(self, decode: Callable[[bytes], object], name: str, args: Sequence[object]) -> Any:
        method = calls.find(name)
        calls.bind(method, args)
        message = calls.encode_request(name, args)
        try:
            answer = self._exchange(message)
        except errors.ConnectionClosedError as err:
            self.close()
            # With a key the same job is not made twice.
            if not (method.repeatable or (name == "SubmitJob" and args[1:2] not in ((), (None,)))):
                raise errors.ConnectionClosedError(
                    f"{errors.text(err)}. Nobody knows whether {name} was carried out:"
                    " check 'gnt-job list' before trying again"
                ) from err
            answer = self._send_again(message, errors.text(err))
        try:
            return decode(answer)
        except errors.RequestError:
            # The server hangs up after what it could not understand.
            self.close()
            raise

    def _exchange(self, message: bytes) -> bytes:
        if self._link is not None and not self._link.is_idle():
            # Nothing was sent yet, so that this is safe for changes too.
            self.close()
            return self._send_again(message, "The master daemon closed the connection")
        if self._link is None:
            self._link = self._connect()
        return self._link.call(message)

    def _send_again(self, message: bytes, cause: str) -> bytes:
        if self._on_lost is not None:
            self._on_lost(cause)
        self._link = self._open_link(self._reconnect_limit)
        return self._link.call(message)

    def _connect(self) -> unix_socket.FramedClient:
        try:
            return self._open_link(0.0)
        except errors.NoMasterError:
            grace = self._grace()
            if not grace:
                raise explain_absence(self._path, self._paths) from None
        return self._open_link(grace)

    def _open_link(self, grace: float) -> unix_socket.FramedClient:
        """Connect; a missing listener is waited for up to ``grace`` seconds."""
        try:
            return unix_socket.FramedClient(
                self._path,
                connect_timeout=grace or self._connect_timeout,
                io_timeout=self._io_timeout,
                retry_connect=bool(grace),
            )
        except errors.NoMasterError:
            if not grace:
                raise
            raise explain_absence(self._path, self._paths) from None

    def _grace(self) -> float:
        """Seconds worth waiting for a listener that is not there now."""
        if not is_master_here(self._paths):
            return 0.0
        from ganeti.base import daemon

        starting = daemon.running_pid(self._paths.pid_file(constants.MASTERD)) is not None
        grace = patience.scale(STARTING_LIMIT if starting else RESTART_GRACE)
        return min(self._connect_timeout, grace)
