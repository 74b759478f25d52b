"""A Linux in a helper guest installs an OS, asks ``ganeti-metad``, and zeroes free space."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.kernel import kernel
from local_cluster import Cluster, copy_cluster
from needs import needs_programs, needs_root

from ganeti import constants

ROOT = Path(__file__).resolve().parents[2]
NAME = "web1.example.com"
NEEDED = ("busybox", "cpio", "modprobe", "mformat", "syslinux", "qemu-img", "qemu-system-x86_64")
_NEW_NETWORK = 0x40000000

pytestmark = [
    needs_programs(*NEEDED),
    needs_root("to make a network"),
]

CREATE = """#!/bin/sh
set -e
echo "links: $(ls /sys/class/net | tr '\\n' ' ')"
echo "kernel: $(cat /proc/cmdline)"
wget -q -O - http://169.254.169.254/ganeti/latest/os/parameters.json
echo
wget -q -O - http://169.254.169.254/ganeti/latest/meta_data.json
mke2fs -q "$DISK_0_PATH" >/dev/null
mount "$DISK_0_PATH" /tmp
echo "word $OSP_WORD of $INSTANCE_NAME" >/tmp/kept
yes "deleted and still there" | head -c 1048576 >/tmp/gone
sync
rm /tmp/gone
umount /tmp
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk of the guest, made before this process leaves the network for its own."""
    given = os.environ.get("HELPER_IMAGE")
    path = tmp_path_factory.mktemp("image") / "helper.raw"
    if given:
        path.symlink_to(given)
    else:
        found = kernel()
        words = ["--kernel", found.packed, "--modules", found.modules]
        subprocess.run([ROOT / "tools" / "make-helper-image", *words, path], check=True)
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return path


@pytest.fixture(scope="module")
def kvm(image: Path) -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        path = made.paths().os_search_path[1] / "strange"
        path.mkdir(parents=True)
        (path / "ganeti_api_version").write_text("20\n")
        (path / "parameters.list").write_text("word what is written\n")
        for script, text in (("create_untrusted", CREATE), ("verify", "#!/bin/sh\n")):
            (path / script).write_text(text)
            (path / script).chmod(0o755)
        made.ok("cluster modify --instance-communication-network=metadata")
        ran = made.start_daemon(constants.METAD, "node1", "--port=80")
        assert ran.code == 0, ran.err
        made.ok("image add --name helper", str(image), timeout=120)
        made.ok("cluster modify --install-image=helper --zeroing-image=helper")
        yield made


@pytest.fixture
def instance(kvm: Cluster) -> Iterator[Cluster]:
    begun = time.monotonic()
    ran = kvm.ok(
        "instance add -n node1 -t sharedfile --disk 0:size=32M -B memory=256M --no-nics -c yes"
        " --no-start -o strange -O word=known",
        NAME,
        timeout=600,
    )
    print(f"\n{ran.out}{ran.err}installation: {time.monotonic() - begun:.0f} s")
    yield kvm
    kvm.ok("instance remove -f", NAME)


def debugfs(disk: Path, request: str) -> str:
    ran = subprocess.run(["debugfs", "-R", request, disk], capture_output=True, text=True)
    return ran.stdout


def test_helper_guest_installs_asks_its_node_and_zeroes(instance: Cluster) -> None:
    [log] = instance.paths().os_log.glob("add-strange-*.log")
    text = log.read_text()
    print(text)
    assert '{"word":["known","public"]}' in text
    assert f'"name": "{NAME}"' in text.replace('":"', '": "')
    assert "links: eth0 lo" in text
    # without it the kernel panics on a node with much load
    assert re.search(r"^kernel: .*no_timer_check", text, re.MULTILINE)
    [disk] = instance.paths().shared_file_storage.resolve().rglob("*disk0")
    assert debugfs(disk, "cat kept") == f"word known of {NAME}\n"
    assert b"deleted and still there" in disk.read_bytes()
    # nothing of this stays on the node
    assert not list(instance.paths().metadata.iterdir())
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    assert constants.COMMUNICATION_INTERFACE not in links

    begun = time.monotonic()
    ran = instance.ok("backup export -n node2 --zero-free-space", NAME, timeout=600)
    print(f"{ran.out}{ran.err}export: {time.monotonic() - begun:.0f} s")
    assert b"deleted and still there" not in disk.read_bytes()
    assert debugfs(disk, "cat kept") == f"word known of {NAME}\n"
    [log] = instance.paths().os_log.glob("zero-strange-*.log")
    assert "zeroing free space on /dev/vdc" in log.read_text()


def test_files_of_a_backup_are_read(instance: Cluster) -> None:
    instance.ok("backup run", NAME)
    begun = time.monotonic()
    ran = instance.ok("backup restore --files=/kept --files=/lost+found", NAME, timeout=600)
    print(f"{ran.out}{ran.err}reading: {time.monotonic() - begun:.0f} s")
    [archive] = instance.paths().restored_files.iterdir()
    with tarfile.open(archive) as found:
        assert found.getnames() == ["disk0/kept", "disk0/lost+found"]
        kept = found.extractfile("disk0/kept")
        assert kept is not None
        assert kept.read().decode() == f"word known of {NAME}\n"
    assert "* 1 file, 1M: " in ran.out

    ran = instance.gnt("backup restore --files=/missing", NAME, timeout=600)
    assert ran.code == 1
    assert "/missing: no file system has it" in ran.err
    assert "disk0 has in /: kept lost+found" in ran.err
    assert list(instance.paths().restored_files.iterdir()) == [archive]
