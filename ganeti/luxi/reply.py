"""The parts that answer a request: the handler, the quick handler, and the reply."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from ganeti import errors
from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.luxi import calls
from ganeti.net.unix_socket import TERMINATOR, Credentials

_LOG = logging.getLogger(__name__)

#: Bytes of a request that the I/O thread may answer itself.
_SMALL = 2048
#: Small messages whose meaning is kept: programs that poll send the same ones again and again.
_KEPT = 256


class Reply:
    """The answer to one request; :meth:`ok` or :meth:`fail` once, from any thread.

    What comes after the request timed out or its client left is dropped.
    """

    def __init__(
        self,
        send: Callable[[Reply, bytes, bool], None],
        detach: Callable[[Reply, Callable[[socket.socket, bytes], None]], None] | None = None,
    ) -> None:
        """``send`` is given the encoded answer, and whether the connection ends with it."""
        self._send = send
        self._detach = detach or _refuse_detach
        self._open = True
        self._lock = threading.Lock()
        #: called once when nobody waits for the answer any more
        self.on_abandoned: Callable[[], None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody waits for the answer."""
        return self._open

    def _take(self) -> bool:
        with self._lock:
            was_open, self._open = self._open, False
        return was_open

    def ok(self, value: object) -> None:
        if not self._take():
            return
        self.on_abandoned = None  # what it names may name this answer
        try:
            data = calls.encode_result(value)
        except (TypeError, ValueError) as err:
            _LOG.exception("answer cannot be written as JSON")
            data = calls.encode_error(errors.ProgrammerError(f"answer is not JSON: {err}"))
        self._send(self, data, False)

    def detach(self, keeper: Callable[[socket.socket, bytes], None]) -> bool:
        """Answer with null, and let the connection carry other bytes from then on.

        ``keeper`` gets the socket and what is to be sent first, in the thread of the server. False
        when nobody waits for the answer any more: then it is not called.
        """
        if not self._take():
            return False
        self.on_abandoned = None
        self._detach(self, keeper)
        return True

    def fail(self, err: BaseException) -> None:
        if not self._take():
            return
        self.on_abandoned = None
        close = isinstance(err, errors.RequestError)
        self._send(self, calls.encode_error(err), close)

    def time_out(self, seconds: float) -> None:
        """Answer that it took too long, and notify its worker."""
        abandoned = self.on_abandoned
        self.fail(errors.TimeoutError(f"no answer within {seconds:.0f} seconds"))
        if abandoned is not None:
            abandoned()

    def run(self, work: Callable[[], None]) -> None:
        """Run ``work``, which answers; an error that it raises is the answer.

        Does nothing when the client does not wait any more.
        """
        if not self._open:
            return
        try:
            work()
        except errors.GanetiError as err:
            self.fail(err)
        except OSError as err:
            _LOG.error("request failed: %s", files.failure(err))
            self.fail(files.failure(err))
        except Exception as err:  # noqa: BLE001 - reported to the client and to the log
            _LOG.exception("request failed with a bug")
            self.fail(errors.ProgrammerError(f"internal error: {type(err).__name__}: {err}"))

    def abandon(self) -> None:
        """The client is gone; notify its worker."""
        if self._take() and self.on_abandoned is not None:
            self.on_abandoned()


def _refuse_detach(reply: Reply, _keeper: object) -> None:
    reply._open = True
    reply.fail(errors.GenericError("this connection cannot carry other bytes"))


class Handler(Protocol):
    """The function that the server calls in a pool thread for each request."""

    def __call__(self, method: str, args: JsonObject, peer: Credentials, reply: Reply) -> None: ...


class Quick(Protocol):
    """Finds what answers a request, if that takes so little that the I/O thread may do it.

    It depends on the arguments alone, as the function that it returns is used for all requests with
    the same bytes, and does not raise. When the function raises, the handler is asked again.
    """

    def __call__(self, method: str, args: JsonObject) -> Callable[[], object] | None: ...


class QuickAnswers:
    """Answers small requests in the I/O thread, without the handler."""

    def __init__(self, quick: Quick) -> None:
        self._quick = quick
        self._kept = lru_cache(_KEPT)(self._find)

    def find(self, data: bytes) -> Callable[[], object] | None:
        """The function that answers these bytes, if they are one request that needs no thread."""
        return None if len(data) > _SMALL else self._kept(data)

    def _find(self, data: bytes) -> Callable[[], object] | None:
        if data.find(TERMINATOR) != len(data) - 1:
            return None
        try:
            name, args = calls.decode_request(data[:-1])
            return self._quick(name, calls.bind(calls.find(name), args))
        except errors.GanetiError:
            return None
