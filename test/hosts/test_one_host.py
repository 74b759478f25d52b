"""One machine with real LVM: the short part, in every run of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import project
from lab.machine import Machine, Spec, check_host
from lab.place import Unavailable, run_directory

pytestmark = pytest.mark.long(300)

VG = "xenvg"
#: What fits into a minute; test_hosts_lvm.py runs the whole suite.
SHORT = "plain and (life or larger)"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    try:
        check_host()
        with run_directory() as directory:
            shares = project.shares(directory)
            modules = ["dm_mod", "dm_snapshot"]
            spec = Spec("host1", memory=512, disks=[512], modules=modules, shares=shares)
            with Machine(spec, directory) as made:
                made.niceness = 0  # nothing in a run of all tests takes longer
                made.power_on()
                made.sh(f"pvcreate -q /dev/vda; vgcreate -q {VG} /dev/vda")
                yield made
    except Unavailable as err:
        pytest.skip(str(err))


def test_the_contract_of_disks_holds_on_real_volumes(machine: Machine) -> None:
    """The suite that other templates pass on any machine, here on LVM."""
    project.run_tests(machine, "test/contract/storage", SHORT, {"GANETI_TEST_VG": VG})
    assert machine.sh(f"lvs --noheadings {VG}") == ""


def test_volumes_survive_a_power_cut(machine: Machine) -> None:
    machine.sh(f"lvcreate -q -y -L 32m -n kept {VG}; printf here > /dev/{VG}/kept; sync")
    machine.power_cut()
    machine.power_on()
    assert machine.sh(f"head -c 4 /dev/{VG}/kept") == "here"
