"""TLS contexts: which files one end proves itself with, whom it accepts, and their renewal.

A file that cannot be used raises ``errors.X509CertError``.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from OpenSSL import SSL, crypto

from ganeti import errors
from ganeti.base import files

log = logging.getLogger(__name__)

P = ParamSpec("P")

#: Cipher suites for TLS 1.2, all with forward secrecy; those of TLS 1.3 are good as they are.
CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
#: Why a certificate was not accepted, by OpenSSL's X509_V_ERR number.
_VERIFY_ERRORS = {
    7: "its signature is wrong (issued by another authority of the same name?)",
    9: "it is not valid yet (check the clocks)",
    10: "it has expired",
    18: "it is self-signed and not in the CA file",
    19: "its authority is not in the CA file",
    20: "its authority is not in the CA file",
    21: "its authority is not in the CA file",
    26: "it was not issued for this purpose",
}


class ReloadableContext:
    """A TLS context that is replaced as a whole when its certificate files were renewed.

    pyOpenSSL forbids changes once a context has connections, so renewing means building another
    one: established connections keep the old certificate, later ones get the new.
    """

    def __init__(self, build: Callable[[], SSL.Context], files: tuple[Path, ...]) -> None:
        """Build the first context.

        Raises:
            X509CertError: a file is missing or cannot be used.
        """
        self._build = build
        self._files = files
        self._lock = threading.Lock()
        self._stamp = self._read_stamp()
        self._context = build()

    def current(self) -> SSL.Context:
        """The context for a new connection."""
        return self._context

    def reload(self) -> None:
        """Read the files again.

        Raises:
            X509CertError: a file cannot be used; the last good context stays in service.
        """
        with self._lock:
            stamp = self._read_stamp()
            try:
                self._context = self._build()
            except errors.X509CertError as err:
                log.error("The certificate stays the old one: %s", errors.text(err))
                raise
            finally:
                self._stamp = stamp

    def reload_if_changed(self) -> bool:
        """Reload when a file has another time, size or inode; True when it was reloaded.

        Raises:
            X509CertError: as :meth:`reload`; a bad file is reported once until it changes again.
        """
        if self._read_stamp() == self._stamp:
            return False
        self.reload()
        return True

    def _read_stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(files.find_stamp(path) for path in self._files)


@dataclass(frozen=True)
class Identity:
    """The files one end of a connection proves itself and checks others with.

    ``cert_file`` holds private key and certificate (PEM); None for a client without one.
    ``ca_file`` holds the accepted authorities (PEM, one or several); None only for a server that
    asks for no client certificate. Host names are not checked by TLS: a caller that wants to
    know whom it talks to uses :func:`ganeti.net.peers.check_peer_name`.
    """

    cert_file: Path | None
    ca_file: Path | None
    #: private key, when it is not in the file of the certificate
    key_file: Path | None = None
    #: certificates between ours and a root, when they are not in the file of the certificate
    chain_file: Path | None = None

    def server_context(self, *, require_client: bool = True) -> ReloadableContext:
        """Context of a server; without a valid client certificate nobody gets in,
        unless ``require_client`` is False (then none is requested).

        Raises:
            X509CertError: a file is missing or cannot be used.
        """
        verify = SSL.VERIFY_NONE  # a server whose clients prove who they are in another way
        if require_client:
            verify = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
        if self.cert_file is None or (require_client and self.ca_file is None):
            raise errors.ProgrammerError("a TLS server needs a certificate and a CA file")
        return self._reloadable(SSL.TLS_SERVER_METHOD, verify)

    def client_context(self) -> ReloadableContext:
        """Context of a client; the server's certificate must come from the CA file.

        Raises:
            X509CertError: a file is missing or cannot be used.
        """
        if self.ca_file is None:
            raise errors.ProgrammerError("a TLS client needs a CA file")
        return self._reloadable(SSL.TLS_CLIENT_METHOD, SSL.VERIFY_PEER)

    def _reloadable(self, method: int, verify: int) -> ReloadableContext:
        own = (self.cert_file, self.ca_file, self.key_file, self.chain_file)
        files = tuple(dict.fromkeys(path for path in own if path is not None))
        return ReloadableContext(lambda: self._build(method, verify), files)

    def _build(self, method: int, verify: int) -> SSL.Context:
        context = SSL.Context(method)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        context.set_cipher_list(CIPHERS)
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.set_options(SSL.OP_NO_COMPRESSION | getattr(SSL, "OP_NO_RENEGOTIATION", 0))
        if verify != SSL.VERIFY_NONE:
            # No resumption: it would outlive the revoked certificate of a client. Clients that
            # prove who they are in each request may; tickets mean nothing to a renewed context.
            context.set_options(SSL.OP_NO_TICKET)
        context.set_verify(verify, _remember_refusal)
        if self.cert_file is not None:
            key, path = self.key_file or self.cert_file, os.fspath(self.cert_file)
            _load(self.cert_file, "certificate", context.use_certificate_chain_file, path)
            _load(key, "private key", context.use_privatekey_file, os.fspath(key))
            _load(key, "matching private key", context.check_privatekey)
        if self.chain_file is not None:
            _load(self.chain_file, "certificate", _add_chain, context, self.chain_file)
        if self.ca_file is not None:
            path = os.fspath(self.ca_file)
            _load(self.ca_file, "authority", context.load_verify_locations, path)
        return context


def public_client_context(ca_file: Path | None, *, system: bool = False) -> ReloadableContext:
    """Context of a client without a certificate, for servers outside of the cluster.

    The server's certificate must come from ``ca_file``, or with ``system`` from the authorities
    that this machine trusts; with neither any certificate is taken.

    Raises:
        X509CertError: the file is missing or cannot be used.
    """
    if ca_file is not None:
        return Identity(None, ca_file).client_context()

    def build() -> SSL.Context:
        verify = SSL.VERIFY_PEER if system else SSL.VERIFY_NONE
        context = Identity(None, None)._build(SSL.TLS_CLIENT_METHOD, verify)
        if system:
            context.set_default_verify_paths()
        return context

    return ReloadableContext(build, ())


def _add_chain(context: SSL.Context, path: Path) -> None:
    end = b"-----END CERTIFICATE-----"
    blocks = path.read_bytes().split(end)[:-1]
    if not blocks:
        raise errors.X509CertError(str(path), "holds no certificate in PEM form")
    for block in blocks:
        pem = block[block.find(b"-----BEGIN") :] + end
        try:
            context.add_extra_chain_cert(crypto.load_certificate(crypto.FILETYPE_PEM, pem))
        except crypto.Error as err:
            raise errors.X509CertError(str(path), "holds no usable certificate") from err


def _remember_refusal(
    conn: SSL.Connection, _cert: crypto.X509, code: int, _depth: int, accepted: int
) -> bool:
    if not accepted:
        conn.set_app_data(_VERIFY_ERRORS.get(code, f"OpenSSL verify error {code}"))
    return bool(accepted)


def _load(
    file: Path, what: str, action: Callable[P, object], *args: P.args, **kw: P.kwargs
) -> None:
    try:
        encrypted = b"ENCRYPTED" in file.read_bytes()
    except OSError as err:
        raise errors.X509CertError(str(file), f"cannot be read: {err.strerror}") from err
    if encrypted:
        # OpenSSL would ask for the passphrase on the terminal.
        raise errors.X509CertError(str(file), "holds a key with a passphrase")
    try:
        action(*args, **kw)
    except SSL.Error as err:
        raise errors.X509CertError(str(file), f"holds no usable {what}") from err
