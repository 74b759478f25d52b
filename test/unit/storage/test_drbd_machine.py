"""Every allowed state has a way to every other; what is somebody else's is left alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.storage.drbd import machine
from ganeti.storage.drbd.machine import ABSENT, Disk, Link, State, Step, classify, find_fault, plan
from ganeti.storage.drbd.states import Connection, DiskState, Endpoint, Live, Role, Setup, Wish

P, S = Role.PRIMARY, Role.SECONDARY
OWN = (Disk.DISKLESS, Disk.ATTACHED)
HERE, THERE = Endpoint("192.0.2.1", 11000), Endpoint("192.0.2.2", 11000)
WISH = Wish(3, "/dev/vg/data", "/dev/vg/meta", 100, HERE, THERE, "s3kr1t")


def setup(**more: object) -> Setup:
    values = {
        "resource": "resource3",
        "minor": 3,
        "data": WISH.data,
        "meta": WISH.meta,
        "local": HERE,
        "remote": THERE,
        "secret": WISH.secret,
    }
    return Setup(**{**values, **more})  # type: ignore[arg-type]


def every_own_state() -> list[State]:
    return [State(*parts) for parts in itertools.product(OWN, Link, (P, S))] + [ABSENT]


@pytest.mark.parametrize("start", every_own_state(), ids=lambda s: "-".join(map(str, s)))
def test_a_way_leads_from_each_state_to_use_and_to_nothing(start: State) -> None:
    mirrored = frozenset({Link.PAIRED})
    assert plan(start, disk=Disk.ABSENT) is not None
    assert plan(start, disk=Disk.ATTACHED, links=mirrored) is not None
    assert plan(start, disk=Disk.ATTACHED, links=mirrored, role=P) is not None


@pytest.mark.parametrize("link", list(Link))
def test_somebody_elses_primary_is_never_touched(link: Link) -> None:
    for wanted in (Disk.ABSENT, Disk.ATTACHED):
        with pytest.raises(errors.BlockDeviceError, match="in use by another disk"):
            plan(State(Disk.FOREIGN, link, P), disk=wanted)


def test_somebody_elses_secondary_is_taken_down_as_a_whole_before_anything_is_made() -> None:
    steps = plan(
        State(Disk.FOREIGN, Link.FOREIGN, S), disk=Disk.ATTACHED, links=frozenset({Link.PAIRED})
    )
    assert steps[:2] == (Step.DOWN, Step.NEW)
    assert set(steps[2:]) == {Step.ATTACH, Step.CONNECT}


def test_a_role_that_is_asked_for_is_reached_from_somebody_elses_device_too() -> None:
    steps = plan(State(Disk.FOREIGN, Link.FOREIGN, S), disk=Disk.ATTACHED, role=P)
    assert steps == (Step.DOWN, Step.NEW, Step.ATTACH, Step.PROMOTE)


@pytest.mark.parametrize("disk", OWN)
def test_a_link_to_another_peer_is_given_up_before_ours_is_made(disk: Disk) -> None:
    steps = plan(State(disk, Link.FOREIGN, P), links=frozenset({Link.PAIRED}))
    assert steps == (Step.DISCONNECT, Step.CONNECT)


def test_shortest_ways() -> None:
    paired = frozenset({Link.PAIRED})
    new = plan(ABSENT, disk=Disk.ATTACHED, links=paired)
    assert (new[0], set(new[1:])) == (Step.NEW, {Step.ATTACH, Step.CONNECT})
    ready = State(Disk.ATTACHED, Link.PAIRED, S)
    assert plan(ready, disk=Disk.ATTACHED, links=paired) == ()
    assert plan(ready, role=P) == (Step.PROMOTE,)
    assert plan(ready._replace(role=P), disk=Disk.ABSENT) == (Step.DEMOTE, Step.DOWN)
    assert plan(ready, links=frozenset({Link.DUAL})) == (Step.ALLOW_TWO,)


def test_a_role_that_is_not_asked_for_stays() -> None:
    primary = State(Disk.DISKLESS, Link.PAIRED, P)
    assert Step.DEMOTE not in plan(primary, disk=Disk.ATTACHED)


@pytest.mark.parametrize(
    ("found", "disk", "link"),
    [
        (setup(), Disk.ATTACHED, Link.PAIRED),
        (setup(two_primaries=True), Disk.ATTACHED, Link.DUAL),
        (setup(local=None, remote=None, secret=None), Disk.ATTACHED, Link.ALONE),
        (setup(secret="other"), Disk.ATTACHED, Link.FOREIGN),
        (setup(remote=Endpoint("192.0.2.9", 11000)), Disk.ATTACHED, Link.FOREIGN),
        (setup(data=None, meta=None), Disk.DISKLESS, Link.PAIRED),
        (setup(data=None, meta=None, secret="other"), Disk.FOREIGN, Link.FOREIGN),
    ],
)
def test_what_is_found_is_compared_with_the_configuration(
    found: Setup, disk: Disk, link: Link
) -> None:
    assert classify(found, Live(), WISH) == State(disk, link, S)


def test_another_volume_is_foreign_unless_it_was_only_renamed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    assert classify(setup(data=str(other)), Live(), WISH).disk is Disk.FOREIGN
    other.unlink()
    assert classify(setup(data=str(other)), Live(), WISH).disk is Disk.ATTACHED
    assert classify(setup(data=str(other), secret="x"), Live(), WISH).disk is Disk.FOREIGN


def make_live(cs: str, ro: str, ds: str) -> Live:
    role, peer_role = map(Role, ro.split("/"))
    disk, peer_disk = map(DiskState, ds.split("/"))
    return Live(Connection(cs), role, peer_role, disk, peer_disk)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (("Connected", "Primary/Secondary", "UpToDate/UpToDate"), None),
        (("SyncSource", "Primary/Secondary", "UpToDate/Inconsistent"), None),
        (("SyncTarget", "Secondary/Primary", "Inconsistent/UpToDate"), None),
        (("StandAlone", "Primary/Unknown", "UpToDate/DUnknown"), machine.STANDALONE),
        (("WFConnection", "Primary/Unknown", "UpToDate/DUnknown"), machine.WAITING),
        (("Connected", "Primary/Secondary", "Diskless/UpToDate"), machine.DISKLESS),
        (("Connected", "Primary/Secondary", "UpToDate/Diskless"), machine.PEER_DISKLESS),
        (("Connected", "Primary/Primary", "UpToDate/UpToDate"), machine.TWO_PRIMARIES),
        (("PausedSyncT", "Secondary/Primary", "Inconsistent/UpToDate"), machine.PAUSED),
        (("Connected", "Secondary/Secondary", "Inconsistent/Inconsistent"), machine.UNUSABLE),
        (("Connected", "Secondary/Secondary", "Outdated/UpToDate"), machine.UNUSABLE),
    ],
)
def test_what_does_not_mend_itself_has_a_name_and_one_repair(
    state: tuple[str, str, str], expected: machine.Trouble | None
) -> None:
    assert find_fault(make_live(*state)) is expected
    if expected is not None:
        assert expected.repair.split()[0].startswith(("gnt-", "drbdsetup"))
