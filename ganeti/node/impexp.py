"""Sending the dump of a disk to another node, of this cluster or another one, over TLS.

On the wire: a TLS connection with certificates on both sides, then ``M=`` and the magic word, then
the dump, compressed by a tool or not, and the end of the stream with its close_notify. That is
what Ganeti's own transfers look like. The receiver says its close_notify when everything is on its
disk. A sender from here waits for that; one from somewhere else need not.

Every transfer is a thread of this daemon and ends with it. Both ends are followed by a master; one
that nobody asks about for five minutes ends.
"""

from __future__ import annotations

import contextlib
import contextvars
import hmac
import logging
import secrets
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import files
from ganeti.guest_os import definition, definition_files, environment, scripts
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSSocket
from ganeti.node import streams, x509
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.node.exports import Exports
from ganeti.rpc.calls.impexp import ImpexpCalls
from ganeti.rpc.objects import (
    ImportExportOptions,
    ImportExportStatus,
    NodeDisk,
    NodeInstance,
)
from ganeti.storage import measure

log = logging.getLogger(__name__)

#: Seconds until the ends must have found each other, unless the master says otherwise; of one
#: attempt; between two; and of a silence in the middle.
CONNECT_TIMEOUT, _ATTEMPT, _PAUSE, STALLED = 180.0, 20.0, 1.0, 300.0
#: Seconds that the last writes of a receiver may take.
_LAST_WRITES = 3600.0
#: Seconds that a question waits for news, and after which a transfer nobody asks about ends.
_PATIENCE, ABANDONED = 2.0, 300.0
_MIB = 1024 * 1024
_PREFIX = b"M="
_DIR_MODE = 0o700


class _Transfer:
    """One end of a transfer, its thread, and the state that a master sees."""

    def __init__(self, name: str, component: str, context: NodeContext) -> None:
        self.name = name
        self.component = component
        self.children = streams.Children()
        self._context = context
        self.clock = context.clock
        self._changed = threading.Condition()
        self._news = True
        self._asked = self._begun = self.clock.monotonic()
        self._moved = 0.0
        self._done = 0
        self._size: Callable[[], int | None] = lambda: None
        self._aborted = threading.Event()
        self._thread: threading.Thread | None = None
        self.socket: TLSSocket | socket.socket | None = None
        now = self.clock.now()
        self.status = ImportExportStatus(ctime=now, mtime=now)

    def begin(self, work: Callable[[_Transfer], None]) -> None:
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run, work),
            name=f"transfer {self.component}",
            daemon=True,
        )
        self._thread.start()

    def _run(self, work: Callable[[_Transfer], None]) -> None:
        error: str | None = "it ended early"
        try:
            work(self)
            error = None
        except errors.GanetiError as err:
            error = errors.text(err)
        except OSError as err:
            error = err.strerror or str(err) or type(err).__name__
        except Exception as err:  # a defect, too, is reported to the master that asks
            log.exception("transfer %s ended by a defect", self.name)
            error = f"internal error: {err!r}"
        finally:
            self.children.end()
            self._close(in_order=error is None)
        if error is not None and self._aborted.is_set():
            error = "it was ended early"
        if error is not None:
            log.warning("transfer of %s: %s", self.component, error)
        with self._changed:
            self.status.error_message = error
            self.status.exit_status = 0 if error is None else 1
            self._note_change()

    def _close(self, *, in_order: bool) -> None:
        """Close the connection; without close_notify when it is not complete."""
        if self.socket is None:
            return
        if not in_order:
            self._cut()
        with contextlib.suppress(OSError):
            self.socket.close()

    def _cut(self) -> None:
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def _note_change(self) -> None:
        self._news = True
        self.status.mtime = self.clock.now()
        self._changed.notify_all()

    # what the work says

    def note_connected(self, size: Callable[[], int | None]) -> None:
        with self._changed:
            self.status.connected = True
            self._begun = self.clock.monotonic()
            self._size = size
            self._note_change()

    def add(self, count: int) -> None:
        """So many bytes more are done; BlockDeviceError when the transfer is to end."""
        self._done += count
        self.check_goes_on()

    def check_goes_on(self) -> None:
        """Refuse to go on when somebody ended it, or nobody asks any more; BlockDeviceError."""
        if self._aborted.is_set():
            raise errors.BlockDeviceError("it was ended early")
        if self._context.stopping.is_set():
            raise errors.BlockDeviceError("the node daemon stops")
        if self.is_abandoned:
            raise errors.BlockDeviceError(f"the master has not asked for {ABANDONED:.0f} s")

    def wait(self, seconds: float) -> None:
        """Wait, but not longer than until it is ended early."""
        self._aborted.wait(seconds)

    # what the master asks

    @property
    def is_abandoned(self) -> bool:
        return self.clock.monotonic() - self._asked > ABANDONED

    @property
    def has_ended(self) -> bool:
        return self.status.exit_status is not None

    def report(self) -> ImportExportStatus:
        """The status; waits for news, as far as there was none since the last question."""
        self._asked = self.clock.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._news or self.has_ended, _PATIENCE)
            self._news = False
            return msgspec.structs.replace(self.status, **self._progress())

    def _progress(self) -> dict[str, Any]:
        if not self.status.connected:
            return {}
        elapsed = max(self.clock.monotonic() - self._begun, 0.001)
        rate = self._done / _MIB / elapsed
        found: dict[str, Any] = {
            "progress_mbytes": self._done / _MIB,
            "progress_throughput": rate,
        }
        size = self._size()
        if size:
            left = max(size - self._done, 0)
            found["progress_percent"] = min(100.0, 100.0 * self._done / size)
            if rate:
                found["progress_eta"] = left / _MIB / rate
        return found

    def abort(self) -> None:
        """End it, and wait until it has ended (a few seconds)."""
        self._aborted.set()
        self.children.kill()
        self._cut()
        if self._thread is not None:
            self._thread.join(10.0)


class Impexp(ImpexpCalls):
    """All transfers of this node daemon, by name."""

    def __init__(self, context: NodeContext, disks: Disks, exports: Exports) -> None:
        self._context = context
        self._disks = disks
        self._exports = exports
        self._lock = threading.Lock()
        self._transfers: dict[str, _Transfer] = {}

    # calls

    def export_start(
        self,
        opts: ImportExportOptions,
        host: str,
        port: int,
        instance: NodeInstance,
        component: str,
        source: tuple[str, list[Any]],
    ) -> str:
        """Begin to send a dump; returns the name of the transfer.

        Raises:
            BlockDeviceError, FileStoragePathError: there is nothing to send.
            X509CertError: the certificate of the other end cannot be used.
            ParameterError: arguments that make no sense.
        """
        transfer = self._make("export", component)
        what = self._find_source(transfer, instance, source)
        identity = self._identify(transfer, opts)
        context = identity.client_context()

        def work(transfer: _Transfer) -> None:
            sock = _connect_in_time(transfer, host, port, context, _limit(opts))
            transfer.note_connected(what.size)
            _send(transfer, sock, what, opts)

        return self._begin(transfer, work)

    def import_start(
        self,
        opts: ImportExportOptions,
        instance: NodeInstance,
        component: str,
        dest: tuple[str, list[Any]],
    ) -> str:
        """Wait for one sender; returns the name of the transfer, whose status has the port.

        Raises: as :meth:`export_start`, and GenericError when no port can be opened.
        """
        transfer = self._make("import", component)
        take = self._find_target(transfer, instance, dest)
        identity = self._identify(transfer, opts)
        context = identity.server_context()
        family, address = (socket.AF_INET6, "::") if opts.ipv6 else (socket.AF_INET, "0.0.0.0")
        try:
            listener = socket.create_server((address, 0), family=family, backlog=5)
        except OSError as err:
            raise errors.GenericError(f"cannot wait for a sender: {err.strerror}") from err
        transfer.status.listen_port = listener.getsockname()[1]
        transfer.socket = listener

        def work(transfer: _Transfer) -> None:
            sock = _accept(transfer, listener, context, _limit(opts))
            transfer.socket = sock
            _check_magic(sock, opts.magic)
            transfer.note_connected(lambda: None)
            take(streams.unpack(_receive(transfer, sock), opts.compress, transfer.children))
            sock.finish_sending()

        return self._begin(transfer, work)

    def impexp_status(self, names: list[str]) -> list[ImportExportStatus | None]:
        """How far transfers are, None for one that is not known; waits up to 2 s for news."""
        with self._lock:
            found = [self._transfers.get(name) for name in names]
        return [None if transfer is None else transfer.report() for transfer in found]

    def impexp_abort(self, name: str) -> None:
        """End a transfer; no error when it has ended."""
        with self._lock:
            found = self._transfers.get(name)
        if found is not None:
            found.abort()

    def impexp_cleanup(self, name: str) -> None:
        """End a transfer and forget it; no error when it is not known."""
        self.impexp_abort(name)
        with self._lock:
            found = self._transfers.pop(name, None)
        if found is not None:
            shutil.rmtree(self._context.paths.transfers / name, ignore_errors=True)

    # beginning

    def _make(self, verb: str, component: str) -> _Transfer:
        self._forget_abandoned()
        return _Transfer(f"{verb}-{secrets.token_hex(8)}", component[:40], self._context)

    def _forget_abandoned(self) -> None:
        with self._lock:
            old = [n for n, t in self._transfers.items() if t.has_ended and t.is_abandoned]
        for name in old:
            self.impexp_cleanup(name)

    def _begin(self, transfer: _Transfer, work: Callable[[_Transfer], None]) -> str:
        with self._lock:
            self._transfers[transfer.name] = transfer
        transfer.begin(work)
        return transfer.name

    def _identify(self, transfer: _Transfer, opts: ImportExportOptions) -> Identity:
        """The files of this end: those of the node, or a key that was made for the transfer."""
        paths = self._context.paths
        if (opts.key_name is None) != (opts.ca_pem is None):
            raise errors.ParameterError("a transfer needs both a key and a certificate, or neither")
        if opts.key_name is None or opts.ca_pem is None:
            own = paths.server_cert if transfer.name.startswith("import") else paths.client_cert
            return Identity(own, paths.ca_cert)
        key = x509.find_key(paths.crypto, opts.key_name)
        directory = paths.transfers / transfer.name
        try:
            files.ensure_dir(directory, _DIR_MODE)
            files.write_atomic(directory / "ca", opts.ca_pem, mode=0o600)
        except OSError as err:
            raise errors.GenericError(f"cannot write to {directory}: {err.strerror}") from err
        return Identity(key / x509.CERT, directory / "ca", key_file=key / x509.KEY)

    # ends

    def _find_source(
        self, transfer: _Transfer, instance: NodeInstance, given: tuple[str, list[Any]]
    ) -> streams.Source:
        kind, args = given
        if kind == "file":
            path, compression = str(args[0]), str(args[1]) if len(args) > 1 else streams.PLAIN
            found = self._exports.find_below(path)
            if not found.is_file():
                raise errors.BlockDeviceError(f"there is no dump {found}")
            content = streams.Content(str(found))
            return content if compression == streams.PLAIN else _Unpacked(content, compression)
        if kind == "raw":
            return streams.Content(self._open(_disk(args[0])))
        if kind == "script":
            copy = None if len(args) < 3 or args[2] is None else _disk(args[2])
            return self._find_script_source(transfer, instance, int(args[1]), copy)
        raise errors.ParameterError(f"nothing can be sent from {kind[:20]!r}")

    def _open(self, disk: NodeDisk) -> str:
        found = self._disks.find_existing(disk)
        found.assemble()
        return found.path

    def _find_script_source(
        self, transfer: _Transfer, instance: NodeInstance, index: int, copy: NodeDisk | None
    ) -> streams.Source:
        disks = self._disks.all_attached(instance)
        if not 0 <= index < len(disks):
            raise errors.ParameterError(f"instance {instance.name} has no disk {index}")
        source = disks[index]
        if copy is not None:
            source = AttachedDisk(copy, self._open(copy))
        found = self._find_script(instance, definition_files.EXPORT)
        if found is None:
            return streams.Content(source.path)
        log_path = scripts.make_log("export", instance, self._context.paths)

        def make_env(size_fd: int) -> environment.Environment:
            return environment.make_export_environment(
                found, instance, disks, index, size_fd=size_fd, source=source
            )

        return streams.Program(
            transfer.children,
            [str(found.script(definition_files.EXPORT))],
            make_env,
            found.path,
            log_path,
        )

    def _find_script(self, instance: NodeInstance, action: str) -> definition.OsDefinition | None:
        """The OS definition, None when it has no such script or there is no OS."""
        if not instance.os:
            return None
        found = definition.load(instance.os, self._context.paths.os_search_path, force_variant=True)
        return found if found.has_script(action) else None

    def _find_target(
        self, transfer: _Transfer, instance: NodeInstance, given: tuple[str, list[Any]]
    ) -> Callable[[Iterator[bytes | memoryview]], object]:
        kind, args = given
        if kind == "file":
            path = self._exports.find_below(str(args[0]))
            try:
                self._exports.make_unfinished(path)
            except OSError as err:
                raise errors.GenericError(f"cannot make {path.parent}: {err.strerror}") from err
            return lambda data: streams.write_to(str(path), data, limit=None)
        if kind == "raw":
            return _write_disk(self._disks.find_existing(_disk(args[0])).path)
        if kind == "script":
            return self._find_script_target(transfer, instance, int(args[1]))
        raise errors.ParameterError(f"nothing can be written to {kind[:20]!r}")

    def _find_script_target(
        self, transfer: _Transfer, instance: NodeInstance, index: int
    ) -> Callable[[Iterator[bytes | memoryview]], object]:
        disks = self._disks.all_attached(instance)
        if not 0 <= index < len(disks):
            raise errors.ParameterError(f"instance {instance.name} has no disk {index}")
        found = self._find_script(instance, definition_files.IMPORT)
        if found is None:
            return _write_disk(disks[index].path)
        env = environment.make_import_environment(found, instance, disks, index)
        log_path = scripts.make_log("import", instance, self._context.paths)
        argv = [str(found.script(definition_files.IMPORT))]
        return lambda data: streams.feed_program(
            transfer.children, argv, env, found.path, log_path, data
        )


class _Unpacked:
    """A dump that was compressed when it was written."""

    def __init__(self, content: streams.Content, tool: str) -> None:
        self._content = content
        self._tool = tool
        self._children = streams.Children()

    def size(self) -> int | None:
        return None

    def chunks(self) -> Iterator[bytes | memoryview]:
        try:
            yield from streams.unpack(self._content.chunks(), self._tool, self._children)
        finally:
            self._children.end()


def _disk(raw: object) -> NodeDisk:
    try:
        return msgspec.convert(raw, NodeDisk)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"no disk can be read from the arguments: {err}") from err


def _limit(opts: ImportExportOptions) -> float:
    return CONNECT_TIMEOUT if opts.connect_timeout is None else float(opts.connect_timeout)


def _write_disk(path: str) -> Callable[[Iterator[bytes | memoryview]], object]:
    def take(data: Iterator[bytes | memoryview]) -> object:
        return streams.write_to(path, data, limit=measure.device_size(path))

    return take


# the connection ------------------------------------------------------------------------------


def _connect_in_time(
    transfer: _Transfer, host: str, port: int, context: Any, limit: float
) -> TLSSocket:
    """A connection to the other end; tried again until the time is over."""
    end = transfer.clock.monotonic() + limit
    while True:
        try:
            return _connect(transfer, host, port, context)
        except OSError as err:
            transfer.check_goes_on()
            if transfer.clock.monotonic() + _PAUSE >= end:
                why = err.strerror or str(err)
                raise errors.BlockDeviceError(
                    f"no connection to {host} port {port} in {limit:.0f} s: {why}"
                ) from err
            transfer.wait(_PAUSE)


def _connect(transfer: _Transfer, host: str, port: int, context: Any) -> TLSSocket:
    raw = socket.create_connection((host, port), timeout=_ATTEMPT)
    sock = TLSSocket(raw, context, server_side=False)
    transfer.socket = sock
    try:
        sock.settimeout(_ATTEMPT)
        sock.handshake()
        sock.settimeout(STALLED)
    except OSError:
        sock.close()
        raise
    return sock


def _accept(transfer: _Transfer, listener: socket.socket, context: Any, limit: float) -> TLSSocket:
    """The first connection whose certificate is good; others are sent away."""
    end = transfer.clock.monotonic() + limit
    with listener:
        while True:
            left = end - transfer.clock.monotonic()
            transfer.check_goes_on()
            if left <= 0:
                raise errors.BlockDeviceError(f"no sender came in {limit:.0f} s")
            listener.settimeout(left)
            try:
                raw, _peer = listener.accept()
            except TimeoutError:
                continue
            sock = TLSSocket(raw, context, server_side=True)
            try:
                sock.settimeout(min(_ATTEMPT, max(left, 1.0)))
                sock.handshake()
                sock.settimeout(STALLED)
            except OSError as err:
                log.warning("a sender of %s was sent away: %s", transfer.component, err)
                sock.close()
                continue
            return sock


def _check_magic(sock: TLSSocket, magic: str | None) -> None:
    if magic is None:
        return
    wanted = _PREFIX + magic.encode()
    found = b""
    while len(found) < len(wanted):
        data = sock.recv(len(wanted) - len(found))
        if not data:
            raise errors.BlockDeviceError("the sender hung up before it said the magic word")
        found += data
    if not hmac.compare_digest(found, wanted):
        raise errors.BlockDeviceError("the sender does not know the magic word")


def _receive(transfer: _Transfer, sock: TLSSocket) -> Iterator[bytes | memoryview]:
    while data := sock.recv(streams.CHUNK):
        yield data
        transfer.add(len(data))
    if not sock.ended_in_order:
        raise errors.BlockDeviceError("the sender hung up in the middle")


def _send(
    transfer: _Transfer, sock: TLSSocket, source: streams.Source, opts: ImportExportOptions
) -> None:
    def count() -> Iterator[bytes | memoryview]:
        for data in source.chunks():
            yield data
            transfer.add(len(data))

    if opts.magic is not None:
        sock.sendall(_PREFIX + opts.magic.encode())
    try:
        for data in streams.pack(count(), opts.compress, transfer.children):
            sock.sendall(data)
        sock.finish_sending()
        sock.settimeout(_LAST_WRITES)
        while sock.recv(streams.CHUNK):
            pass
    except (BrokenPipeError, ConnectionResetError) as err:
        raise errors.BlockDeviceError("the receiver hung up in the middle") from err
    if not sock.ended_in_order:
        raise errors.BlockDeviceError("the receiver hung up without saying that it has all")
