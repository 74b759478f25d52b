"""Keys of transfers between clusters: one directory each below ``<run>/crypto``.

They never leave their node. ``ganeti-cleaner`` removes keys that are left after their end.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import time
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.net import certs
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.x509 import X509Calls

_NAME = re.compile(r"x509-[0-9]{14}-[0-9a-f]{16}")
_DAY = 86400
CERT, KEY = "cert", "key"


class X509(X509Calls):
    """Makes and destroys keys."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def x509_cert_create(self, validity: int) -> tuple[str, str]:
        """Make a key and a certificate for this node; its name, and the certificate (PEM).

        ``validity`` is in seconds; it is rounded up to whole days.

        Raises:
            ParameterError: nothing is valid for so long.
            GenericError: they cannot be written.
        """
        if not 0 < validity <= 366 * _DAY:
            raise errors.ParameterError(f"a key cannot be valid for {validity} s")
        made = certs.self_signed(self._context.name, days=-(-validity // _DAY))
        stamp = self._context.clock.now()
        name = f"x509-{_format_time(stamp)}-{secrets.token_hex(8)}"
        directory = self._context.paths.crypto / name
        try:
            files.ensure_dir(directory.parent, 0o700)
            directory.mkdir(mode=0o700)
            files.write_atomic(directory / KEY, made.key, mode=0o400)
            files.write_atomic(directory / CERT, made.cert, mode=0o400)
        except OSError as err:
            with contextlib.suppress(OSError):
                shutil.rmtree(directory)
            raise errors.GenericError(f"cannot make {directory}: {err.strerror}") from err
        return name, made.cert.decode()

    def x509_cert_remove(self, name: str) -> None:
        """Destroy a key; no error when it is gone. ParameterError, GenericError."""
        directory = find_key(self._context.paths.crypto, name)
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            return
        except OSError as err:
            raise errors.GenericError(f"cannot remove {directory}: {err.strerror}") from err


def find_key(crypto: Path, name: str) -> Path:
    """The directory of a key; ParameterError for what cannot be its name."""
    if not _NAME.fullmatch(name):
        raise errors.ParameterError(f"{name[:80]!r} is not the name of a key")
    return crypto / name


def _format_time(seconds: float) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(seconds))
