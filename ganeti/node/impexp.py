"""Node calls that send the dump of a disk to another node, of this cluster or another one."""

from __future__ import annotations

import secrets
import shutil
import socket
import threading
from collections.abc import Callable
from typing import Any

from ganeti import errors
from ganeti.base import files
from ganeti.net.tls.contexts import Identity
from ganeti.node import dump_link, streams, x509
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.node.dump_ends import Ends
from ganeti.node.dump_transfer import Transfer
from ganeti.node.exports import Exports
from ganeti.rpc.calls.impexp import ImpexpCalls
from ganeti.rpc.objects import ImportExportOptions, ImportExportStatus, NodeInstance

#: Seconds until the ends must have found each other, unless the master says otherwise.
CONNECT_TIMEOUT = 180.0
_DIR_MODE = 0o700


class Impexp(ImpexpCalls):
    """All transfers of this node daemon, by name."""

    def __init__(self, context: NodeContext, disks: Disks, exports: Exports) -> None:
        self._context = context
        self._ends = Ends(context, disks, exports)
        self._lock = threading.Lock()
        self._transfers: dict[str, Transfer] = {}

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
        what = self._ends.find_source(transfer, instance, source)
        identity = self._identify(transfer, opts)
        context = identity.client_context()

        def work(transfer: Transfer) -> None:
            sock = dump_link.connect(transfer, host, port, context, _limit(opts))
            transfer.note_connected(what.size)
            dump_link.send(transfer, sock, what, opts)

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
        take = self._ends.find_target(transfer, instance, dest)
        identity = self._identify(transfer, opts)
        context = identity.server_context()
        family, address = (socket.AF_INET6, "::") if opts.ipv6 else (socket.AF_INET, "0.0.0.0")
        try:
            listener = socket.create_server((address, 0), family=family, backlog=5)
        except OSError as err:
            raise errors.GenericError(f"cannot wait for a sender: {err.strerror}") from err
        transfer.status.listen_port = listener.getsockname()[1]
        transfer.socket = listener

        def work(transfer: Transfer) -> None:
            sock = dump_link.accept(transfer, listener, context, _limit(opts))
            transfer.socket = sock
            dump_link.check_magic(sock, opts.magic)
            transfer.note_connected(lambda: None)
            take(
                streams.unpack(dump_link.receive(transfer, sock), opts.compress, transfer.children)
            )
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

    def _make(self, verb: str, component: str) -> Transfer:
        self._forget_abandoned()
        return Transfer(f"{verb}-{secrets.token_hex(8)}", component[:40], self._context)

    def _forget_abandoned(self) -> None:
        with self._lock:
            old = [n for n, t in self._transfers.items() if t.has_ended and t.is_abandoned]
        for name in old:
            self.impexp_cleanup(name)

    def _begin(self, transfer: Transfer, work: Callable[[Transfer], None]) -> str:
        with self._lock:
            self._transfers[transfer.name] = transfer
        transfer.begin(work)
        return transfer.name

    def _identify(self, transfer: Transfer, opts: ImportExportOptions) -> Identity:
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


def _limit(opts: ImportExportOptions) -> float:
    return CONNECT_TIMEOUT if opts.connect_timeout is None else float(opts.connect_timeout)
