"""The configuration of a container, and what the texts of its parameters mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti import errors
from ganeti.hypervisor.lxc import container_config, params
from ganeti.hypervisor.lxc.cgroups import Layout
from ganeti.hypervisor.lxc.container_config import BlockDisk, Node
from ganeti.hypervisor.mounts import Mount
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.enums import DiskMode, HypervisorName
from ganeti.rpc.objects import NodeInstance, NodeNic

TABLE: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "recorded" / "container_params.json").read_text()
)


#: The node's end of card 1 of the instance below.
PAIR = "gnt0bfe935e-1"


def hierarchy(kind: str, *options: str) -> Mount:
    point = f"/sys/fs/cgroup/{'-'.join(options)}"
    return Mount(1, "0:1", "/", point, kind, "c", frozenset(options))


OLD = Layout({name: hierarchy("cgroup", name) for name in ("cpu", "cpuset", "devices", "memory")})
NEW = Layout({}, hierarchy("cgroup2"), frozenset({"cpu", "cpuset", "devices", "memory"}))


def node(layout: Layout = NEW, *, counts_swap: bool = True, limits_cpu: bool = True) -> Node:
    return Node(layout, counts_swap, limits_cpu, Path("/run/x/rootfs"), Path("/log/x.console.log"))


def instance(*nics: NodeNic, **hvparams: Any) -> NodeInstance:
    return NodeInstance(
        uuid="u",
        name="web1.example.com",
        primary_node="n",
        hypervisor=HypervisorName.LXC,
        hvparams=hvparams,
        beparams={"maxmem": 128, "minmem": 64, "vcpus": 2},
        nics=nics,
    )


def text(made: NodeInstance, *disks: BlockDisk, on: Node | None = None) -> str:
    return container_config.text(made, params.load(made.hvparams), disks, on or node())


@pytest.mark.parametrize("name", ["chroot", "fake", "lxc"])
def test_names_and_builtin_values_are_the_recorded_ones(name: str) -> None:
    driver = HYPERVISORS.get(name)
    assert driver.defaults() == {key: each["default"] for key, each in TABLE[name].items()}
    shared = {key for key, each in TABLE[name].items() if each.get("cluster_global")}
    assert driver.traits.global_params == shared
    assert all(field.type is not Any for field in msgspec.structs.fields(driver.params))


def test_whole_configuration() -> None:
    assert text(instance(cpu_mask="0-1")) == (
        "lxc.uts.name = web1.example.com\n"
        "lxc.rootfs.path = dir:/run/x/rootfs\n"
        "lxc.tty.max = 6\n"
        "lxc.pty.max = 1024\n"
        "lxc.console.logfile = /log/x.console.log\n"
        "lxc.console.size = 1MB\n"
        "lxc.console.rotate = 1\n"
        "lxc.mount.auto = proc:mixed sys:ro\n"
        "lxc.cap.drop = mac_override sys_boot sys_module sys_time sys_admin\n"
        "lxc.cgroup2.memory.max = 134217728\n"
        "lxc.cgroup2.memory.swap.max = 0\n"
        "lxc.cgroup2.cpu.max = 200000 100000\n"
        "lxc.cgroup2.cpuset.cpus = 0-1\n"
        "lxc.cgroup2.devices.deny = a\n"
        "lxc.cgroup2.devices.allow = c 1:3 rw\n"
        "lxc.cgroup2.devices.allow = c 1:5 rw\n"
        "lxc.cgroup2.devices.allow = c 1:7 rw\n"
        "lxc.cgroup2.devices.allow = c 1:8 rw\n"
        "lxc.cgroup2.devices.allow = c 1:9 rw\n"
        "lxc.cgroup2.devices.allow = c 1:10 rw\n"
        "lxc.cgroup2.devices.allow = c 5:0 rw\n"
        "lxc.cgroup2.devices.allow = c 5:1 rw\n"
        "lxc.cgroup2.devices.allow = c 5:2 rw\n"
        "lxc.cgroup2.devices.allow = c 136:* rw\n"
        "lxc.net.0.type = empty\n"
    )


def test_limits_in_control_groups_of_version_1() -> None:
    lines = text(instance(cpu_mask="1"), on=node(OLD)).splitlines()
    assert [line for line in lines if "cgroup" in line and "devices.allow" not in line] == [
        "lxc.cgroup.memory.limit_in_bytes = 134217728",
        "lxc.cgroup.memory.memsw.limit_in_bytes = 134217728",
        "lxc.cgroup.cpu.cfs_period_us = 100000",
        "lxc.cgroup.cpu.cfs_quota_us = 200000",
        "lxc.cgroup.cpuset.cpus = 1",
        "lxc.cgroup.devices.deny = a",
    ]


@pytest.mark.parametrize("layout", [OLD, NEW])
def test_what_the_kernel_cannot_limit_is_left_out(layout: Layout) -> None:
    found = text(instance(), on=node(layout, counts_swap=False, limits_cpu=False))
    for word in ("memsw", "swap", "cpu.", "cpuset"):
        assert word not in found
    assert "memory." in found


def test_further_disks_are_devices() -> None:
    disks = BlockDisk(1, "/dev/vg/a", 253, 3, DiskMode.RW), BlockDisk(2, "/b", 8, 1, DiskMode.RO)
    found = text(instance(devices="c 1:3 rwm", drop_capabilities="", num_ttys=0), *disks)
    assert "devices.allow = c 1:3 rwm\n" in found
    assert "devices.allow = b 253:3 rw\n" in found
    assert "devices.allow = b 8:1 r\n" in found
    assert "lxc.mount.entry = /dev/vg/a dev/disk1 none bind,create=file 0 0\n" in found
    assert "lxc.tty.max = 0\n" in found
    assert "cap.drop" not in found
    with pytest.raises(errors.HypervisorError, match="space"):
        text(instance(), BlockDisk(1, "/dev/my disk", 1, 1, DiskMode.RW))


def card(mode: str, link: str = "", ip: str | None = None, vlan: str = "") -> NodeNic:
    parameters = {"mode": mode, "link": link, "vlan": vlan}
    return NodeNic(uuid="n", mac="aa:00:00:00:00:01", ip=ip, nicparams=parameters)


@pytest.mark.parametrize(
    ("nic", "lines"),
    [
        (card("bridged", "br0"), ["link = br0"]),
        (
            card("openvswitch", "ovs", vlan=".5:6"),
            ["link = ovs", "veth.vlan.id = 5", "veth.vlan.tagged.id = 6"],
        ),
        (
            card("routed", ip="203.0.113.7"),
            ["veth.mode = router", "ipv4.address = 203.0.113.7/32", "ipv4.gateway = dev"],
        ),
        (
            card("routed", ip="2001:db8::7"),
            ["veth.mode = router", "ipv6.address = 2001:db8::7/128", "ipv6.gateway = dev"],
        ),
    ],
)
def test_cards(nic: NodeNic, lines: list[str]) -> None:
    found = text(instance(card("bridged", "br9"), nic)).splitlines()
    if nic.nicparams["mode"] == "routed":
        assert f"lxc.net.1.veth.pair = {PAIR}" in found
    cards = [line for line in found if line.startswith("lxc.net.1.") and PAIR not in line]
    assert cards == [
        f"lxc.net.1.{line}"
        for line in (
            "type = veth",
            "name = eth1",
            "hwaddr = aa:00:00:00:00:01",
            "flags = up",
            *lines,
        )
    ]


def test_added_lines_come_last_and_values_may_have_commas() -> None:
    extra = "lxc.cgroup2.cpu.weight=50, lxc.hook.pre-start = /a b,c,lxc.environment=A=1,B"
    assert text(instance(extra_config=extra)).splitlines()[-3:] == [
        "lxc.cgroup2.cpu.weight = 50",
        "lxc.hook.pre-start = /a b,c",
        "lxc.environment = A=1,B",
    ]


def test_nothing_smuggles_a_line_in() -> None:
    made = instance(card("bridged", "br0\nlxc.hook.pre-start = /bin/evil"))
    with pytest.raises(errors.HypervisorError, match="line end"):
        text(made)


@pytest.mark.parametrize(
    "hvparams",
    [
        {"cpu_mask": "1:2"},
        {"cpu_mask": "a"},
        {"cpu_mask": "3-1"},
        {"devices": "c 1:3"},
        {"devices": "x 1:3 rw"},
        {"devices": "c 1:3 rr"},
        {"devices": "c 1 rw"},
        {"drop_capabilities": "sys-boot"},
        {"extra_cgroups": "a b"},
        {"extra_config": "lxc.a"},
        {"extra_config": "a=1"},
        {"extra_config": "lxc.a=1\nb=2"},
    ],
)
def test_texts_that_mean_nothing(hvparams: dict[str, Any]) -> None:
    (name,) = hvparams
    with pytest.raises(errors.HypervisorError, match=name):
        params.load(hvparams)


def test_lists_may_have_spaces_and_prefixes() -> None:
    loaded = params.load(
        {"devices": " a , c 10:200 rwm,", "drop_capabilities": "CAP_SYS_TIME , mknod"}
    )
    assert params.devices(loaded) == ["a", "c 10:200 rwm"]
    assert params.capabilities(loaded) == ["sys_time", "mknod"]
    assert params.processors(params.load({"cpu_mask": "all"})) == ""
