"""Lists of mounts as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor import mounts

LIST = (
    "22 27 0:20 / /proc rw,nosuid - proc proc rw\n"
    "27 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/root rw,errors=remount-ro\n"
    "55 27 7:0 / /run/g/web1 rw,relatime - ext4 /dev/loop0 rw\n"
    "56 55 0:5 / /run/g/web1/dev\\040and\\134more rw - devtmpfs udev rw\n"
    "57 27 7:1 /sub /run/g/web11 rw master:3 propagate_from:2 - ext4 /dev/loop1 ro\n"
    "58 55 0:9 / /run/g/web1 rw - tmpfs over rw\n"
)


def test_mounts_at_and_below_a_directory() -> None:
    found = mounts.parse(LIST)
    assert [mount.id for mount in mounts.tree(Path("/run/g/web1"), found)] == [55, 56, 58]
    top = mounts.find_mount(Path("/run/g/web1"), found)
    assert top is not None
    assert (top.id, top.kind, top.source) == (58, "tmpfs", "over")
    assert mounts.find_mount(Path("/run/g"), found) is None


def test_facts_of_a_mount() -> None:
    found = mounts.parse(LIST)
    assert found[3].point == "/run/g/web1/dev and\\more"
    assert (found[4].root, found[4].device) == ("/sub", "7:1")
    assert found[1].options == {"rw", "errors=remount-ro"}


@pytest.mark.parametrize("text", ["nonsense\n", "1 2 3 4 5 6\n", "x 27 7:0 / /a rw - a b c\n"])
def test_lists_of_unknown_form_are_refused(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="unknown form"):
        mounts.parse(text)
