"""An image of Debian packages becomes an instance, and the administrator logs in."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, copy_cluster
from needs import needs_programs, needs_root
from waiting import wait_for

from ganeti.hypervisor.kvm.qmp import Qmp

ROOT = Path(__file__).resolve().parents[2]
NAME = "web1.example.com"
NEEDED = ("mmdebstrap", "mke2fs", "sfdisk", "qemu-img", "qemu-system-x86_64", "ssh", "ssh-keygen")

pytestmark = [
    needs_programs(*NEEDED),
    needs_root("to confine programs"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("IMAGES_FILE")
    if given:
        return Path(given)
    path = tmp_path_factory.mktemp("image") / "debian-13.qcow2"
    begun = time.monotonic()
    mirror = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    ).stdout.split()
    more = ("--mirror", mirror[0]) if mirror else ()
    subprocess.run([ROOT / "tools" / "make-debian-image", *more, path], check=True)
    print(f"\nimage of packages: {time.monotonic() - begun:.0f} s")
    return path


@pytest.fixture(scope="module")
def kvm() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        yield made


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def forward(cluster: Cluster) -> int:
    """A port of this machine that leads to the SSH server of the guest."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    with Qmp.connect(cluster.paths("node2").kvm / "ctrl" / f"{NAME}.qmp", 10) as qmp:
        shown = str(qmp.command("human-monitor-command", {"command-line": "info network"}))
        [line] = [line for line in shown.splitlines() if "type=user" in line]
        name = line.split(":")[0].split("\\")[-1].strip()
        rule = f"hostfwd_add {name} tcp:127.0.0.1:{port}-:22"
        assert qmp.command("human-monitor-command", {"command-line": rule}).strip() == ""
    return port


def log_in(port: int, key: Path, command: str) -> str | None:
    """What a command in the guest prints; None while nobody can log in."""
    options = (
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "LogLevel=ERROR",
        "BatchMode=yes",
        "ConnectTimeout=20",
    )
    words = [word for option in options for word in ("-o", option)]
    found = subprocess.run(
        ["ssh", *words, "-i", key, "-p", str(port), "debian@127.0.0.1", command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return found.stdout if found.returncode == 0 else None


def test_from_packages_to_a_login(kvm: Cluster, image: Path, key: Path, tmp_path: Path) -> None:
    begun = time.monotonic()
    kvm.ok("image add --name debian-13", str(image), timeout=600)
    added = time.monotonic()
    print(f"\ngnt-image add, two copies: {added - begun:.1f} s")
    data = tmp_path / "user-data"
    data.write_text("#cloud-config\nwrite_files:\n- {path: /etc/hello, content: world}\n")
    kvm.ok(
        "instance add -n node2 -t file --image debian-13 --disk 0:size=5G"
        " --net 0:mode=ext,link=qemu-user -B memory=768M,vcpus=2 -H kvm:cpu_type=Nehalem",
        "--user-data",
        str(data),
        "--ssh-key",
        f"{key}.pub",
        NAME,
        timeout=600,
    )
    started = time.monotonic()
    print(f"gnt-instance add, until the guest runs: {started - added:.1f} s")
    port = forward(kvm)
    wait_for(lambda: log_in(port, key, "true") is not None, "somebody can log in", 2400, pause=2)
    command = "hostname -f; cat /etc/hello; df --output=size -BG /; cut -d' ' -f1 /proc/uptime"
    found = log_in(port, key, command)
    assert found is not None
    print(f"login after {time.monotonic() - started:.0f} s more (uptime {found.split()[-1]} s)")
    host, hello, _title, size, _uptime = found.split()
    assert host == NAME
    assert hello == "world"
    assert size == "5G", "the file system has not grown with the disk"
