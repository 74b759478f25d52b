"""The script ``tools/master-ip-setup`` on real interfaces, in a network namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "master-ip-setup"
CARD = "port0"
#: What is on a card: IP version, address, prefix length.
V4 = ("4", "192.0.2.9", "24")
V6 = ("6", "2001:db8::9", "64")

pytestmark = pytest.mark.root


class Space:
    """A network namespace with a card, for as long as a process is in it.

    The programs that announce an address are stand-ins that note how they were called.
    """

    def __init__(self, directory: Path) -> None:
        self.announced = directory / "announced"
        for name in ("arping", "ndisc6"):
            program = directory / name
            program.write_text(f'#!/bin/sh\necho {name} "$@" >>{self.announced}\nexit 1\n')
            program.chmod(0o755)
        self._path = f"{directory}:/usr/sbin:/usr/bin:/sbin:/bin"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"\n":
            pytest.skip("this container may not make network namespaces")
        self.add_card(CARD)

    def run(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        inside = f"--net=/proc/{self._holder.pid}/ns/net"
        return subprocess.run(
            ["nsenter", inside, "--", *argv],
            env={"PATH": self._path, **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def add_card(self, name: str) -> None:
        for line in (f"link add {name} type veth peer name peer{name[-1]}", f"link set {name} up"):
            done = self.run("ip", *line.split())
            assert done.returncode == 0, done.stderr

    def setup(
        self, verb: str, what: tuple[str, str, str], card: str = CARD
    ) -> subprocess.CompletedProcess[str]:
        version, address, length = what
        return self.run(
            str(SCRIPT),
            verb,
            MASTER_NETDEV=card,
            MASTER_IP=address,
            MASTER_NETMASK=length,
            CLUSTER_IP_VERSION=version,
        )

    def addresses(self, card: str = CARD) -> list[str]:
        """With their prefix lengths; without those that the kernel gives by itself."""
        lines = self.run("ip", "-o", "address", "show", "dev", card).stdout.splitlines()
        return [line.split()[3] for line in lines if "scope link" not in line]

    def close(self) -> None:
        self._holder.communicate()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine: install util-linux and iproute2")
    made = Space(tmp_path_factory.mktemp("programs"))
    yield made
    made.close()


@pytest.mark.parametrize("what", [V4, V6], ids=["IPv4", "IPv6"])
def test_the_address_is_put_on_and_taken_off_again_and_again(
    space: Space, what: tuple[str, str, str]
) -> None:
    for verb, left in (("start", [f"{what[1]}/{what[2]}"]), ("stop", [])):
        for _ in range(2):
            done = space.setup(verb, what)
            assert (done.returncode, done.stderr) == (0, "")
            assert space.addresses() == left


def test_neighbours_are_told_and_need_not_answer(space: Space) -> None:
    space.announced.unlink(missing_ok=True)
    for what in (V4, V6):
        assert space.setup("start", what).returncode == 0
        assert space.setup("stop", what).returncode == 0
    first, second = space.announced.read_text().splitlines()
    assert first.split() == ["arping", *f"-q -U -c 3 -I {CARD} -s {V4[1]} {V4[1]}".split()]
    assert second.split() == ["ndisc6", *f"-q -r 3 {V6[1]} {CARD}".split()]


def test_other_addresses_stay(space: Space) -> None:
    assert space.run("ip", "address", "add", "192.0.2.90/24", "dev", CARD).returncode == 0
    assert space.setup("start", V4).returncode == 0
    assert space.addresses() == ["192.0.2.90/24", "192.0.2.9/24"]
    assert space.setup("stop", V4).returncode == 0
    assert space.addresses() == ["192.0.2.90/24"]
    space.run("ip", "address", "del", "192.0.2.90/24", "dev", CARD)


def test_an_address_that_has_another_prefix_length_is_taken_off(space: Space) -> None:
    assert space.setup("start", ("4", "192.0.2.9", "32")).returncode == 0
    assert space.setup("stop", V4).returncode == 0
    assert space.addresses() == []


def test_the_card_may_have_the_longest_name_that_there_is(space: Space) -> None:
    longest = "enp129s0f0.1234"
    space.add_card(longest)
    assert space.setup("start", V4, longest).returncode == 0
    assert space.addresses(longest) == ["192.0.2.9/24"]
    assert space.setup("stop", V4, longest).returncode == 0


def test_a_card_that_is_missing_is_told(space: Space) -> None:
    done = space.setup("start", V4, "nosuch")
    assert done.returncode != 0
    assert '"nosuch"' in done.stderr
