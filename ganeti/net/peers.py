"""The peer of a TLS connection, and whether it is the expected one."""

from __future__ import annotations

import contextlib
import socket

from ganeti.net.tls.stream import TLSError, TLSSocket


def peer_certificate_digest(sock: TLSSocket) -> str:
    """SHA1 of the other side's certificate as ``AB:CD:..``; empty when it has none."""
    peer = sock.peer()
    return peer.digest if peer else ""


def peer_common_name(sock: TLSSocket) -> str:
    """Common name of the other side's certificate; empty when it has none."""
    peer = sock.peer()
    return peer.common_name if peer else ""


def check_peer_name(sock: TLSSocket, expected: str) -> None:
    """Make sure that the certificate of the other side carries this host name (RFC 4343: in
    small or capital letters).

    Raises:
        TLSError: it carries another one, or there is none.
    """
    found = peer_common_name(sock)
    if found.lower() != expected.lower():
        raise TLSError(
            f"{found or 'a host without a name'} answers there, not {expected} (by its"
            " certificate): either the address or the certificate is the wrong one"
        )


def check_host(sock: TLSSocket, host: str) -> None:
    """Make sure that the certificate of the other side is for this name or address.

    Only the alternative names count; a star stands for one whole first label (RFC 9525).

    Raises:
        TLSError: it is for others.
    """
    names = sock.certificate_names()
    wanted = _pack_address(host)
    if wanted is not None:
        good = wanted in [_pack_address(name) for name in names]
    else:
        asked = host.rstrip(".").lower()
        forms = {asked, f"*.{asked.partition('.')[2]}"}
        good = not forms.isdisjoint(name.lower() for name in names)
    if not good:
        raise TLSError(
            f"the certificate is refused: it is for {', '.join(names) or 'nobody'}, not for {host}"
        )


def _pack_address(text: str) -> bytes | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            return socket.inet_pton(family, text)
    return None
