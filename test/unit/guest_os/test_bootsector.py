"""The OS definitions that are shipped: their scripts, and the guest itself in a real QEMU."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from needs import needs_programs

from ganeti import errors
from ganeti.base import jsonio, process
from ganeti.guest_os import definition, environment, scripts
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

MakeInstance = Callable[..., NodeInstance]
MakeDisk = Callable[..., AttachedDisk]

SHIPPED = Path(__file__).resolve().parents[3] / "os"
QEMU = shutil.which("qemu-system-x86_64")
MIB = 1024 * 1024
LONGEST = ".".join(["a" * 62] * 4) + ".b"

needs_qemu = pytest.mark.skipif(QEMU is None, reason="qemu-system-x86_64 is not installed")


@pytest.fixture
def shipped(paths: Paths) -> Paths:
    """A node on which the shipped definitions are installed."""
    paths.os_search_path[0].parent.mkdir(parents=True)
    paths.os_search_path[0].symlink_to(SHIPPED)
    return paths


@pytest.fixture
def disk(tmp_path: Path, make_disk: MakeDisk) -> AttachedDisk:
    file = tmp_path / "disk0"
    file.touch()
    os.truncate(file, 4 * MIB)
    return make_disk(file)


@pytest.fixture
def web1(make_instance: MakeInstance) -> NodeInstance:
    return make_instance(os="bootsector", osparams={})


def install(instance: NodeInstance, disk: AttachedDisk, paths: Paths) -> bytes:
    scripts.create(instance, [disk], paths, timeout=30)
    return Path(disk.path).read_bytes()[:1024]


def test_both_definitions_are_valid(shipped: Paths) -> None:
    found = {item.name: item for item in definition.diagnose(shipped.os_search_path)}
    assert {name: (item.valid, item.diagnose) for name, item in found.items()} == {
        "bootsector": (True, ""),
        "noop": (True, ""),
    }
    assert found["bootsector"].variants == ["default", "beat"]
    assert found["bootsector"].parameters[0][0] == "greeting"
    assert found["bootsector"].api_versions == [20, 15, 10]


def test_noop(shipped: Paths, make_instance: MakeInstance) -> None:
    instance = make_instance(os="noop", osparams={})
    scripts.create(instance, [], shipped, timeout=30)
    scripts.rename(instance, [], "old", shipped, timeout=30)
    assert scripts.validate("noop", {}, shipped, timeout=30)


@needs_programs("as", "ld")
def test_the_boot_program_is_made_from_its_source(tmp_path: Path) -> None:
    """After a change of boot.s run os/bootsector/assemble."""
    made = tmp_path / "boot.oct"
    process.run_checked([str(SHIPPED / "bootsector" / "assemble"), str(made)], timeout=30)
    assert made.read_text() == (SHIPPED / "bootsector" / "boot.oct").read_text()


def test_what_is_written(shipped: Paths, web1: NodeInstance, disk: AttachedDisk) -> None:
    Path(disk.path).write_bytes(b"\xff" * 4096)
    sectors = install(web1, disk, shipped)
    assert sectors[510:512] == b"\x55\xaa"
    assert sectors[446:510] == bytes(64)
    assert sectors[512:521] == b"GNTBOOT1\0"
    assert sectors[528:720].rstrip(b"\0") == b"Hello, this is"
    assert sectors[720:976].rstrip(b"\0") == b"web1.example.com"
    assert Path(disk.path).read_bytes()[1024:] == b"\xff" * 3072


def test_renaming_keeps_greeting_and_variant(
    shipped: Paths, make_instance: MakeInstance, disk: AttachedDisk
) -> None:
    before = install(
        make_instance(os="bootsector+beat", name=LONGEST, osparams={"greeting": "Moin"}),
        disk,
        shipped,
    )
    assert before[720:976].rstrip(b"\0").decode() == LONGEST
    renamed = make_instance(os="bootsector+beat", name="b.example.com", osparams={})
    scripts.rename(renamed, [disk], LONGEST, shipped, timeout=30)
    after = Path(disk.path).read_bytes()[:1024]
    assert after[720:976].rstrip(b"\0") == b"b.example.com"
    assert (after[:720], after[976:]) == (before[:720], before[976:])


def test_a_foreign_disk_is_not_renamed(
    shipped: Paths, web1: NodeInstance, disk: AttachedDisk
) -> None:
    Path(disk.path).write_bytes(b"\xff" * 4096)
    with pytest.raises(errors.OpExecError, match="does not hold this OS"):
        scripts.rename(web1, [disk], "old", shipped, timeout=30)
    assert Path(disk.path).read_bytes() == b"\xff" * 4096


def test_refusals(shipped: Paths, make_instance: MakeInstance, disk: AttachedDisk) -> None:
    web1 = make_instance(os="bootsector", osparams={})
    with pytest.raises(errors.OpExecError, match=r"web1\.example\.com has no disk"):
        scripts.create(web1, [], shipped, timeout=30)
    with pytest.raises(errors.OpExecError, match="has no path on this node, only x://y"):
        scripts.create(web1, [AttachedDisk(disk.disk, "", "x://y")], shipped, timeout=30)
    loud = make_instance(os="bootsector+loud", osparams={})
    with pytest.raises(errors.OpExecError, match="no variant is called 'loud'"):
        scripts.create(loud, [disk], shipped, timeout=30)
    with pytest.raises(errors.OpExecError, match="no file and no block device"):
        scripts.create(web1, [AttachedDisk(disk.disk, "/gone")], shipped, timeout=30)
    os.truncate(disk.path, 1023)
    with pytest.raises(errors.OpExecError, match="too small"):
        scripts.create(web1, [disk], shipped, timeout=30)


@pytest.mark.parametrize("greeting", ["h\u00e9", "a\nb", "x" * 191])
def test_greetings_that_do_not_fit(
    shipped: Paths, make_instance: MakeInstance, disk: AttachedDisk, greeting: str
) -> None:
    with pytest.raises(errors.OpPrereqError, match="parameter greeting"):
        scripts.validate("bootsector+beat", {"greeting": greeting}, shipped, timeout=30)
    instance = make_instance(os="bootsector", osparams={"greeting": greeting})
    with pytest.raises(errors.OpExecError, match="parameter greeting"):
        scripts.create(instance, [disk], shipped, timeout=30)
    assert Path(disk.path).read_bytes() == bytes(4 * MIB)


@pytest.mark.parametrize("greeting", ["", "%s %d \\n $HOME `id` *", "x" * 190])
def test_odd_greetings_are_taken_literally(
    shipped: Paths, make_instance: MakeInstance, disk: AttachedDisk, greeting: str
) -> None:
    assert scripts.validate("bootsector+beat", {"greeting": greeting}, shipped, timeout=30)
    sectors = install(
        make_instance(os="bootsector", osparams={"greeting": greeting}), disk, shipped
    )
    assert sectors[528:720].rstrip(b"\0").decode() == greeting


def transfer(
    script: str, env: dict[str, str], data: bytes, pass_fds: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(SHIPPED / "bootsector" / script)],
        env=env,
        input=data,
        capture_output=True,
        timeout=30,
        pass_fds=pass_fds,
        check=False,
    )


def test_export_and_import(
    shipped: Paths, web1: NodeInstance, disk: AttachedDisk, make_disk: MakeDisk, tmp_path: Path
) -> None:
    install(web1, disk, shipped)
    found = definition.load("bootsector", shipped.os_search_path)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as sizes:
        with os.fdopen(writer, "wb"):
            env = environment.make_export_environment(found, web1, [disk], 0, size_fd=writer)
            dump = transfer("export", env, b"", (writer,))
        assert int(sizes.read()) == 4 * MIB
    assert dump.stdout == Path(disk.path).read_bytes()
    target = tmp_path / "disk1"
    target.write_bytes(b"\xff" * (4 * MIB))
    env = environment.make_import_environment(found, web1, [make_disk(target)], 0)
    assert transfer("import", env, dump.stdout).returncode == 0
    assert target.read_bytes() == dump.stdout
    os.truncate(target, MIB)
    refused = transfer("import", env, dump.stdout)
    assert refused.returncode == 1
    assert b"longer than" in refused.stderr
    assert target.stat().st_size == MIB


def test_transfers_without_disk(shipped: Paths, web1: NodeInstance) -> None:
    found = definition.load("bootsector", shipped.os_search_path)
    for script in ("export", "import"):
        done = transfer(script, environment.make_instance_environment(found, web1, []), b"")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"has no disk" in done.stderr


@dataclass
class Guest:
    """A running QEMU with its serial line and its monitor."""

    child: subprocess.Popen[bytes]
    serial: socket.socket
    monitor: socket.socket
    said: str = ""

    def wait_for(self, text: str, limit: float = 60) -> str:
        deadline = time.monotonic() + limit
        while text not in self.said:
            self.serial.settimeout(max(0.01, deadline - time.monotonic()))
            data = self.serial.recv(4096)
            assert data, f"the guest ended before it said {text!r}: {self.said!r}"
            self.said += data.decode("ascii")
        return self.said

    def ask(self, command: str) -> None:
        self.monitor.sendall(jsonio.dumps_bytes({"execute": command}))
        with self.monitor.makefile("rb") as stream:
            for line in stream:
                answer = jsonio.loads(line)
                if "return" in answer:
                    return
                assert "error" not in answer, answer

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def boot(machine: str, disk: AttachedDisk) -> Iterator[Guest]:
    assert QEMU
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(2)]
        for pair in pairs:
            for end in pair:
                stack.enter_context(end)
        (serial, serial_end), (monitor, monitor_end) = pairs
        child = subprocess.Popen(
            [
                *(QEMU, "-machine", f"{machine},accel=tcg", "-m", "16", "-nodefaults"),
                *("-display", "none", "-no-user-config"),
                *("-drive", f"file={disk.path},format=raw,if=virtio"),
                *("-chardev", f"socket,id=serial,fd={serial_end.fileno()}"),
                *("-chardev", f"socket,id=monitor,fd={monitor_end.fileno()}"),
                *("-serial", "chardev:serial", "-mon", "chardev=monitor,mode=control"),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=(serial_end.fileno(), monitor_end.fileno()),
        )
        try:
            serial_end.close()
            monitor_end.close()
            monitor.settimeout(30)
            guest = Guest(child, serial, monitor)
            guest.ask("qmp_capabilities")
            yield guest
        finally:
            child.kill()
            child.wait()


@needs_qemu
@pytest.mark.qemu
@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_a_guest_says_its_name_and_obeys_the_power_button(
    machine: str, shipped: Paths, web1: NodeInstance, disk: AttachedDisk
) -> None:
    install(web1, disk, shipped)
    with boot(machine, disk) as guest:
        assert guest.wait_for("\r\n") == "Hello, this is web1.example.com\r\n"
        guest.ask("system_powerdown")
        assert guest.child.wait(30) == 0


@needs_qemu
@pytest.mark.qemu
def test_the_beating_guest_sleeps_between_its_beats(
    shipped: Paths, make_instance: MakeInstance, disk: AttachedDisk
) -> None:
    osparams = {"greeting": "Moin from"}
    install(make_instance(os="bootsector+beat", name=LONGEST, osparams=osparams), disk, shipped)
    with boot("pc", disk) as guest:
        guest.wait_for("beat 1\r\n")
        begin, used = time.monotonic(), guest.cpu_seconds()
        guest.wait_for("beat 3\r\n")
        passed, used = time.monotonic() - begin, guest.cpu_seconds() - used
        assert guest.said == f"Moin from {LONGEST}\r\nbeat 1\r\nbeat 2\r\nbeat 3\r\n"
        assert passed > 1.5
        assert used < passed / 2
        guest.ask("system_powerdown")
        assert guest.child.wait(30) == 0
