"""The DRBD driver on real kernels: two machines with a mirrored disk between them.

No daemon runs here; the driver is called as a node daemon would, on each side. What the commands
answered can be kept: ``DRBD_RECORD=/tmp/drbd.jsonl`` names a file inside the machines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import project
from lab.channel import wait_for
from lab.faults import Book
from lab.machine import Machine, Spec, boot, check_host
from lab.network import Network
from lab.place import Unavailable, run_directory

SUBNET = "10.123.9"
SCRIPT = (Path(__file__).parent / "drbd_side.py").read_text()
MIB = 1024 * 1024
BIG = {"size": 48}
MINORS = (0, 3)


class Pair:
    """Two machines; side 0 and side 1 of one disk."""

    def __init__(self, machines: list[Machine]) -> None:
        self.machines = machines

    def serve(self, side: int) -> None:
        """Start what carries out the calls of a side; a start of Python costs seconds there."""
        env = {key: os.environ[key] for key in ("DRBD_RECORD",) if key in os.environ}
        words = [f"{key}={value}" for key, value in {**env, "GANETI_TIME_FACTOR": "3"}.items()]
        self.machines[side].start(
            "env", *words, f"{project.VENV}/bin/python", "-c", SCRIPT, str(side), limit=3600.0
        )

    def call(self, side: int, *steps: tuple[str, dict[str, Any], dict[str, Any]]) -> list[Any]:
        """Results and error texts of calls to the driver."""
        ask = (
            "until [ -p /run/drbd.ask ]; do sleep 0.1; done; cat > /run/drbd.ask;"
            " cat /run/drbd.answer"
        )
        ran = self.machines[side].ok("bash", "-c", ask, stdin=json.dumps(steps), limit=300.0)
        return list(json.loads(ran.out))

    def do(self, side: int, method: str, changes: Any = None, **arguments: Any) -> Any:
        """One call that must succeed."""
        [[result, error]] = self.call(side, (method, arguments, changes or {}))
        assert error is None, error
        return result

    def fail(self, side: int, method: str, changes: Any = None, **arguments: Any) -> str:
        """The text of a call that must fail."""
        [[result, error]] = self.call(side, (method, arguments, changes or {}))
        assert error is not None, result
        return str(error)

    def state(self, side: int) -> str:
        """``cs ro ds`` of /proc/drbd."""
        for line in self.machines[side].sh("cat /proc/drbd").splitlines():
            number, _, rest = line.strip().partition(": ")
            if number == str(MINORS[side]):
                return " ".join(word.partition(":")[2] for word in rest.split()[:3])
        return ""

    def becomes(self, side: int, state: str, limit: float = 90.0) -> None:
        wait_for(f"side {side} {state}", lambda: self.state(side) == state, limit)

    def write(self, side: int, text: str) -> None:
        self.machines[side].sh(
            f"printf {text} | dd of=/dev/drbd{MINORS[side]} bs=4096 conv=sync oflag=direct"
            " status=none"
        )

    def read(self, side: int) -> str:
        device = f"/dev/drbd{MINORS[side]}"
        shown = f"dd if={device} bs=4096 count=1 iflag=direct status=none | tr -d '\\0'"
        return self.machines[side].sh(shown).strip()

    def sums(self) -> set[str]:
        """Checksums of the data volumes, past all caches."""
        return {
            m.sh("dd if=/dev/xenvg/i1.disk0_data bs=4M iflag=direct status=none | sha256sum")
            for m in self.machines
        }


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    try:
        check_host()
        with run_directory() as directory, Network(f"{SUBNET}.254/24") as network:
            shares = project.shares(directory)
            machines = [
                Machine(
                    Spec(
                        f"side{n}",
                        memory=640,
                        disks=[1024],
                        modules=["dm_mod", "drbd"],
                        layers=("storage", "node"),
                        shares=shares,
                        address=f"{SUBNET}.{n + 1}/24",
                        append="drbd.usermode_helper=/bin/true drbd.minor_count=128",
                    ),
                    directory,
                    network,
                )
                for n in (0, 1)
            ]
            try:
                boot(machines)
                for machine in machines:
                    machine.sh("pvcreate -q /dev/vda; vgcreate -q xenvg /dev/vda")
                made = Pair(machines)
                for side in (0, 1):
                    made.serve(side)
                yield made
            finally:
                for machine in machines:
                    machine.power_off(5.0)
    except Unavailable as err:
        pytest.skip(str(err))


def test_a_name_that_is_taken_is_refused(pair: Pair, book: Book) -> None:
    machine = pair.machines[0]
    with book.case("a new volume (driver)", "its name is taken") as case:
        machine.sh(
            "lvcreate -q -y -L 32m -n i1.disk0_data xenvg; printf mine > /dev/xenvg/i1.disk0_data"
        )
        assert "exists already" in pair.fail(0, "create_volumes")
        assert machine.sh("head -c 4 /dev/xenvg/i1.disk0_data") == "mine"
        case.outcome, case.recovery = "refused, nothing changed", "remove or rename that volume"
        machine.sh("lvremove -q -y xenvg/i1.disk0_data")
    assert machine.sh("lvs --noheadings xenvg") == ""


def test_a_new_disk_is_filled_from_the_primary(pair: Pair) -> None:
    for side in (1, 0):
        pair.do(side, "create_volumes")
        assert pair.do(side, "attach") is False
        pair.do(side, "create")
        assert pair.do(side, "attach") is True
        pair.do(side, "begin", on_primary=side == 0)
    pair.becomes(0, "Connected Primary/Secondary UpToDate/UpToDate")
    pair.write(0, "payload")
    assert "in use on its other node" in pair.fail(1, "open")
    assert len(pair.sums()) == 1


def test_roles_change(pair: Pair) -> None:
    pair.do(0, "close")
    pair.do(1, "open")
    assert pair.read(1) == "payload"
    status = pair.do(1, "status")
    assert (status["is_degraded"], status["ldisk_status"], status["major"]) == (False, 0, 147)


def test_it_grows_on_both_sides(pair: Pair) -> None:
    for side in (0, 1):
        pair.do(side, "grow_volume", amount=16)
    pair.do(1, "grow", amount=16)
    pair.do(1, "grow", amount=16)
    assert [pair.do(side, "size") for side in (0, 1)] == [48 * MIB] * 2
    pair.becomes(1, "Connected Primary/Secondary UpToDate/UpToDate")


def test_both_are_primary_during_a_migration(pair: Pair) -> None:
    for side in (0, 1):
        pair.do(side, "disconnect", BIG)
    pair.do(0, "connect", BIG, two_primaries=True)
    pair.do(1, "connect_and_wait", BIG, two_primaries=True, seconds=30)
    pair.do(0, "open", BIG, exclusive=False)
    assert pair.state(0) == "Connected Primary/Primary UpToDate/UpToDate"
    pair.write(0, "moved")
    assert pair.read(1) == "moved"
    pair.do(1, "close", BIG)
    for side in (0, 1):
        pair.do(side, "disconnect", BIG)
    pair.do(0, "connect", BIG, two_primaries=False)
    pair.do(1, "connect_and_wait", BIG, two_primaries=False, seconds=30)
    assert pair.state(0) == "Connected Primary/Secondary UpToDate/UpToDate"


def test_lost_volumes_are_replaced(pair: Pair) -> None:
    pair.do(1, "detach_children", BIG)
    assert pair.do(1, "needs_activation", BIG) is True
    pair.do(1, "remove_volumes", BIG)
    pair.do(1, "create_volumes", BIG)
    pair.do(1, "attach_children", BIG, **BIG)
    pair.becomes(1, "Connected Secondary/Primary UpToDate/UpToDate")
    assert len(pair.sums()) == 1


def test_what_is_in_use_is_left_alone(pair: Pair, book: Book) -> None:
    with book.case("disk activated (driver)", "its DRBD minor serves another disk") as case:
        text = pair.fail(0, "assemble", {"prefix": "other-", "secret": "f" * 40})
        assert "is in use by resource0" in text
        pair.do(0, "shutdown", {"prefix": "other-", "secret": "f" * 40})
        assert pair.state(0) == "Connected Primary/Secondary UpToDate/UpToDate"
        case.outcome = "refused, the other disk continues"


def test_split_brain_is_named_and_both_sides_keep_their_data(pair: Pair) -> None:
    pair.do(0, "close", BIG)
    pair.do(1, "open", BIG)
    pair.machines[0].link(False)
    pair.becomes(1, "WFConnection Primary/Unknown UpToDate/DUnknown", 60.0)
    pair.becomes(0, "WFConnection Secondary/Unknown UpToDate/DUnknown", 60.0)
    assert "peer away" in pair.fail(1, "progress", BIG, seconds=2)
    pair.do(0, "open", BIG)
    pair.write(0, "zero")
    pair.write(1, "one")
    pair.do(0, "close", BIG)
    pair.machines[0].link(True)
    pair.becomes(1, "StandAlone Primary/Unknown UpToDate/DUnknown", 60.0)
    pair.do(1, "connect", BIG, two_primaries=False)
    text = pair.fail(0, "connect_and_wait", BIG, two_primaries=False, seconds=20)
    assert "Split-Brain detected" in text
    assert "gnt-instance replace-disks -s INSTANCE" in text
    assert pair.read(1) == "one"
    pair.do(0, "disconnect", BIG)
    pair.do(0, "open", BIG)
    assert pair.read(0) == "zero"
    pair.do(0, "close", BIG)


def test_the_end(pair: Pair) -> None:
    pair.do(1, "close", BIG)
    for side in (0, 1):
        pair.do(side, "remove", BIG)
        pair.do(side, "remove_volumes", BIG)
        assert pair.state(side) == ""
        assert pair.machines[side].sh("lvs --noheadings xenvg") == ""
    kept = [m.sh(f"cat {os.environ['DRBD_RECORD']}") for m in pair.machines if _records()]
    for side, text in enumerate(kept):
        Path(f"{os.environ['DRBD_RECORD']}.side{side}").write_text(text)


def _records() -> bool:
    return "DRBD_RECORD" in os.environ
