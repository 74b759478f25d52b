"""What DRBD says of itself in a node, and whether both sides of a mirror hold the same bytes."""

from __future__ import annotations

import re

from lab.channel import wait_for
from lab.cluster import VG, Node

#: Both sides complete and connected.
WHOLE = {"cs": "Connected", "ds": "UpToDate/UpToDate"}


def state(node: Node, minor: int = 0) -> dict[str, str]:
    """``cs`` (connection), ``ro`` (roles), ``ds`` (disks), ``oos`` (KiB to sync) of a device.

    Empty when there is no such device. Pairs have this node first.
    """
    text = node.sh("cat /proc/drbd")
    found = re.search(rf"^ *{minor}: (cs:.*(?:\n .*)*)", text, re.M)
    words = found[1].split() if found is not None else []
    return dict(word.split(":", 1) for word in words if ":" in word)


def await_state(node: Node, limit: float = 90.0, minor: int = 0, **wanted: str) -> dict[str, str]:
    """Wait until a device is in a state; raises LabError with what it was instead."""

    def read_reached() -> dict[str, str] | None:
        now = state(node, minor)
        return now if all(now.get(key) == value for key, value in wanted.items()) else None

    what = f"DRBD of {node}: {wanted}, last {state(node, minor)}"
    found: dict[str, str] = wait_for(what, read_reached, limit, 1.0)
    return found


def checksum(node: Node) -> str:
    """Of the only data volume, read past the page cache as DRBD writes past it."""
    path = f"$(ls /dev/{VG}/*_data)"
    return node.sh(f"dd if={path} bs=1M iflag=direct status=none | sha256sum").split()[0]


def write(node: Node, text: str, offset: int = 0, minor: int = 0) -> None:
    """Put a text on the device at a sector."""
    target = f"of=/dev/drbd{minor} bs=512 seek={offset} conv=sync,notrunc oflag=direct"
    node.sh(f"printf {text} | dd {target} status=none")


def read(node: Node, length: int, offset: int = 0, minor: int = 0) -> str:
    source = f"if=/dev/drbd{minor} bs=512 skip={offset} count=1 iflag=direct"
    return node.sh(f"dd {source} status=none | head -c {length}")


def break_disk(node: Node) -> None:
    """Every access to the data volume fails from now on, as on a dead disk."""
    node.sh("""
        name=$(dmsetup ls | grep _data | cut -f1)
        size=$(blockdev --getsz /dev/mapper/$name)
        dmsetup suspend --nolockfs --noflush $name
        echo "0 $size error" | dmsetup load $name
        dmsetup resume $name
    """)
