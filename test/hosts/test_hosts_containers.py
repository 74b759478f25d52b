"""Containers and chroots where control groups are those of version 2 alone, with AppArmor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import project
from lab.machine import Machine, Spec, check_host
from lab.place import Unavailable, run_directory

#: What depends on the version, and a life from beginning to end.
LXC = (
    "lxc and (are_limited or running_container or only_the_devices or vlans or graceful"
    " or confined)"
)
#: What a service does at the boot of a whole Debian.
_APPARMOR = """
    mount -t securityfs securityfs /sys/kernel/security
    apparmor_parser --replace /etc/apparmor.d/lxc-containers /etc/apparmor.d/usr.bin.lxc-start
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    try:
        check_host()
        with run_directory() as directory:
            spec = Spec(
                "host1",
                memory=768,
                layers=["storage", "containers"],
                modules=["loop", "ext4", "veth", "bridge"],
                shares=project.shares(directory),
            )
            with Machine(spec, directory) as made:
                made.power_on()
                made.sh(_APPARMOR)
                yield made
    except Unavailable as err:
        pytest.skip(str(err))


def test_control_groups_are_of_version_2(machine: Machine) -> None:
    assert machine.sh("grep -c cgroup /proc/self/mounts").strip() == "1"
    assert "memory" in machine.sh("cat /sys/fs/cgroup/cgroup.controllers")


def test_containers(machine: Machine) -> None:
    project.run_tests(machine, "test/contract/hypervisor", LXC, {})
    assert machine.sh("grep rootfs /proc/self/mounts || true") == ""


def test_chroots(machine: Machine) -> None:
    project.run_tests(machine, "test/contract/hypervisor", "chroot and (graceful or mounts)", {})
    assert machine.sh("losetup --list --noheadings") == ""
