"""The needs of containers on a node, and what the node has."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor import mounts
from ganeti.hypervisor.kvm import pinning
from ganeti.hypervisor.lxc import cgroups, container_config, params, tools
from ganeti.hypervisor.lxc.params import LxcParams
from ganeti.model.enums import NicMode
from ganeti.rpc.objects import NodeNic

log = logging.getLogger(__name__)

_INTERFACES = Path("/sys/class/net")


def facts(layout: cgroups.Layout, root: Path, console_log: Path) -> container_config.Node:
    """The facts on which the configuration of a container depends."""
    old_swap, new_swap = "memory.memsw.limit_in_bytes", "memory.swap.max"
    swap = old_swap if layout.version("memory") == 1 else new_swap
    quota = "cpu.cfs_quota_us" if layout.version("cpu") == 1 else "cpu.stat"
    return container_config.Node(
        layout=layout,
        counts_swap=cgroups.has_file(layout, "memory", swap),
        limits_cpu=cgroups.has_file(layout, "cpu", quota),
        root=root,
        console_log=console_log,
    )


def check(loaded: LxcParams) -> None:
    """Refuse what this node does not have; HypervisorError."""
    mask = params.processors(loaded)
    if mask:
        pinning.plan(mask, 1)
    layout = cgroups.find(mounts.read())
    missing = layout.find_missing(params.parse_extra_cgroups(loaded))
    if missing:
        raise errors.HypervisorError(
            f"extra_cgroups: this node has no controller {', '.join(missing)}; mount it below"
            " /sys/fs/cgroup, or load what brings it"
        )


def explain_unusable() -> str | None:
    """The reason why containers cannot run, None without one."""
    known = version()
    if known is None or known < tools.LEAST_VERSION:
        return "lxc is older than 3.0; install a newer one"
    missing = cgroups.find(mounts.read()).find_missing(cgroups.NEEDED)
    if missing:
        return (
            f"this node has no controller {', '.join(missing)} of control groups, so containers"
            " cannot be limited; see cgroups(7) for how it is mounted, and the command line of"
            " the kernel for how it is switched on"
        )
    return None


def version() -> tuple[int, ...] | None:
    """Version of LXC, None when it cannot be told."""
    try:
        return tools.parse_version(
            process.run_checked(["lxc-start", "--version"], timeout=tools.QUICK).stdout
        )
    except (errors.CommandError, errors.HypervisorError) as err:
        log.info("version of LXC: %s", errors.text(err))
        return None


def check_link(index: int, nic: NodeNic) -> None:
    """Refuse a NIC on a bridge that is not there, in words that help; HypervisorError."""
    mode = nic.nicparams.get("mode", NicMode.BRIDGED)
    link = str(nic.nicparams.get("link") or "")
    if mode == NicMode.BRIDGED and not (_INTERFACES / link / "bridge").exists():
        raise errors.HypervisorError(
            f"NIC {index} is on the bridge {link}, which this node does not have; make it"
            f" with: ip link add name {link} type bridge && ip link set {link} up"
        )


def is_device(index: int, path: str) -> bool:
    """Whether a disk is a device and no file; HypervisorError when there is none."""
    try:
        return stat.S_ISBLK(os.stat(path).st_mode)
    except OSError as err:
        raise errors.HypervisorError(f"cannot use disk {index}, {path}: {err.strerror}") from err
