"""The configuration of a container, after lxc.container.conf(5) of LXC 3 and later; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.hypervisor.kvm import network_plan
from ganeti.hypervisor.lxc import params as lxc_params
from ganeti.hypervisor.lxc.cgroups import Layout
from ganeti.hypervisor.lxc.params import LxcParams
from ganeti.model.enums import DiskMode, NicMode
from ganeti.rpc.objects import NodeInstance, NodeNic

#: Microseconds over which processor time is shared out.
_PERIOD = 100000
_MIB = 1 << 20


@dataclass(frozen=True)
class BlockDisk:
    """A disk besides the root that the container gets as a device."""

    index: int
    path: str
    major: int
    minor: int
    mode: DiskMode


@dataclass(frozen=True)
class Node:
    """Facts about the node: its cgroups, and the paths of a container."""

    layout: Layout
    #: whether memory and swap are counted together (version 1), or swap at all (2)
    counts_swap: bool
    limits_cpu: bool
    root: Path
    console_log: Path


def text(instance: NodeInstance, params: LxcParams, disks: Sequence[BlockDisk], node: Node) -> str:
    """The whole file.

    Raises:
        HypervisorError: a value that cannot be in it, a NIC that a container cannot have.
    """
    pairs = [
        ("lxc.uts.name", instance.name),
        ("lxc.rootfs.path", f"dir:{node.root}"),
        ("lxc.tty.max", str(params.num_ttys)),
        ("lxc.pty.max", "1024"),
        ("lxc.console.logfile", str(node.console_log)),
        ("lxc.console.size", "1MB"),
        ("lxc.console.rotate", "1"),
        ("lxc.mount.auto", "proc:mixed sys:ro"),
        *_capabilities(params),
        *_limits(instance, params, node),
        *_devices(params, disks, node.layout),
        *_disks(disks),
        *_list_nics(instance),
        # The last word has the administrator.
        *lxc_params.parse_extra_config(params),
    ]
    return "".join(f"{key} = {_line(value)}\n" for key, value in pairs)


def _line(value: str) -> str:
    if not value.isprintable():
        raise errors.HypervisorError(
            f"{value[:60]!r} cannot be in the configuration of a container: it has a line end or"
            " another unprintable character in it"
        )
    return value


def _capabilities(params: LxcParams) -> Iterator[tuple[str, str]]:
    names = lxc_params.capabilities(params)
    if names:
        yield "lxc.cap.drop", " ".join(names)


def _prefix(layout: Layout, controller: str) -> str:
    return "lxc.cgroup" if layout.version(controller) == 1 else "lxc.cgroup2"


def _limits(instance: NodeInstance, params: LxcParams, node: Node) -> Iterator[tuple[str, str]]:
    layout = node.layout
    for name, value in memory_limit(instance.backend("maxmem"), node):
        yield f"{_prefix(layout, 'memory')}.{name}", value
    quota = instance.backend("vcpus") * _PERIOD
    cpu = _prefix(layout, "cpu")
    if node.limits_cpu and layout.version("cpu") == 1:
        yield f"{cpu}.cpu.cfs_period_us", str(_PERIOD)
        yield f"{cpu}.cpu.cfs_quota_us", str(quota)
    elif node.limits_cpu:
        yield f"{cpu}.cpu.max", f"{quota} {_PERIOD}"
    mask = lxc_params.processors(params)
    if mask:
        yield f"{_prefix(layout, 'cpuset')}.cpuset.cpus", mask


def memory_limit(memory: int, node: Node) -> list[tuple[str, str]]:
    """Files and values that limit a container to ``memory`` MiB and no swap, in this order."""
    size = str(memory * _MIB)
    if node.layout.version("memory") == 1:
        swap = [("memory.memsw.limit_in_bytes", size)] if node.counts_swap else []
        return [("memory.limit_in_bytes", size), *swap]
    return [("memory.max", size), *([("memory.swap.max", "0")] if node.counts_swap else [])]


def _devices(
    params: LxcParams, disks: Sequence[BlockDisk], layout: Layout
) -> Iterator[tuple[str, str]]:
    prefix = f"{_prefix(layout, 'devices')}.devices"
    yield f"{prefix}.deny", "a"
    for rule in lxc_params.devices(params):
        yield f"{prefix}.allow", rule
    for disk in disks:
        access = "r" if disk.mode is DiskMode.RO else "rw"
        yield f"{prefix}.allow", f"b {disk.major}:{disk.minor} {access}"


def _disks(disks: Sequence[BlockDisk]) -> Iterator[tuple[str, str]]:
    """The device files are bound into the container, as it cannot make them itself."""
    for disk in disks:
        if any(character.isspace() for character in disk.path):
            raise errors.HypervisorError(
                f"disk {disk.index}: a container cannot be given {disk.path!r}: it has a space in"
                " its name"
            )
        yield "lxc.mount.entry", f"{disk.path} dev/disk{disk.index} none bind,create=file 0 0"


def list_routed_nics(instance: NodeInstance) -> Iterator[tuple[str, NodeNic]]:
    """NICs for whose guest the node answers, with the name of the node's end of each."""
    for index, nic in enumerate(instance.nics):
        if nic.nicparams.get("mode") == NicMode.ROUTED:
            yield _pair(instance, index), nic


def _pair(instance: NodeInstance, index: int) -> str:
    """A name of an interface (15 letters at most) that no other NIC of the node has."""
    return f"gnt{hashlib.sha256(instance.uuid.encode()).hexdigest()[:8]}-{index}"


def _list_nics(instance: NodeInstance) -> Iterator[tuple[str, str]]:
    if not instance.nics:
        # Without a word about it the container would have no network namespace of its own.
        yield "lxc.net.0.type", "empty"
    for index, nic in enumerate(instance.nics):
        for key, value in _describe_nic(instance, index, nic):
            yield f"lxc.net.{index}.{key}", value


def _describe_nic(instance: NodeInstance, index: int, nic: NodeNic) -> Iterator[tuple[str, str]]:
    mode = str(nic.nicparams.get("mode", NicMode.BRIDGED))
    link = str(nic.nicparams.get("link") or "")
    yield "type", "veth"
    yield "name", f"eth{index}"
    yield "hwaddr", nic.mac
    yield "flags", "up"
    if mode in (NicMode.BRIDGED, NicMode.OPENVSWITCH):
        yield "link", link
        vlan = network_plan.parse_vlan(str(nic.nicparams.get("vlan") or ""))
        if vlan.access is not None:
            yield "veth.vlan.id", str(vlan.access)
        for number in vlan.trunk:
            yield "veth.vlan.tagged.id", str(number)
    elif mode == NicMode.ROUTED:
        yield "veth.pair", _pair(instance, index)
        yield from _list_routed(index, nic, link)
    else:
        raise errors.HypervisorError(
            f"NIC {index} has the mode {mode}; a container can have bridged, openvswitch"
            " and routed ones"
        )


def _list_routed(index: int, nic: NodeNic, link: str) -> Iterator[tuple[str, str]]:
    if not nic.ip:
        raise errors.HypervisorError(f"NIC {index} is routed and needs an IP address")
    if link:
        raise errors.HypervisorError(
            f"NIC {index} is routed by the table {link}; LXC sets routes in the main"
            " table only: leave its link empty"
        )
    version = "ipv6" if ":" in nic.ip else "ipv4"
    length = 128 if version == "ipv6" else 32
    yield "veth.mode", "router"
    yield f"{version}.address", f"{nic.ip}/{length}"
    yield f"{version}.gateway", "dev"
