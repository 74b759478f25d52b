"""Authorisation of callers: the owners of the certificates that the cluster lists.

The list is ``ssconf_master_candidates_certs``, lines ``<node uuid>=<SHA1 of the certificate>``.
While it is missing or empty (a node that is being set up), only this node's own certificate is
accepted, so that the first daemons of a new cluster can talk to each other. Calls that every node
may make need a certificate of the cluster's authority with the name of a node.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from ganeti import errors
from ganeti.base import files
from ganeti.model import ssconf_keys
from ganeti.net import pem
from ganeti.paths import Paths

log = logging.getLogger(__name__)

_DIGEST = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){19}")


def parse(text: str) -> dict[str, str]:
    """Node uuid -> digest of a list of certificates; lines that are none are logged and skipped."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        uuid, separator, digest = line.strip().partition("=")
        digest = digest.strip().upper()
        if separator and _DIGEST.fullmatch(digest):
            found[uuid.strip()] = digest
        elif line.strip():
            log.warning("ssconf_%s has a bad line", ssconf_keys.MASTER_CANDIDATES_CERTS)
    return found


class Authoriser:
    """Decides by the digest of the caller's certificate; thread-safe."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._accepted: frozenset[str] = frozenset()
        self.reload()

    def reload(self) -> None:
        """Read the list again; one that cannot be read leaves the old one in force."""
        try:
            self._accepted = frozenset(self._read())
        except (OSError, UnicodeDecodeError) as err:
            log.error("The list of authorised certificates stays the old one: %s", err)

    def _read(self) -> list[str]:
        path = self._paths.ssconf(ssconf_keys.MASTER_CANDIDATES_CERTS)
        try:
            listed = list(parse(files.read_text(path)).values())
        except FileNotFoundError:
            listed = []
        if listed:
            log.info("%d certificates are authorised", len(listed))
            return listed
        log.info("No certificate is listed; only this node's own is authorised")
        return self._read_own_digests()

    def _read_own_digests(self) -> list[str]:
        for path in (self._paths.client_cert, self._paths.server_cert):
            try:
                return [pem.digest_of_file(path)]
            except errors.X509CertError as err:
                log.info("%s", errors.text(err))
        return []

    def refuse_stranger(self, environ: Mapping[str, object]) -> str | None:
        """Why the caller is not a node of this cluster, None when it is.

        TLS has verified that the certificate is of the cluster's authority.
        """
        name = environ.get("ganeti.peer_cn")
        try:
            known = files.read_text(self._paths.ssconf(ssconf_keys.NODE_LIST)).split()
        except (OSError, UnicodeDecodeError) as err:
            return f"the list of nodes cannot be read: {err}"
        if environ.get("ganeti.peer_digest") and name in known:
            return None
        return f"{name or 'a caller without a name'} is not a node of this cluster"

    def __call__(self, environ: Mapping[str, object]) -> str | None:
        """Why the caller of a WSGI request is refused, None when it is not."""
        digest = environ.get("ganeti.peer_digest")
        if not digest:
            return "a node call needs a client certificate"
        if digest in self._accepted:
            return None
        return f"the certificate {digest} is not that of a master candidate of this cluster"
