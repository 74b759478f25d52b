"""Tables of partitions, and how a disk is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor import root_fs
from ganeti.hypervisor.root_fs import Part


def test_partitions() -> None:
    """Output of partx (util-linux 2.38) for a table of one and of three partitions, and of none."""
    assert root_fs.parse_partitions("2048 8192\n") == [Part(1 << 20, 4 << 20)]
    text = " 2048   2048\n 4096 409600\n413696      1\n"
    assert [part.offset // 512 for part in root_fs.parse_partitions(text)] == [2048, 4096, 413696]
    assert root_fs.parse_partitions("") == []
    with pytest.raises(errors.HypervisorError, match="partx printed"):
        root_fs.parse_partitions("START SECTORS\n")


@pytest.mark.parametrize(
    ("part", "device", "read_only", "options"),
    [
        (None, True, False, []),
        (None, False, False, ["-o", "loop"]),
        (None, True, True, ["-o", "ro"]),
        (Part(512, 1024), True, False, ["-o", "loop,offset=512,sizelimit=1024"]),
        (Part(512, 1024), False, True, ["-o", "ro,loop,offset=512,sizelimit=1024"]),
    ],
)
def test_how_a_disk_is_mounted(
    part: Part | None, device: bool, read_only: bool, options: list[str]
) -> None:
    argv = root_fs.mount_argv("/-x", part, Path("/m"), device=device, read_only=read_only)
    assert argv == ["mount", *options, "--", "/-x", "/m"]
