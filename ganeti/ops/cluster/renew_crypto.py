"""Replace certificates, secrets and SSH keys of the cluster while it works."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.net import certs, expiry, ssh_files
from ganeti.opcodes.cluster import OpClusterRenewCrypto
from ganeti.opcodes.hidden import Secret
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.steps.nodes import crypto, shared_files, ssh_keys

#: Fewest characters of a secret by which clusters recognise each other.
SECRET_LENGTH = 20


@dataclass(frozen=True)
class _Plan:
    """Content of files that are to be replaced, of which none must get into a log."""

    content: Mapping[Path, bytes]

    def __repr__(self) -> str:
        return f"_Plan({sorted(map(str, self.content))})"


class ClusterRenewCrypto(PlannedOperation[OpClusterRenewCrypto, _Plan, None]):
    """Without anything to replace: end a renewal that was interrupted, and renew nodes that were
    down during one."""

    @classmethod
    def check_submission(cls, op: OpClusterRenewCrypto) -> None:
        if not op.renew_ssh_keys and (op.ssh_key_type is not None or op.ssh_key_bits is not None):
            raise errors.make_invalid_error(
                "ssh_key_type and ssh_key_bits say what keys renew_ssh_keys makes; it is missing"
            )
        for name in ("rapi_certificate", "spice_certificate", "cluster_domain_secret"):
            if getattr(op, name) is not None and getattr(op, f"new_{name}"):
                raise errors.make_invalid_error(f"{name} and new_{name} exclude each other")
        if (op.spice_certificate is None) != (op.spice_ca_certificate is None):
            raise errors.make_invalid_error(
                "spice_certificate and spice_ca_certificate need each other"
            )

    def locks(self) -> Needs:
        """All nodes, shared: none may be added, drained or removed meanwhile."""
        yield Need(LockLevel.NODE, None, shared=True)

    def decide(self) -> _Plan:
        try:
            self.ctx.claim("renewal", "certificates")
        except errors.ReservationError as err:
            raise errors.make_state_error("another job is renewing certificates") from err
        self._ssh()
        content: dict[Path, bytes] = {}
        content |= self._rapi()
        content |= self._spice()
        content |= self._secrets()
        return _Plan(content)

    def _ssh(self) -> tuple[str, int]:
        """Type and length in bits of new SSH keys.

        Raises:
            OpPrereqError: this cluster makes none, or there are no such keys.
        """
        op, cluster = self.op, self.ctx.config.cluster
        kind = str(op.ssh_key_type or cluster.ssh_key_type)
        if not op.renew_ssh_keys:
            return kind, cluster.ssh_key_bits
        if not ssh_keys.is_managed(self.ctx):
            raise errors.make_state_error(
                "this cluster does not manage the SSH keys of its nodes: it was made with"
                f" --no-ssh-init, or {self.ctx.paths.ssh_managed} is missing on the master node"
            )
        same = op.ssh_key_bits is None and kind == cluster.ssh_key_type
        return kind, ssh_files.choose_length(
            kind, cluster.ssh_key_bits if same else op.ssh_key_bits
        )

    def _rapi(self) -> Mapping[Path, bytes]:
        op, path = self.op, self.ctx.paths.rapi_cert
        if op.rapi_certificate is not None:
            pem = _pem(op.rapi_certificate.reveal())
            certs.check_pair(pem, path)
            return {path: pem}
        config = self.ctx.config
        if not op.new_rapi_certificate and not self._is_due(path):
            return {}
        addresses = [config.cluster.master_ip, config.master.primary_ip]
        name = config.cluster.cluster_name
        return {path: certs.self_signed(name, addresses, more_names=[config.master.name]).pem}

    def _is_due(self, *paths: Path) -> bool:
        """Whether one of the certificates ends soon, and this cluster has made all of them.

        One that somebody else has made is only replaced by hand; verify tells when.
        """
        if not self.op.expiring or not all(path.exists() for path in paths):
            return False
        name = self.ctx.config.cluster.cluster_name
        try:
            found = [certs.inspect(path) for path in paths]
        except errors.X509CertError as err:
            self.ctx.warn(errors.text(err))
            return False
        is_own = all(info.issuer_cn == name for info in found)
        return is_own and any(expiry.is_due(info.not_after, self.ctx.clock.now()) for info in found)

    def _spice(self) -> Mapping[Path, bytes]:
        op, paths = self.op, self.ctx.paths
        if isinstance(op.spice_certificate, Secret) and op.spice_ca_certificate is not None:
            pem, authority = _pem(op.spice_certificate.reveal()), _pem(op.spice_ca_certificate)
            certs.check_pair(pem, paths.spice_cert, authority)
            return {paths.spice_cert: pem, paths.spice_ca_cert: authority}
        if not op.new_spice_certificate and not self._is_due(paths.spice_cert, paths.spice_ca_cert):
            return {}
        name = self.ctx.config.cluster.cluster_name
        made = certs.create_ca(name)
        return {
            paths.spice_cert: certs.issue_server(made, name).pem,
            paths.spice_ca_cert: made.cert,
        }

    def _secrets(self) -> Mapping[Path, bytes]:
        op, paths = self.op, self.ctx.paths
        content: dict[Path, bytes] = {}
        if op.cluster_domain_secret is not None:
            text = str(op.cluster_domain_secret.reveal()).strip()
            if len(text) < SECRET_LENGTH or not text.isascii() or len(text.split()) != 1:
                raise errors.make_invalid_error(
                    f"the domain secret must be one word of at least {SECRET_LENGTH} ASCII"
                    " characters"
                )
            content[paths.domain_secret] = f"{text}\n".encode()
        if op.new_cluster_domain_secret:
            content[paths.domain_secret] = _make_secret()
        if op.new_confd_hmac_key:
            content[paths.hmac_key] = _make_secret()
        return content

    def run(self) -> None:
        ctx, op = self.ctx, self.op
        due = crypto.find_due(ctx) if op.expiring else crypto.Due(False, ())
        authority = op.new_cluster_certificate or due.authority
        if due.authority:
            ctx.log("The certificate of the authority ends soon")
        elif due.nodes:
            ctx.log(f"Certificates end soon on {join_names(due.nodes)}")
        if op.expiring and self.plan.content:
            names = join_names(path.name for path in self.plan.content)
            ctx.log(f"Replacing {names}, as the end is near; clients that trust it need a copy")
        try:
            for path, content in self.plan.content.items():
                mode = 0o444 if path == ctx.paths.spice_ca_cert else certs.GROUP_MODE
                files.write_atomic(path, content, mode=mode, gid=_group_of(path))
            again = crypto.is_interrupted(ctx)
            if again:
                ctx.log("A renewal was interrupted; it continues now")
            elif authority:
                crypto.create_authority(ctx)
        except OSError as err:
            raise errors.OpExecError(f"{err.filename} cannot be written: {err.strerror}") from err
        everywhere = again or authority or op.node_certificates or bool(due.nodes)
        crypto.renew(ctx, everywhere=everywhere)
        self._distribute()
        if op.renew_ssh_keys:
            ssh_keys.renew(ctx, *self._ssh())

    def _distribute(self) -> None:
        ctx = self.ctx
        for files_, nodes in (
            (shared_files.list_for_all(ctx.paths), ctx.config.online_nodes()),
            (shared_files.list_for_candidates(ctx.paths), ctx.config.candidates()),
        ):
            changed = [path for path in files_ if path in self.plan.content]
            for failure in shared_files.send(ctx, nodes, changed):
                ctx.warn(f"{failure}; run gnt-cluster redist-conf when the node is back")


def _pem(text: object) -> bytes:
    return str(text).encode("ascii", "replace")


def _make_secret() -> bytes:
    return f"{secrets.token_hex(32)}\n".encode()


def _group_of(path: Path) -> int:
    """The group that may read a file now; -1 when there is no file."""
    try:
        return path.stat().st_gid
    except FileNotFoundError:
        return -1
