"""What the stories share: their servers, and how a server becomes a node with a first guest."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence

import pytest
from lab import debs, image, server
from lab.channel import wait_for
from lab.place import LabError, Unavailable
from lab.server import CLUSTER, DOMAIN, SHARE, Server, Servers, say

WEB = f"web1.{DOMAIN}"
#: Seconds for daemons and guests on their way; an emulated processor may have to share its own.
PATIENCE = 900.0
INSTALL = (
    f"apt-get install -y --no-install-recommends {SHARE}/ganeti_*.deb"
    " drbd-utils lvm2 qemu-system-x86 qemu-utils"
)
LOAD_DRBD = (
    "echo options drbd minor_count=128 usermode_helper=/bin/true > /etc/modprobe.d/drbd.conf;"
    " echo drbd >> /etc/modules; modprobe drbd"
)
INIT = (
    "gnt-cluster init --vg-name xenvg --enabled-disk-templates drbd,plain,file"
    f" --master-netdev br0 --nic-parameters link=br0 -H kvm:kernel_path= {CLUSTER}"
)
GUEST = "-o bootsector+beat --disk 0:size=1G -B memory=128M"


def servers(
    name: str,
    count: int,
    suite: str = image.SUITE,
    more: Sequence[str] = (),
    disks: Sequence[int] = (8192,),
) -> Iterator[Servers]:
    """Bare servers with the package of this project in their share, for the story ``name``.

    They are as its last step that passed left them, if servers are kept.
    """
    try:
        package = debs.package(suite)
        place = server.find_store()
        state = place / name if place is not None else None
        with server.running(count, suite, state, more=more, disks=disks) as made:
            for each in made.servers:
                shutil.copy(package, each.share)
            yield made
            if made.failed:
                _print_logs(made)
    except Unavailable as err:
        pytest.skip(str(err))


def _print_logs(made: Servers) -> None:
    for each in made.servers:
        with contextlib.suppress(LabError):  # it may be off
            say(f"--- {each.name}\n{each.sh('tail -n 30 /var/log/ganeti/*.log')}")


def prepare(servers: Servers, server: Server) -> None:
    """What every server needs, whatever it becomes."""
    for line in (INSTALL, LOAD_DRBD, "vgcreate -q xenvg /dev/vdb"):
        servers.type(server, line)


def make_first_guest(servers: Servers) -> str:
    """From a bare server to a cluster of one with a guest; returns what its console showed."""
    first = servers.servers[0]
    prepare(servers, first)
    servers.type(first, INIT)
    servers.type(first, f"gnt-instance add -t plain {GUEST} {WEB}")
    # A person has a terminal; the console ends when its input does.
    shown: str = servers.type(
        first, f"timeout 20 script -qc 'gnt-instance console {WEB}' /dev/null || [ $? = 124 ]"
    )
    servers.summary("a guest with a console")
    return shown


def check_beats_on(shown: str) -> None:
    """The guest has written a beat to its console."""
    assert re.search(r"^beat \d+\r?$", shown, re.M), shown


def answers(server: Server) -> bool:
    """Whether a master daemon does, there."""
    return server.run("gnt-cluster", "master-ping").code == 0


def wait_for_master(server: Server) -> None:
    wait_for("the master", lambda: answers(server), PATIENCE)


def continues(server: Server, guest: str) -> bool:
    """Whether a guest counts; a log that begins again is no beat."""
    before = server.beats(guest)

    def has_counted() -> bool:
        now = server.beats(guest)
        return bool(now) and now != before

    return bool(wait_for(f"beats of {guest}", has_counted, PATIENCE))


def list_missing(numbers: Sequence[int]) -> list[int]:
    """Beats that a guest left out; it must have counted upwards."""
    assert list(numbers) == sorted(set(numbers)), numbers
    return sorted(set(range(numbers[0], numbers[-1])) - set(numbers))
