"""Checks of the request for an export. Reads only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.net import certs, cluster_trust
from ganeti.net.cluster_trust import DiskPlace
from ganeti.opcodes.backup import OpBackupExport
from ganeti.opcodes.enums import ExportMode
from ganeti.storage.interface import Snapshotting
from ganeti.storage.registry import TEMPLATES

#: Seconds for a helper guest to start and stop, and for each MiB of the disks.
_ZEROING, _ZEROING_PER_MIB = 600, 0.2


def check_compression(config: Config, tool: str) -> None:
    """Refuse a tool that the cluster does not allow; OpPrereqError."""
    choices = ("none", *config.cluster.compression_tools)
    if tool not in choices:
        raise errors.make_invalid_error(
            f"invalid value '{tool}' of compress; choose from {', '.join(choices)}, or"
            " allow others with gnt-cluster modify --compression-tools"
        )


def check_options(op: OpBackupExport) -> None:
    """Refuse options that make no sense together, or that nothing here can do; OpPrereqError."""
    if op.remove_instance and not op.shutdown:
        raise errors.make_invalid_error(
            "an instance that is removed must be stopped first: omit --noshutdown"
        )
    if op.long_sleep and not op.shutdown:
        raise errors.make_invalid_error(
            "--long-sleep lets the instance stay down, so it makes no sense with --noshutdown"
        )
    if op.zero_free_space and not op.shutdown:
        raise errors.make_invalid_error(
            "--zero-free-space needs the disks while the instance is stopped: omit --noshutdown"
        )
    for name in ("zeroing_timeout_fixed", "zeroing_timeout_per_mib"):
        given, flag = getattr(op, name), f"--{name.replace('_', '-')}"
        if given is not None and not op.zero_free_space:
            raise errors.make_invalid_error(f"{flag} makes sense only with --zero-free-space")
        if given is not None and given < 0:
            raise errors.make_invalid_error(f"{flag} is {given}, and cannot be negative")
    remote = op.mode is ExportMode.REMOTE
    for name in ("x509_key_name", "destination_x509_ca"):
        if (getattr(op, name) is not None) != remote:
            word = "needs" if remote else "takes no"
            raise errors.make_invalid_error(f"an export of mode {op.mode} {word} {name}")
    if isinstance(op.target_node, str) == remote:
        wanted = "a list with the place of each disk" if remote else "the name of a node"
        raise errors.make_invalid_error(f"target_node must be {wanted} in mode {op.mode}")


def choose_zeroing_time(op: OpBackupExport, disks: Sequence[Disk]) -> int:
    """Seconds that the helper guest has to zero free space."""
    fixed = _ZEROING if op.zeroing_timeout_fixed is None else op.zeroing_timeout_fixed
    each = op.zeroing_timeout_per_mib
    each = _ZEROING_PER_MIB if each is None else each
    return math.ceil(fixed + each * sum(disk.size for disk in disks))


def check_remote(op: OpBackupExport, secret: str, count: int) -> tuple[str, str, list[DiskPlace]]:
    """Name of the key, certificate of the other cluster, and where it expects the disks.

    Raises:
        OpPrereqError: something was not signed with the domain secret, or does not fit.
    """
    key = cluster_trust.check_key_name(secret, op.x509_key_name)
    pem = cluster_trust.check_certificate(secret, op.destination_x509_ca or "", certs.normalise)
    places = op.target_node if isinstance(op.target_node, list) else []
    if len(places) != count:
        raise errors.make_invalid_error(
            f"the instance has {count} disks, and the other cluster expects {len(places)}"
        )
    return (
        key,
        pem,
        [cluster_trust.check_place(secret, index, place) for index, place in enumerate(places)],
    )


def has_snapshots(disk: Disk) -> bool:
    """Whether its content can be frozen, so that the guest need not wait."""
    bottom = disk.children[0] if disk.children else disk
    template = bottom.real_template
    return template in TEMPLATES and issubclass(TEMPLATES.get(template), Snapshotting)


def check_frozen(disks: Sequence[Disk], *, running: bool, shutdown: bool) -> None:
    """Refuse to read disks that a guest writes to; OpPrereqError."""
    wrong = [disk.iv_name for disk in disks if not has_snapshots(disk)]
    if running and not shutdown and wrong:
        raise errors.make_state_error(
            f"the instance runs, and {', '.join(wrong)} cannot be frozen, as volumes of LVM can:"
            " omit --noshutdown, or stop the instance first"
        )
