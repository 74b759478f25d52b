"""Whether the certificates of this node are good: readable, its own, of its cluster, valid."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.model import ssconf_keys
from ganeti.net import certs, expiry
from ganeti.net.expiry import Expiry
from ganeti.node.context import NodeContext

#: File name, ``warning`` or ``error``, what is wrong and what to do about it.
Problem = tuple[str, str, str]


class Certificates:
    """Looks into the files of one node; answers are for the administrator."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._paths = context.paths

    def problems(self, authority: str) -> list[Problem]:
        """Return the problems of all of them; ``authority``: the content of the master's ca.pem."""
        paths = self._paths
        found = [
            self._authority(authority),
            self._check_own(paths.server_cert, authority),
            self.client(authority),
            self._remote_api(),
        ]
        return [problem for problem in found if problem is not None]

    def client(self, authority: str | None = None) -> Problem | None:
        """The problem of the certificate with which this node calls others."""
        return self._check_own(self._paths.client_cert, authority)

    def _check_own(self, path: Path, authority: str | None) -> Problem | None:
        name = self._context.name
        remedy = f"gnt-node add --readd {name} makes new ones"
        if self._context.ssconf(ssconf_keys.MASTER_NODE) == name:
            remedy = f"make another node the master (gnt-cluster master-failover), then {remedy}"
        try:
            known = None if authority is None else authority.encode("ascii")
            info = certs.inspect_pair(path, known)
        except errors.X509CertError as err:
            return _make_problem(path, err, remedy)
        if info.subject_cn.lower() != name.lower():
            return path.name, "error", f"{path} is that of {info.subject_cn}: {remedy}"
        return self._ends(
            path, info, "gnt-cluster renew-crypto --new-node-certificates makes new ones"
        )

    def _authority(self, expected: str) -> Problem | None:
        path = self._paths.ca_cert
        remedy = "gnt-cluster redist-conf sends that of the master"
        try:
            certs.inspect(path)
            if path.read_text(encoding="ascii") == expected:
                return None  # the master itself looks how long it is valid
            why = "differs from that of the master"
        except errors.X509CertError as err:
            return _make_problem(path, err, remedy)
        except ValueError:
            why = "has something else than PEM in it"
        return path.name, "error", f"{path} {why}: {remedy}"

    def _remote_api(self) -> Problem | None:
        path = self._paths.rapi_cert
        remedy = (
            "gnt-cluster renew-crypto makes another one (--new-rapi-certificate) or takes yours"
            " (--rapi-certificate FILE)"
        )
        if not path.exists():  # a node that is not a candidate
            return None
        try:
            return self._ends(path, certs.inspect_pair(path), remedy)
        except errors.X509CertError as err:
            return _make_problem(path, err, remedy)

    def _ends(self, path: Path, info: certs.CertInfo, remedy: str) -> Problem | None:
        level, text = expiry.judge(info, self._context.clock.now())
        if level is Expiry.OK:
            return None
        return path.name, str(level), f"{path}: {text}; {remedy}"


def _make_problem(path: Path, err: errors.X509CertError, remedy: str) -> Problem:
    return path.name, "error", f"{path} {err.args[-1]}: {remedy}"
