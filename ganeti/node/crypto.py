"""Node calls that replace the certificates of a node while it works.

A node keeps the certificates it called others with before, in ``previous-crypto``: a node that was
down during a renewal accepts no others. They are forgotten when all nodes have new ones.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.net import certs, pem
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.crypto import CryptoCalls

log = logging.getLogger(__name__)

#: How many earlier certificates a node keeps, the newest.
KEPT = 3


class Crypto(CryptoCalls):
    """Writes the files; when a call returns, the daemon works with them."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._paths = context.paths

    def crypto_trust(self, authorities: str) -> None:
        """Replace ``ca.pem``.

        Raises:
            X509CertError: what was sent holds no usable certificate; nothing was changed.
            GenericError: the file cannot be written.
        """
        content = _bytes(authorities)
        for cert in pem.split(content) or [content]:
            certs.check(cert, self._paths.ca_cert)
        self._write(self._paths.ca_cert, content, 0o444)
        self._context.on_certificates()
        log.info("%s replaced", self._paths.ca_cert)

    def crypto_install(self, server: str, client: str) -> str:
        """Replace ``server.pem`` and ``client.pem``, and keep the old ``client.pem``.

        Raises:
            X509CertError: one of them cannot be used by this node; nothing was changed.
            GenericError: a file cannot be written.
        """
        paths = self._paths
        try:
            trusted = paths.ca_cert.read_bytes()
        except OSError as err:
            raise _make_write_error(err) from err
        wanted = {paths.server_cert: _bytes(server), paths.client_cert: _bytes(client)}
        for path, content in wanted.items():
            info = certs.check_pair(content, path, trusted)
            if info.subject_cn.lower() != self._context.name.lower():
                raise errors.X509CertError(
                    str(path), f"is for {info.subject_cn}, and this node is {self._context.name}"
                )
        self._keep_client()
        for path, content in wanted.items():
            self._write(path, content, 0o400)
        self._context.on_certificates()
        log.info("%s and %s replaced", paths.server_cert, paths.client_cert)
        return pem.digest(wanted[paths.client_cert])

    def crypto_ends(self) -> dict[str, float]:
        """When the node's own certificates end; X509CertError when one cannot be read."""
        files_ = (self._paths.server_cert, self._paths.client_cert)
        return {path.name: certs.inspect(path).not_after for path in files_}

    def crypto_forget(self) -> None:
        """Remove ``previous-crypto``; GenericError when that fails."""
        try:
            shutil.rmtree(self._paths.previous_crypto)
        except FileNotFoundError:
            return
        except OSError as err:
            raise errors.GenericError(f"cannot remove {err.filename}: {err.strerror}") from err

    def _keep_client(self) -> None:
        """Copy what this node calls others with to a directory that is named by the time."""
        paths = self._paths
        directory = paths.previous_crypto / f"{self._context.clock.now():.6f}"
        try:
            files.ensure_dir(paths.previous_crypto, 0o700)
            files.ensure_dir(directory, 0o700)
            for path in (paths.ca_cert, paths.client_cert):
                files.write_atomic(directory / path.name, path.read_bytes(), mode=0o400)
            for old in sorted(paths.previous_crypto.iterdir())[:-KEPT]:
                shutil.rmtree(old)
        except OSError as err:
            raise _make_write_error(err) from err

    @staticmethod
    def _write(path: Path, pem: bytes, mode: int) -> None:
        try:
            files.write_atomic(path, pem, mode=mode)
        except OSError as err:
            raise _make_write_error(err) from err


def _bytes(pem: str) -> bytes:
    return pem.encode("ascii", "replace")


def _make_write_error(err: OSError) -> errors.GenericError:
    return errors.GenericError(f"certificates not replaced: {err.filename}: {err.strerror}")
