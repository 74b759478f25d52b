"""Which logical volumes should be where."""

from __future__ import annotations

from ganeti.config import volumes
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate


def plain(name: str, size: int, group: str = "xenvg") -> Disk:
    return Disk(uuid=name, dev_type=DiskTemplate.PLAIN, logical_id=(group, name), size=size)


def drbd(data: Disk, meta: Disk) -> Disk:
    return Disk(uuid="drbd", dev_type=DiskTemplate.DRBD, size=data.size, children=(data, meta))


def test_the_volumes_of_a_disk() -> None:
    data, meta = plain("data", 64), plain("meta", 128)
    assert volumes.list_volumes(data) == [data]
    assert volumes.list_volumes(drbd(data, meta)) == [data, meta]
    file = Disk(uuid="f", dev_type=DiskTemplate.FILE, logical_id=("loop", "x"))
    assert volumes.list_volumes(file) == []
    assert volumes.name(data) == "xenvg/data"


def test_what_follows_a_volume_in_its_group() -> None:
    data, meta = plain("data", 64), plain("meta", 128)
    disks = [drbd(data, meta), plain("b", 32, "fastvg"), drbd(plain("c", 16), plain("d", 128))]
    assert volumes.list_coming(disks, data) == [[128], [16, 128]]
    assert volumes.list_coming(disks, meta) == [[], [16, 128]]
    assert volumes.list_coming([data], data) == [[]]
    # Metadata in another group lies apart anyway.
    apart = drbd(data, plain("m", 128, "fastvg"))
    assert volumes.list_coming([apart, data], data) == [[], [64]]
