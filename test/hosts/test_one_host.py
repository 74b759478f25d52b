"""One machine with real LVM: the short part, in every run of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab.machine import Machine, Spec, check_host
from lab.place import Unavailable, run_directory


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    try:
        check_host()
        with run_directory() as directory:
            spec = Spec("host1", memory=512, disks=[512, 512], modules=["dm_mod"])
            with Machine(spec, directory) as made:
                made.power_on()
                yield made
    except Unavailable as err:
        pytest.skip(str(err))


def test_volumes_live_and_die(machine: Machine) -> None:
    machine.sh("pvcreate -q /dev/vda; vgcreate -q xenvg /dev/vda; lvcreate -q -y -L 64m -n d xenvg")
    machine.sh("lvextend -q -L +32m /dev/xenvg/d")
    assert machine.sh("blockdev --getsize64 /dev/xenvg/d") == str(96 << 20)
    machine.sh("lvremove -q -f xenvg/d")
    assert machine.sh("lvs --noheadings xenvg") == ""


def test_volumes_survive_a_power_cut(machine: Machine) -> None:
    machine.sh("lvcreate -q -y -L 32m -n kept xenvg; printf here > /dev/xenvg/kept; sync")
    machine.power_cut()
    machine.power_on()
    assert machine.sh("head -c 4 /dev/xenvg/kept") == "here"
