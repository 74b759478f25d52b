"""The connection of a LUXI client: it waits for a master daemon that starts, and comes back.

A client connects with its first request and is for one thread. When the connection is lost, a
request that only reads is asked again on a new connection, and so is a job that is submitted with a
key; any other change is not, because nobody knows whether it was carried out. When another node
has become the master meanwhile, such a request goes there (:mod:`ganeti.luxi.remote`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ganeti import constants, errors, paths
from ganeti.base import patience, retry
from ganeti.base.clock import Deadline
from ganeti.luxi import calls, remote
from ganeti.luxi.absence import explain_absence, is_master_here
from ganeti.net import unix_socket

#: Seconds the socket may be missing right after its daemon ended (it is being restarted).
RESTART_GRACE = 2.0
#: Seconds a daemon that holds its pid file may take until it listens.
STARTING_LIMIT = 30.0
#: Seconds to look for a new master daemon when a connection was lost while reading.
RECONNECT_LIMIT = 60.0
#: Methods that submit jobs, with the index of the argument that is a key.
_KEYED = {"SubmitJob": 1, "SubmitManyJobs": 1}


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
        on_wait: Callable[[str], None] | None = None,
        follow: bool = False,
    ) -> None:
        """``path`` is the socket (default: that of this node); times are seconds, to be scaled.

        ``on_lost`` is called once whenever the connection is lost, before it is made again.
        ``on_wait`` is called before a daemon is waited for that has died; without it, it is waited
        for only if it starts already. With ``follow`` the connection goes to another node
        when that one has become the master.
        """
        self._paths = paths.current()
        self._path = path or self._paths.luxi_socket
        self._connect_timeout = patience.scale(connect_timeout)
        self._io_timeout = patience.scale(io_timeout)
        self._reconnect_limit = patience.scale(reconnect_limit)
        self._on_lost = on_lost
        self._on_wait = on_wait
        self._remote = remote.Remote(self._io_timeout) if follow else None
        self._link: unix_socket.FramedClient | None = None

    def close(self) -> None:
        """Close the connection; the next request opens a new one. Idempotent."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        if self._remote is not None:
            self._remote.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, name: str, *args: object) -> Any:
        """Send any request and return its result."""
        return self._read(calls.decode_response, name, args)

    def fetch(self, name: str, *args: object) -> bytes:
        """Send any request and return the JSON text of its result, without reading it."""
        data: bytes = self._read(calls.result_bytes, name, args)
        return data

    def _read(self, decode: Callable[[bytes], Any], name: str, args: Sequence[object]) -> Any:
        method = calls.find(name)
        calls.bind(method, args)
        message = calls.encode_request(name, args)
        repeatable = method.repeatable or _has_key(name, args)
        try:
            answer = self._exchange(message, repeatable=repeatable)
        except errors.ConnectionClosedError as err:
            self.close()
            if not repeatable:
                raise errors.ConnectionClosedError(
                    f"{errors.text(err)}. Nobody knows whether {name} was carried out:"
                    " check 'gnt-job list' before trying again"
                ) from err
            answer = self._send_again(message, errors.text(err), repeatable=True)
        try:
            return decode(answer)
        except errors.RequestError:
            # The server hangs up after what it could not understand.
            self.close()
            raise

    def _exchange(self, message: bytes, *, repeatable: bool) -> bytes:
        if self._link is not None and not self._link.is_idle():
            # Nothing was sent yet, so that this is safe for changes too.
            self.close()
            cause = "The master daemon closed the connection"
            return self._send_again(message, cause, repeatable=repeatable)
        if self._link is None:
            self._link = self._connect()
        return self._link.call(message)

    def _send_again(self, message: bytes, cause: str, *, repeatable: bool) -> bytes:
        """Send a request on a new connection, and if it is repeatable on as many as it needs."""
        if self._on_lost is not None:
            self._on_lost(cause)
        end = Deadline(self._reconnect_limit)
        while True:
            self._link = self._reopen(end.left, follow=repeatable)
            try:
                return self._link.call(message)
            except errors.ConnectionClosedError:
                self.close()
                if not repeatable or end.left <= 0:
                    raise

    def _reopen(self, limit: float, *, follow: bool) -> unix_socket.FramedClient:
        """Connect to the master daemon of this node, or of the one that is the master by then."""
        if self._remote is None or not follow:
            return self._open_link(max(limit, 0.01))

        def attempt() -> unix_socket.FramedClient | None:
            assert self._remote is not None
            try:
                return self._open_link(0.0)
            except errors.NoMasterError:
                return self._remote.open(self._paths)

        # Nothing tells when somebody begins to listen, hence the small intervals.
        found = retry.retry_until(attempt, timeout=limit, first=0.02, largest=0.5)
        if found is None:
            raise explain_absence(self._path, self._paths)
        return found

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
        grace = STARTING_LIMIT if starting else RESTART_GRACE
        if self._on_wait is not None and not self._paths.master_stopped_file.exists():
            grace = STARTING_LIMIT
            self._on_wait(f"Waiting for the master daemon for up to {grace:.0f} seconds ...")
        return min(self._connect_timeout, patience.scale(grace))


def _has_key(name: str, args: Sequence[object]) -> bool:
    """Whether a request submits jobs with a key, so that they are not made twice."""
    index = _KEYED.get(name)
    return index is not None and args[index : index + 1] not in ((), (None,))
