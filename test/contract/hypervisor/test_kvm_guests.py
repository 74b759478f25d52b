"""Real QEMU guests: how they end, how they are reached, and what survives what."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boot_sectors
import pytest

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.kvm import accel, binary, network, params, qemu_process
from ganeti.hypervisor.kvm.devices import USER_NETWORK
from ganeti.hypervisor.kvm.qmp import Qmp, connect_unix
from ganeti.model.enums import RunState
from ganeti.rpc.objects import NodeNic

pytestmark = pytest.mark.qemu


def type_in(kvm: Any, instance: Any, data: bytes) -> bytes:
    """Send to the serial port; returns the first byte that comes back, empty at the end."""
    with connect_unix(kvm.driver.store.socket(instance.name, "serial"), 5) as sock:
        sock.settimeout(10)
        sock.sendall(data)
        return sock.recv(1)


def switch_off(kvm: Any, instance: Any) -> None:
    """From inside the guest."""
    pid = kvm.driver.store.pid(instance.name)
    assert type_in(kvm, instance, b"p") == b""
    assert process.wait_exit(pid, 10)


# how guests end


def test_guest_that_ignores_the_button_is_ended_by_force(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.deaf)
    begin = time.monotonic()
    kvm.driver.stop(instance.name, timeout=0.3)
    assert 0.25 < time.monotonic() - begin < 5
    assert kvm.driver.info(instance.name).state == RunState.RUNNING
    with pytest.raises(errors.HypervisorError, match="still runs"):
        kvm.driver.cleanup(instance.name)
    kvm.driver.stop(instance.name, force=True)
    assert kvm.driver.info(instance.name) is None


def test_button_is_pressed_again_for_a_guest_that_was_booting(kvm: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("ganeti.hypervisor.kvm.power._PRESS_AGAIN", 0.3)
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    kvm.driver.stop(instance.name, timeout=20)
    assert kvm.driver.info(instance.name) is None


def test_stop_without_time_presses_the_button_once(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    kvm.driver.stop(instance.name)
    assert process.wait_exit(pid, 10)


def test_hung_qemu_is_killed(kvm: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("ganeti.hypervisor.kvm.power._QUIT_TIMEOUT", 0.2)
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    pid = kvm.driver.store.pid(instance.name)
    os.kill(pid, signal.SIGSTOP)
    kvm.driver.stop(instance.name, force=True)
    assert kvm.driver.info(instance.name) is None
    assert not process.is_alive(pid)


def test_crashed_qemu_is_noticed_and_can_be_started_again(kvm: Any) -> None:
    instance = kvm.instance(user_shutdown=True)
    disks = kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    os.kill(pid, signal.SIGKILL)
    assert process.wait_exit(pid, 10)
    assert kvm.driver.info(instance.name) is None
    assert kvm.driver.list_names() == []
    kvm.driver.start(instance, disks)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING


def test_process_number_of_somebody_else_is_no_guest(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    kvm.driver.stop(instance.name, force=True)
    kvm.driver.store.pid_file(instance.name).write_text(f"{os.getpid()}\n")
    assert kvm.driver.info(instance.name) is None
    kvm.driver.stop(instance.name, force=True)
    kvm.driver.cleanup(instance.name)


def test_guest_whose_files_were_lost_is_not_started_twice(kvm: Any) -> None:
    instance = kvm.instance()
    disks = kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    for path in (kvm.paths.kvm / "pid", kvm.paths.kvm / "conf"):
        for entry in path.iterdir():
            entry.unlink()
    with pytest.raises(errors.HypervisorError, match=f"as process {pid}, although"):
        kvm.driver.start(instance, disks)
    os.kill(pid, signal.SIGKILL)
    assert process.wait_exit(pid, 10)
    kvm.driver.start(instance, disks)


def test_guest_that_shuts_itself_down(kvm: Any) -> None:
    instance = kvm.instance(user_shutdown=True)
    disks = kvm.start(instance)
    switch_off(kvm, instance)
    assert kvm.make_driver().info(instance.name).state == RunState.SHUTDOWN
    assert kvm.driver.list_names() == [instance.name]
    # It can be started again as it is; and a stop takes note of the end.
    kvm.driver.start(instance, disks)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING
    kvm.wait_hello(instance, times=2)
    switch_off(kvm, instance)
    assert kvm.driver.info(instance.name).state == RunState.SHUTDOWN
    kvm.driver.stop(instance.name, force=True)
    assert kvm.driver.info(instance.name) is None
    kvm.driver.cleanup(instance.name)
    assert kvm.list_leftovers() == []


def test_shutdown_that_was_asked_for_is_not_the_guests_own(kvm: Any) -> None:
    instance = kvm.instance(user_shutdown=True)
    kvm.start(instance)
    kvm.driver.stop(instance.name, timeout=20)
    assert kvm.driver.info(instance.name) is None


def test_own_shutdown_without_permission_is_just_an_end(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance)
    switch_off(kvm, instance)
    assert kvm.driver.info(instance.name) is None


# how guests start


def test_words_of_qemu_arrive_and_nothing_is_left(kvm: Any) -> None:
    instance = kvm.instance(cpu_type="no-such-cpu")
    with pytest.raises(errors.HypervisorError, match=r"QEMU refused to start.*no-such-cpu"):
        kvm.start(instance)
    assert kvm.list_leftovers() == []


def test_unknown_machine_is_refused(kvm: Any) -> None:
    with pytest.raises(errors.HypervisorError, match=r"pc-q36.*did you mean pc-q35"):
        kvm.start(kvm.instance(machine_version="pc-q36-7.2"))
    kvm.start(kvm.instance(machine_version="q35"), booted=False)


def test_missing_files_are_all_named(kvm: Any) -> None:
    instance = kvm.instance(kernel_path="/no/kernel", cdrom_image_path="/no/image")
    with pytest.raises(errors.HypervisorError, match=r"/no/kernel.*/no/image"):
        kvm.start(instance)
    kvm.driver.check_params({**kvm.hvparams, "cdrom_image_path": "http://localhost/image"})


def test_missing_disk_is_named(kvm: Any, tmp_path: Path) -> None:
    instance = kvm.instance()
    disks = kvm.disks(instance)
    Path(disks[0].path).unlink()
    with pytest.raises(errors.HypervisorError, match="disk/0 is not there"):
        kvm.driver.start(instance, disks)
    assert kvm.list_leftovers() == []


def test_paused_guest_waits(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.driver.start(instance, kvm.disks(instance), paused=True)
    with Qmp.connect(kvm.driver.store.socket(instance.name, "qmp")) as qmp:
        assert qmp.command("query-status")["status"] == "prelaunch"
        assert kvm.serial_log(instance) == ""
        qmp.command("cont")
    kvm.wait_hello(instance)


def test_console_of_a_paused_guest_that_goes_on(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.driver.start(instance, kvm.disks(instance), paused=True)
    tool = [sys.executable, "-m", "ganeti.tools.kvm_console_wrapper"]
    env = {**os.environ, "GANETI_ROOTDIR": str(kvm.paths.root)}
    # As Ganeti calls it; Ctrl-] ends the connection.
    words = ["/usr/bin/socat", instance.name, "monitor", "STDIO", "UNIX-CONNECT:serial"]
    with subprocess.Popen(
        [*tool, *words],
        env=env,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        kvm.wait_hello(instance)
        _out, err = child.communicate(b"\x1d", timeout=30)
    assert (child.returncode, b"is paused; it continues now" in err) == (0, True)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING
    missing = subprocess.run(
        [*tool, "nosuch"], env=env, capture_output=True, timeout=30, check=False
    )
    assert missing.returncode == 1
    assert b"instance nosuch does not run on this node" in missing.stderr


def test_guest_outlives_the_daemon_that_started_it(kvm: Any, tmp_path: Path) -> None:
    """The starter is a process of its own, killed with its whole group."""
    instance = kvm.instance()
    disk = kvm.disks(instance)[0]
    script = (
        "import sys, os, signal, msgspec\n"
        "from pathlib import Path\n"
        "from ganeti.paths import Paths\n"
        "from ganeti.hypervisor.interface import AttachedDisk\n"
        "from ganeti.hypervisor.kvm.driver import KvmHypervisor\n"
        "from ganeti.rpc.objects import NodeDisk, NodeInstance\n"
        "instance = msgspec.json.decode(sys.argv[2], type=NodeInstance)\n"
        "disk = msgspec.json.decode(sys.argv[3], type=NodeDisk)\n"
        "driver = KvmHypervisor(Paths(Path(sys.argv[1])))\n"
        "driver.start(instance, [AttachedDisk(disk, sys.argv[4])])\n"
        "os.killpg(0, signal.SIGKILL)\n"
    )
    import msgspec

    result = subprocess.run(
        [
            *(sys.executable, "-c", script, str(kvm.paths.root)),
            *(msgspec.json.encode(instance), msgspec.json.encode(disk.disk), disk.path),
        ],
        capture_output=True,
        timeout=60,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    kvm.wait_hello(instance)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING
    kvm.driver.stop(instance.name, timeout=20)
    assert kvm.driver.info(instance.name) is None


def test_nothing_secret_is_kept_or_shown(kvm: Any, tmp_path: Path) -> None:
    secret = tmp_path / "vnc-password"
    secret.write_text("sesame\n")
    instance = kvm.instance(vnc_bind_address=str(tmp_path), vnc_password_file=str(secret))
    kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    command = Path(f"/proc/{pid}/cmdline").read_text()
    record = kvm.driver.store.runtime_file(instance.name)
    for text in (command, record.read_text()):
        assert "sesame" not in text
        assert "hidden" not in text
    assert record.stat().st_mode & 0o077 == 0
    with connect_unix(tmp_path / f"{instance.name}.vnc", 5) as sock:
        sock.settimeout(10)
        banner = sock.recv(12)
        sock.sendall(banner)
        # One security type, and it is 2: a password.
        assert sock.recv(2) == b"\x01\x02"


def test_empty_password_file_stops_the_start(kvm: Any, tmp_path: Path) -> None:
    secret = tmp_path / "vnc-password"
    secret.write_text("\n")
    instance = kvm.instance(vnc_bind_address=str(tmp_path), vnc_password_file=str(secret))
    with pytest.raises(errors.HypervisorError, match="is empty"):
        kvm.start(instance)
    assert kvm.list_leftovers() == []


def test_display_needs_a_port(kvm: Any) -> None:
    instance = kvm.instance(vnc_bind_address="127.0.0.1")
    with pytest.raises(errors.HypervisorError, match="no port"):
        kvm.start(instance)


def test_long_paths_and_names_work(kvm: Any, tmp_path: Path) -> None:
    """A socket address has 107 bytes; a host name may have 253."""
    kvm.paths = type(kvm.paths)(tmp_path / ("deep" * 30))
    kvm.driver = kvm.make_driver()
    for name in ("short", "x" * 60 + "." + "y" * 60):
        instance = kvm.instance(name)
        kvm.start(instance)
        assert type_in(kvm, instance, b"e") == b"e"
        kvm.driver.stop(name, timeout=20)
        assert kvm.driver.info(name) is None
        kvm.driver.cleanup(name)
    assert kvm.list_leftovers() == []


def test_commas_are_no_separators(kvm: Any, tmp_path: Path) -> None:
    kvm.paths = type(kvm.paths)(tmp_path / "a,b")
    kvm.driver = kvm.make_driver()
    kvm.directory = tmp_path / "disks,readonly=on"
    kvm.directory.mkdir()
    instance = kvm.instance(user_shutdown=True)
    kvm.start(instance)
    assert type_in(kvm, instance, b"e") == b"e"


def test_other_ways_to_attach_disks(kvm: Any) -> None:
    for disk_type in ("ide", "scsi"):
        instance = kvm.instance(disk_type, disk_type=disk_type)
        kvm.start(instance)
        assert kvm.driver.info(instance.name).state == RunState.RUNNING
        kvm.driver.stop(instance.name, force=True)


@pytest.mark.root
def test_less_privileged_qemu(kvm: Any) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    instance = kvm.instance(security_model="user", security_domain="nobody", use_chroot=True)
    kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    assert Path(f"/proc/{pid}").stat().st_uid != 0
    assert os.readlink(f"/proc/{pid}/root") == str(kvm.driver.store.chroot(instance.name))
    kvm.driver.stop(instance.name, timeout=20)
    assert kvm.driver.info(instance.name) is None
    kvm.driver.cleanup(instance.name)
    assert kvm.list_leftovers() == []


# while they run


def test_reboot_resets_within_the_process(kvm: Any) -> None:
    instance = kvm.instance()
    disks = kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    kvm.driver.reboot(instance, disks)
    kvm.wait_hello(instance, times=2)
    assert kvm.driver.store.pid(instance.name) == pid


def test_reboot_where_the_guests_own_reboot_would_end_it(kvm: Any) -> None:
    instance = kvm.instance(reboot_behavior="exit")
    disks = kvm.start(instance)
    kvm.driver.reboot(instance, disks)
    kvm.wait_hello(instance, times=2)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING


def test_balloon_changes_the_memory_that_is_told(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    kvm.driver.balloon(instance, 12)
    assert kvm.make_driver().info(instance.name).memory == 12


def test_many_guests_are_listed_quickly(kvm: Any) -> None:
    """Existence is known without asking any QEMU: also when all of them are stopped."""
    for index in range(3):
        kvm.start(kvm.instance(f"web{index}"), booted=False)
    pids = [kvm.driver.store.pid(f"web{index}") for index in range(3)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert len(kvm.driver.info_all()) == 3
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_processor_time_grows(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance)
    assert kvm.driver.info(instance.name).time > 0
    assert qemu_process.measure_resident(kvm.driver.store.pid(instance.name)) > 0


# consoles


def test_serial_console_through_the_client(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance)
    command = kvm.driver.console(instance, "node1", instance.hvparams).command
    result = subprocess.run(command, input=b"", capture_output=True, timeout=20, cwd="/")
    assert (result.returncode, result.stdout) == (0, b"")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd="/"
    ) as client:
        client.stdin.write(b"e")
        assert client.stdout.read(1) == b"e"
        client.stdin.write(b"\x1d")
        assert client.wait(10) == 0
    assert kvm.driver.info(instance.name).state == RunState.RUNNING


def test_serial_console_on_a_terminal_ends_with_the_guest(kvm: Any) -> None:
    import termios

    instance = kvm.instance()
    kvm.start(instance)
    command = kvm.driver.console(instance, "node1", instance.hvparams).command
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE) as client:
            assert b"Ctrl-]" in client.stderr.readline()
            # Raw: neither echoed by the terminal nor held back until the end of a line.
            os.write(master, b"e")
            assert os.read(master, 10) == b"e"
            os.write(master, b"p")
            assert client.wait(20) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


# networks


def test_card_without_bridge_or_privilege(kvm: Any) -> None:
    nic = NodeNic(
        uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
        mac="aa:00:00:11:22:33",
        nicparams={"mode": "ext", "link": USER_NETWORK},
    )
    instance = kvm.instance(nics=(nic,))
    kvm.start(instance)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING


def test_missing_bridge_says_how_to_make_it(kvm: Any) -> None:
    nic = NodeNic(
        uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
        mac="aa:00:00:11:22:33",
        nicparams={"mode": "bridged", "link": "no-such-br"},
    )
    with pytest.raises(errors.HypervisorError, match="ip link add name no-such-br type bridge"):
        kvm.start(kvm.instance(nics=(nic,)))
    assert kvm.list_leftovers() == []


@pytest.mark.root
def test_card_on_a_bridge(kvm: Any) -> None:
    bridge = f"gntt{os.getpid() % 100000}"
    made = process.run(["ip", "link", "add", "name", bridge, "type", "bridge"], timeout=10)
    if not made.ok:
        pytest.skip(f"no bridge can be made here: {made.explain()}")
    try:
        nic = NodeNic(
            uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
            mac="aa:00:00:11:22:33",
            nicparams={"mode": "bridged", "link": bridge},
        )
        instance = kvm.instance(nics=(nic,), virtio_net_queues=2)
        kvm.start(instance)
        tap = (kvm.driver.store.nic_dir(instance.name) / "0").read_text().strip()
        port = Path("/sys/class/net") / tap
        assert os.readlink(port / "master").endswith(bridge)
        assert int((port / "flags").read_text(), 16) & 1, "the tap is not up"
        kvm.driver.stop(instance.name, force=True)
        assert not port.exists()
    finally:
        process.run(["ip", "link", "del", bridge], timeout=10)


@pytest.mark.root
def test_script_replaces_the_attaching(kvm: Any, tmp_path: Path) -> None:
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK) or os.geteuid():
        pytest.skip("taps can only be made by root")
    kvm.paths.conf.mkdir(parents=True)
    script = kvm.paths.conf / "kvm-vif-bridge"
    script.write_text(f'#!/bin/sh\necho "$INSTANCE $INTERFACE $MAC $LINK" >> {tmp_path}/said\n')
    script.chmod(0o755)
    nic = NodeNic(
        uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
        mac="aa:00:00:11:22:33",
        nicparams={"mode": "ext", "link": "anything"},
    )
    instance = kvm.instance(nics=(nic,))
    kvm.start(instance, booted=False)
    tap = (kvm.driver.store.nic_dir(instance.name) / "0").read_text().strip()
    said = (tmp_path / "said").read_text()
    assert said == f"{instance.name} {tap} aa:00:00:11:22:33 anything\n"
    kvm.driver.stop(instance.name, force=True)
    script.write_text("#!/bin/sh\necho no cable >&2\nexit 3\n")
    with pytest.raises(errors.HypervisorError, match="no cable"):
        kvm.start(instance, booted=False)
    assert not (Path("/sys/class/net") / tap).exists()


def test_display_on_an_interface_has_its_address() -> None:
    assert network.interface_address("lo") == "127.0.0.1"
    with pytest.raises(errors.HypervisorError, match="no-such-if"):
        network.interface_address("no-such-if")


# accelerator


def test_probe_image_runs_in_software(kvm: Any) -> None:
    """The image itself is right: what it asks for is what a PC does."""
    qemu = binary.locate(params.DEFAULT_KVM_PATH)
    assert accel.probe(qemu, "tcg", 20) is None


def test_probe_is_bounded_and_remembered(kvm: Any, tmp_path: Path, caplog: Any) -> None:
    chooser = accel.Chooser(tmp_path / "accel.json")
    qemu = binary.Finder(tmp_path / "qemu.json").find(params.DEFAULT_KVM_PATH)
    begin = time.monotonic()
    first = chooser.choose(params.KvmParams(), qemu)
    assert time.monotonic() - begin < 5
    begin = time.monotonic()
    second = chooser.choose(params.KvmParams(), qemu)
    assert time.monotonic() - begin < 0.1
    assert first.accelerator == second.accelerator
    assert second.warning is None
    warnings = [record for record in caplog.records if "software emulation" in record.message]
    assert len(warnings) == (first.accelerator == "tcg")
    assert (first.warning is not None) == (first.accelerator == "tcg")


def test_chosen_accelerator_boots_a_guest(kvm: Any) -> None:
    instance = kvm.instance(accelerator="auto")
    kvm.start(instance)
    assert kvm.driver.info(instance.name).state == RunState.RUNNING


def test_node_without_the_device_uses_software(kvm: Any, tmp_path: Path) -> None:
    chooser = accel.Chooser(tmp_path / "accel.json", device=tmp_path / "no-kvm")
    qemu = binary.Finder(tmp_path / "qemu.json").find(params.DEFAULT_KVM_PATH)
    choice = chooser.choose(params.KvmParams(), qemu)
    assert choice.accelerator == "tcg"
    assert "no-kvm" in (choice.warning or "")


# control socket


def test_commands_and_refusals(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    path = kvm.driver.store.socket(instance.name, "qmp")
    with Qmp.connect(path) as qmp:
        assert qmp.command("query-status")["status"] == "running"
        with pytest.raises(errors.HypervisorError, match="no-such-command"):
            qmp.command("no-such-command")
        assert qmp.command("query-name")["name"] == instance.name
