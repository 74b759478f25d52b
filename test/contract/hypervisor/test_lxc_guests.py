"""Real containers of LXC on file systems in files: what the common suite cannot ask."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trees
from rack import Rack, make_rack

from ganeti import errors
from ganeti.base import process, retry
from ganeti.hypervisor import mounts
from ganeti.hypervisor.abilities import Ballooning, Hotpluggable, Migratable
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.lxc import cgroups
from ganeti.model.enums import DiskTemplate, HypervisorName, NicMode
from ganeti.rpc.objects import NodeDisk, NodeNic

pytestmark = [pytest.mark.root, pytest.mark.together("mounts")]
NAME = "web1.example.com"
LAYOUT = cgroups.find(mounts.read())


@pytest.fixture
def lxc(tmp_path: Path) -> Iterator[Rack]:
    trees.need()
    if shutil.which("lxc-start") is None:
        pytest.skip("no LXC on this machine: install lxc")
    made = make_rack(HypervisorName.LXC, tmp_path)
    yield made
    made.close()
    assert mounts.tree(tmp_path, mounts.read()) == []


def pid(rack: Rack, name: str = NAME) -> int:
    words = ["lxc-info", "-P", str(rack.paths.lxc), "-n", name, "-p", "-H"]
    return int(process.run_checked(words, timeout=10).stdout)


def run_inside(rack: Rack, command: str) -> process.Result:
    """Run a command of the container's shell in it, with the rights of its first process."""
    words = ["lxc-attach", "-P", str(rack.paths.lxc), "-n", NAME, "--", "/bin/sh", "-c", command]
    return process.run(words, timeout=20)


def limit(rack: Rack, controller: str, old: str, new: str) -> str:
    """Content of a file in the group of the container."""
    groups = cgroups.parse_groups(Path(f"/proc/{pid(rack)}/cgroup").read_text())
    directory = cgroups.directory(LAYOUT, groups, controller)
    assert directory is not None
    return (directory / (old if LAYOUT.version(controller) == 1 else new)).read_text().strip()


def test_memory_and_processors_are_limited(lxc: Any) -> None:
    lxc.start(lxc.instance(cpu_mask="0"))
    assert limit(lxc, "memory", "memory.limit_in_bytes", "memory.max") == str(16 << 20)
    assert limit(lxc, "cpu", "cpu.cfs_quota_us", "cpu.max").split()[0] == "100000"
    assert limit(lxc, "cpuset", "cpuset.cpus", "cpuset.cpus") == "0"


def test_more_memory_than_allowed_is_not_had(lxc: Any) -> None:
    lxc.start(lxc.instance())
    hungry = "x=0123456789abcdef; while :; do x=$x$x; done"
    assert not run_inside(lxc, hungry).ok
    assert lxc.driver.info(NAME).memory == 16


def test_memory_of_a_running_container_is_changed(lxc: Any) -> None:
    instance = lxc.instance()
    lxc.start(instance)
    for memory in (64, 24):
        lxc.driver.balloon(instance, memory)
        assert lxc.driver.info(NAME).memory == memory
        found = limit(lxc, "memory", "memory.limit_in_bytes", "memory.max")
        assert found == str(memory << 20)


def test_memory_in_use_is_not_taken_away(lxc: Any) -> None:
    instance = lxc.instance()
    instance.beparams["maxmem"] = 64
    greedy = trees.INIT.replace(
        "echo guest", "x=0; n=0\nwhile [ $n -lt 23 ]; do x=$x$x; n=$((n+1)); done\necho guest"
    )
    disks = lxc.disks(instance)
    trees.image(Path(disks[0].path), {**trees.OBEDIENT, "sbin/init": greedy})
    lxc.driver.start(instance, disks)
    wait_console(lxc, "guest is up")
    with pytest.raises(errors.HypervisorError, match=r"uses .* MiB and cannot be left with 4"):
        lxc.driver.balloon(instance, 4)
    assert lxc.driver.info(NAME).memory == 64
    lxc.driver.stop(NAME, force=True)
    with pytest.raises(errors.HypervisorError, match="does not run"):
        lxc.driver.balloon(instance, 32)


def wait_console(rack: Rack, text: str, times: int = 1) -> None:
    path = rack.paths.lxc_log / f"{NAME}.console.log"

    def has_text() -> bool | None:
        return (path.exists() and path.read_text().count(text) >= times) or None

    assert retry.retry_until(has_text, timeout=20), path.read_text() if path.exists() else "no log"


def test_only_the_devices_of_the_list_can_be_used(lxc: Any) -> None:
    lxc.start(lxc.instance(devices="c 1:3 rw, c 1:5 rw, c 5:* rw, c 136:* rw, b 7:* m"))
    assert run_inside(lxc, "echo x > /dev/null").ok
    assert "not permitted" in run_inside(lxc, "cat /dev/urandom").stderr
    assert run_inside(lxc, "mknod /disk b 7:0 7 0 || mknod /disk b 7 0").ok
    assert "not permitted" in run_inside(lxc, "cat /disk").stderr


def test_it_is_confined_where_the_kernel_has_apparmor(lxc: Any) -> None:
    lxc.start(lxc.instance())
    try:
        label = Path(f"/proc/{pid(lxc)}/attr/current").read_text()
    except OSError:  # no security module answers
        label = ""
    switch = Path("/sys/module/apparmor/parameters/enabled")
    enabled = switch.exists() and switch.read_text().strip() == "Y"
    assert label.startswith("lxc-container-default") == enabled, label


def test_dropped_capabilities_are_dropped(lxc: Any) -> None:
    lxc.start(lxc.instance())
    assert "CAP_SYS_ADMIN" not in effective(lxc)
    assert "CAP_NET_ADMIN" in effective(lxc)


def test_capabilities_of_the_parameter(lxc: Any) -> None:
    lxc.start(lxc.instance(drop_capabilities="CAP_NET_ADMIN, sys_time"))
    assert "CAP_SYS_ADMIN" in effective(lxc)
    assert not effective(lxc) & {"CAP_NET_ADMIN", "CAP_SYS_TIME"}


def effective(rack: Rack) -> set[str]:
    bits = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_SYS_TIME": 25}
    status = Path(f"/proc/{pid(rack)}/status").read_text()
    mask = int(status.partition("CapEff:")[2].split()[0], 16)
    return {name for name, bit in bits.items() if mask >> bit & 1}


def test_name_terminals_and_added_lines(lxc: Any) -> None:
    extra = "lxc.environment=COLOUR=red,green, lxc.environment = TEA=yes"
    instance = lxc.instance(num_ttys=2, extra_config=extra)
    lxc.start(instance)
    environment = Path(f"/proc/{pid(lxc)}/environ").read_text().split("\0")
    assert {"COLOUR=red,green", "TEA=yes"} <= set(environment)
    assert run_inside(lxc, "cat /proc/sys/kernel/hostname").stdout == f"{NAME}\n"
    assert run_inside(lxc, "ls /dev").stdout.split().count("tty2") == 1
    assert "tty3" not in run_inside(lxc, "ls /dev").stdout


def test_console_log_and_stop_by_signal(lxc: Any) -> None:
    lxc.start(lxc.instance())
    wait_console(lxc, "guest is up")
    lxc.driver.stop(NAME, timeout=10)
    assert lxc.driver.info(NAME) is None
    wait_console(lxc, "going down")


def test_reboot_starts_anew_and_keeps_the_root(lxc: Any) -> None:
    instance = lxc.instance()
    disks = lxc.start(instance)
    wait_console(lxc, "guest is up")
    first = pid(lxc)
    (lxc.paths.lxc / NAME / "rootfs/data").write_text("precious")
    lxc.driver.reboot(instance, disks)
    wait_console(lxc, "guest is up", times=2)
    assert pid(lxc) != first
    assert run_inside(lxc, "cat /data").stdout == "precious"


def test_paused_container_still_runs(lxc: Any) -> None:
    lxc.start(lxc.instance())
    words = ["-P", str(lxc.paths.lxc), "-n", NAME]
    process.run_checked(["lxc-freeze", *words], timeout=10)
    assert list(lxc.driver.info_all()) == [NAME]
    lxc.driver.stop(NAME, force=True)
    assert lxc.driver.list_names() == []


@pytest.fixture
def bridge() -> Iterator[str]:
    name = f"gntl{os.getpid() % 100000}"
    made = process.run(["ip", "link", "add", "name", name, "type", "bridge"], timeout=10)
    if not made.ok:
        pytest.skip(f"no bridge can be made here: {made.explain()}")
    yield name
    process.run_checked(["ip", "link", "del", name], timeout=10)


def card(mode: str, link: str, ip: str | None = None) -> NodeNic:
    nicparams = {"mode": mode, "link": link, "vlan": ""}
    return NodeNic(uuid="nic1", mac="aa:00:00:12:34:56", ip=ip, nicparams=nicparams)


def test_card_on_a_bridge(lxc: Any, bridge: str) -> None:
    lxc.start(lxc.instance(nics=(card(NicMode.BRIDGED, bridge), card(NicMode.BRIDGED, bridge))))
    assert len(os.listdir(f"/sys/class/net/{bridge}/brif")) == 2
    said = run_inside(lxc, "ip link").stdout
    assert "aa:00:00:12:34:56" in said
    assert "eth0" in said
    assert "eth1" in said
    lxc.driver.stop(NAME, force=True)
    assert os.listdir(f"/sys/class/net/{bridge}/brif") == []


def test_vlans_of_a_card_on_a_bridge(lxc: Any, bridge: str) -> None:
    """Where bridges know no VLANs, such a card is refused instead of being put into none."""
    nicparams = {"mode": NicMode.BRIDGED, "link": bridge, "vlan": ".5:6"}
    nic = NodeNic(uuid="n", mac="aa:00:00:01:02:03", nicparams=nicparams)
    words = ["ip", "link", "set", bridge, "type", "bridge", "vlan_filtering", "1"]
    if not process.run(words, timeout=10).ok:
        with pytest.raises(errors.HypervisorError, match=r"(?i)vlan"):
            lxc.start(lxc.instance(nics=(nic,)))
        return
    lxc.start(lxc.instance(nics=(nic,)))
    said = process.run_checked(["bridge", "-j", "vlan", "show"], timeout=10).stdout
    (port,) = os.listdir(f"/sys/class/net/{bridge}/brif")
    (vlans,) = (entry["vlans"] for entry in json.loads(said) if entry["ifname"] == port)
    found = {entry["vlan"]: entry.get("flags", []) for entry in vlans}
    assert found == {5: ["PVID", "Egress Untagged"], 6: []}


def test_routed_card(lxc: Any) -> None:
    lxc.start(lxc.instance(nics=(card(NicMode.ROUTED, "", "203.0.113.7"),)))
    said = process.run_checked(["ip", "-j", "route", "show", "203.0.113.7"], timeout=10).stdout
    (route,) = json.loads(said)
    assert route["dst"] == "203.0.113.7"
    for name in ("proxy_arp", "forwarding"):
        path = Path("/proc/sys/net/ipv4/conf") / route["dev"] / name
        assert path.read_text() == "1\n"
    assert "203.0.113.7" in run_inside(lxc, "ip addr").stdout


def test_without_cards_there_is_no_network_of_the_node(lxc: Any) -> None:
    lxc.start(lxc.instance())
    assert run_inside(lxc, "ls /sys/class/net").stdout.split() == ["lo"]


@pytest.mark.parametrize(
    ("nic", "text"),
    [
        (card(NicMode.BRIDGED, "no-such-br"), "ip link add name no-such-br type bridge"),
        (card(NicMode.ROUTED, ""), "needs an IP address"),
        (card(NicMode.ROUTED, "100", "203.0.113.7"), "leave its link empty"),
        (card(NicMode.EXT, ""), "mode ext"),
    ],
)
def test_card_that_cannot_be(lxc: Any, nic: NodeNic, text: str) -> None:
    instance = lxc.instance(nics=(nic,))
    with pytest.raises(errors.HypervisorError, match=text):
        lxc.driver.start(instance, lxc.disks(instance))
    assert lxc.list_leftovers() == []


def test_further_disk_is_a_device(lxc: Any, tmp_path: Path) -> None:
    backing = tmp_path / "second"
    backing.write_bytes(b"second disk".ljust(1 << 20, b"\0"))
    with _loop(backing) as device:
        instance = lxc.instance()
        disks = [*lxc.disks(instance), _disk(device)]
        lxc.driver.start(instance, disks)
        assert run_inside(lxc, "cat /dev/disk1").stdout.startswith("second disk")
        assert run_inside(lxc, "echo changed > /dev/disk1").ok
        lxc.driver.stop(NAME, force=True)
    assert backing.read_bytes().startswith(b"changed")


@contextlib.contextmanager
def _loop(path: Path) -> Iterator[str]:
    device = process.run_checked(["losetup", "--find", "--show", str(path)], timeout=10).stdout
    try:
        yield device.strip()
    finally:
        process.run_checked(["losetup", "--detach", device.strip()], timeout=10)


def _disk(path: str) -> AttachedDisk:
    disk = NodeDisk(
        uuid="disk1",
        dev_type=DiskTemplate.BLOCKDEV,
        logical_id=("manual", path),
        size=1,
        iv_name="disk/1",
    )
    return AttachedDisk(disk, path)


def test_further_file_gets_a_device_while_the_container_runs(lxc: Any, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.write_bytes(b"second disk".ljust(1 << 20, b"\0"))
    instance = lxc.instance()
    disks = [*lxc.disks(instance), _disk(str(second))]
    for _ in range(2):
        lxc.driver.start(instance, disks)
        assert run_inside(lxc, "cat /dev/disk1").stdout.startswith("second disk")
        assert str(second) in loop_files()
        lxc.driver.stop(NAME, force=True)
    lxc.driver.cleanup(NAME)
    assert str(second) not in loop_files()
    assert lxc.list_leftovers() == []


def test_further_disk_that_is_not_there(lxc: Any, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_bytes(bytes(1 << 20))
    instance = lxc.instance()
    disks = [*lxc.disks(instance), _disk(str(first)), _disk(str(tmp_path / "none"))]
    with pytest.raises(errors.HypervisorError, match=r"disk 2, .*No such file"):
        lxc.driver.start(instance, disks)
    assert str(first) not in loop_files()
    assert lxc.list_leftovers() == []


def loop_files() -> str:
    words = ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]
    return process.run_checked(words, timeout=10).stdout


def test_disk_without_an_init(lxc: Any) -> None:
    instance = lxc.instance()
    disks = lxc.disks(instance)
    programs = {name: text for name, text in trees.OBEDIENT.items() if name != "sbin/init"}
    trees.image(Path(disks[0].path), programs)
    with pytest.raises(errors.HypervisorError, match=r'No such file.*"/sbin/init".*\(see '):
        lxc.driver.start(instance, disks)
    assert lxc.list_leftovers() == []
    assert lxc.driver.list_names() == []


def test_wrong_line_is_told_in_the_words_of_lxc(lxc: Any) -> None:
    instance = lxc.instance(extra_config="lxc.no.such.key=1")
    with pytest.raises(errors.HypervisorError, match=r"lxc\.no\.such\.key"):
        lxc.driver.start(instance, lxc.disks(instance))
    assert lxc.list_leftovers() == []


def test_start_that_takes_too_long_is_ended(lxc: Any, tmp_path: Path) -> None:
    hook = tmp_path / "slow"
    hook.write_text("#!/bin/sh\nexec sleep 3\n")
    hook.chmod(0o755)
    instance = lxc.instance(startup_timeout=1, extra_config=f"lxc.hook.pre-start={hook}")
    begin = time.monotonic()
    with pytest.raises(errors.HypervisorError, match="startup_timeout"):
        lxc.driver.start(instance, lxc.disks(instance))
    assert time.monotonic() - begin < 30
    assert lxc.driver.list_names() == []
    assert lxc.list_leftovers() == []


@pytest.mark.parametrize(
    ("hvparams", "text"),
    [
        ({"cpu_mask": "9000"}, "processor 9000"),
        ({"cpu_mask": "0:1"}, "more than one mask"),
        ({"cpu_mask": "three"}, "three"),
        ({"devices": "c 1:3 rwx"}, "c 1:3 rwx"),
        ({"drop_capabilities": "sys boot"}, "sys boot"),
        ({"extra_cgroups": "no_such_thing"}, "no controller no_such_thing"),
        ({"extra_config": "hello"}, "hello"),
        ({"extra_config": "lxc.a=1\nlxc.hook=2"}, "extra_config"),
        ({"num_ttys": -1}, "num_ttys"),
        ({"startup_timeout": "long"}, "startup_timeout"),
    ],
)
def test_parameters_are_checked(lxc: Any, hvparams: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.HypervisorError, match=text):
        lxc.driver.check_params(hvparams)
    instance = lxc.instance(**hvparams)
    with pytest.raises(errors.HypervisorError, match=text):
        lxc.driver.start(instance, lxc.disks(instance))
    assert lxc.list_leftovers() == []


def test_container_whose_first_process_ended(lxc: Any) -> None:
    """It does not run; what it left goes with the next stop and cleanup."""
    lxc.start(lxc.instance())
    os.kill(pid(lxc), signal.SIGKILL)

    def has_ended() -> bool | None:
        return lxc.driver.info(NAME) is None or None

    assert retry.retry_until(has_ended, timeout=10)
    lxc.driver.stop(NAME, force=True)
    lxc.driver.cleanup(NAME)
    assert lxc.list_leftovers() == []


def test_monitor_that_is_killed_leaves_no_second_copy(lxc: Any) -> None:
    """LXC knows nothing of the container then; whatever is left of it ends before a new start."""
    instance = lxc.instance()
    disks = lxc.start(instance)
    first = pid(lxc)
    monitor = Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(monitor), signal.SIGKILL)
    assert process.wait_exit(int(monitor), 10)
    lxc.driver.start(instance, disks)
    assert not process.is_alive(first)
    assert lxc.driver.list_names() == [NAME]
    lxc.driver.stop(NAME, force=True)
    lxc.driver.cleanup(NAME)
    assert list(Path("/sys/fs/cgroup").glob(f"**/lxc.payload.{NAME}")) == []


def test_container_of_somebody_else_is_left_out(lxc: Any) -> None:
    lxc.start(lxc.instance())
    (lxc.paths.lxc / NAME / "instance.json").rename(lxc.directory / "aside")
    assert lxc.driver.info_all() == {}
    (lxc.directory / "aside").rename(lxc.paths.lxc / NAME / "instance.json")
    assert list(lxc.driver.info_all()) == [NAME]


def test_what_a_container_cannot_do(lxc: Any) -> None:
    instance = lxc.instance()
    with pytest.raises(errors.HypervisorError, match="cannot be started paused"):
        lxc.driver.start(instance, lxc.disks(instance), paused=True)
    assert not lxc.driver.traits.can_migrate
    assert isinstance(lxc.driver, Ballooning)
    assert not isinstance(lxc.driver, Hotpluggable | Migratable)


def test_console_without_terminals_is_that_of_the_system(lxc: Any) -> None:
    one, two = lxc.instance(), lxc.instance("web2.example.com", num_ttys=0)
    found = [lxc.driver.console(each, "node1", each.hvparams).command for each in (one, two)]
    assert found[0] == ["lxc-console", "-P", str(lxc.paths.lxc), "-n", NAME]
    assert found[1][-2:] == ["-t", "0"]
