"""Settings of a disk that can be changed while it keeps its data."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.ops.planning import disk_settings

DISK = Disk(uuid="a", name="root", dev_type=DiskTemplate.FILE, size=5, spindles=2)


def test_what_is_not_given_stays() -> None:
    assert disk_settings.change(DISK, DiskParams()) == DISK
    found = disk_settings.change(DISK, DiskParams(mode="ro", max_iops=100))
    assert found == base.replace(DISK, mode=DiskMode.RO, max_iops=100)
    assert isinstance(found.mode, DiskMode)


def test_the_word_none_takes_the_name_away() -> None:
    assert disk_settings.change(DISK, DiskParams(name="none")).name is None
    assert disk_settings.change(DISK, DiskParams(name="swap")).name == "swap"


def test_changed_settings_are_listed_in_the_order_asked_for() -> None:
    after = base.replace(DISK, name="swap", max_iops=5)
    assert disk_settings.list_changed(DISK, after, "max_iops", "mode", "name") == [
        "max_iops",
        "name",
    ]


def test_limits_need_a_hypervisor_that_keeps_them() -> None:
    limited = base.replace(DISK, max_iops=5, max_bandwidth=7)
    disk_settings.check_limits("kvm", limited)
    disk_settings.check_limits("chroot", DISK)
    with pytest.raises(errors.OpPrereqError, match=r"chroot .* max_iops and max_bandwidth cannot"):
        disk_settings.check_limits("chroot", limited)
