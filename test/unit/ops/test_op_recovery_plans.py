"""Which instances of a dead node are started elsewhere, and which limits go together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from op_samples import change, config, node, put, with_cluster, with_instance

from ganeti import errors
from ganeti.config import ssconf
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import AdminState, MasterVote
from ganeti.model.recovery import Attempt, Fencing
from ganeti.opcodes import wire
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.ops.planning import recovery, recovery_settings

NOW = 1000.0
TAG = "ganeti:watcher:autorepair:"
DEAD = node(2, offline=True, fenced=Fencing(time=900.0, proof="switch", job=50))


def sample(*places: str, **changes: Any) -> Config:
    of = with_instance(config(DEAD, node(3)), "web1", *(places or ("node-2", "node-3")))
    values: dict[str, Any] = {
        "admin_state": AdminState.UP,
        "beparams": {"ha": "failover"},
        **changes,
    }
    return change(of, **values)


def make_attempt(job: int, number: int = 1, source: str = "node-2") -> Attempt:
    return Attempt(time=950.0, source=source, job=job, number=number)


def plan(
    of: Config, *, everything: bool = False, ended: Collection[int] = (50, 51)
) -> recovery.Rescue:
    return recovery.plan(
        of, of.nodes["node-2"], NOW, everything=everything, has_ended=lambda job: job in ended
    )


def reason(of: Config, *, everything: bool = False) -> str:
    """Why web1 stays; empty when it fails over. Nodes without a lease end what may fail over."""
    found = plan(of, everything=everything)
    assert len(found.failovers) + len(found.left) == 1
    assert found.starting == []
    if found.failovers and not everything:
        assert list_ended(of) == ["web1"]
    return "".join(why for _, why in found.left)


def list_ended(of: Config) -> list[str]:
    """Instances that a node without a lease ends."""
    return ssconf.values(of)["ha_instances"].split()


def test_an_instance_with_a_copy_elsewhere_fails_over() -> None:
    found = plan(sample())
    assert [item.name for item in found.failovers] == ["web1"]
    assert found.left == found.starting == []


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (sample(admin_state=AdminState.DOWN), "it is marked as down"),
        (sample(forthcoming=True), "it is a reservation"),
        (sample("node-2"), "its disks (file) are only on that node"),
    ],
)
def test_some_stay_whatever_is_asked(of: Config, text: str) -> None:
    assert reason(of) == text
    assert reason(of, everything=True) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"beparams": {"ha": "none"}}, "its backend parameter ha is none"),
        (
            {"beparams": {"ha": "restart"}},
            "its backend parameter ha is restart, so it starts when the node is back",
        ),
        (
            {"beparams": {"ha": "tags"}},
            f"tag {TAG}failover is missing on it, its group and the cluster",
        ),
        (
            {"beparams": {"ha": "tags"}, "tags": (f"{TAG}migrate",)},
            f"tag {TAG}failover is missing on it, its group and the cluster",
        ),
        (
            {"beparams": {"ha": "tags"}, "tags": (f"{TAG}failover", f"{TAG}suspend")},
            f"tag {TAG}suspend stops automatic repairs",
        ),
        (
            {"beparams": {"ha": "failover", "ha_attempts": 2}, "recovery": make_attempt(51, 2)},
            "it was tried 2 times, the last time by job 51",
        ),
    ],
)
def test_what_is_not_allowed_is_done_only_on_request(changes: dict[str, Any], text: str) -> None:
    assert reason(sample(**changes)) == text
    assert reason(sample(**changes), everything=True) == ""


@pytest.mark.parametrize("word", ["failover", "reinstall"])
@pytest.mark.parametrize("place", ["instance", "group", "cluster"])
def test_a_tag_allows_it(word: str, place: str) -> None:
    tags = (f"{TAG}{word}",)
    of = sample(beparams={"ha": "tags"}, tags=tags if place == "instance" else ())
    if place == "group":
        group = of.groups[of.nodes["node-2"].group]
        of = put(of, "nodegroups", base.replace(group, tags=tags))
    if place == "cluster":
        of = with_cluster(of, tags=tags)
    assert reason(of) == ""
    suspended = change(of, tags=(*of.instances["inst-web1"].tags, f"{TAG}suspend:999"))
    assert reason(suspended) == ""
    suspended = change(of, tags=(*of.instances["inst-web1"].tags, f"{TAG}suspend:1001"))
    assert reason(suspended) == f"tag {TAG}suspend stops automatic repairs"


@pytest.mark.parametrize(
    "changes",
    [
        {"beparams": {"ha": "none"}},
        {"beparams": {"ha": "restart"}},
        {"beparams": {"ha": "tags"}},
        {"beparams": {"ha": "tags"}, "tags": (f"{TAG}migrate",)},
        {"beparams": {"ha": "tags"}, "tags": (f"{TAG}failover", f"{TAG}suspend")},
    ],
)
def test_a_node_without_a_lease_keeps_what_stays_with_it(changes: dict[str, Any]) -> None:
    assert list_ended(sample(**changes)) == []


def test_a_node_without_a_lease_keeps_guests_whose_disks_are_only_there() -> None:
    assert list_ended(sample("node-2")) == []


def test_a_node_without_a_lease_ends_what_may_start_elsewhere_later() -> None:
    """The master may do so while nobody reaches the node to tell it of a change."""
    tags = (f"{TAG}failover", f"{TAG}suspend:1001")
    assert list_ended(sample(beparams={"ha": "tags"}, tags=tags)) == ["web1"]
    assert list_ended(sample(recovery=make_attempt(51, 9))) == ["web1"]
    assert list_ended(sample(admin_state=AdminState.DOWN)) == ["web1"]


def test_an_attempt_is_awaited_and_repeated_up_to_a_limit() -> None:
    waiting = plan(sample(recovery=make_attempt(52)))
    assert [item.name for item in waiting.starting] == ["web1"]
    assert waiting.failovers == waiting.left == []
    allowed = {"ha": "failover", "ha_attempts": 3}
    assert reason(sample(beparams=allowed, recovery=make_attempt(51, 2))) == ""
    assert "3 times" in reason(sample(beparams=allowed, recovery=make_attempt(51, 3)))


@pytest.mark.parametrize(
    "before", [make_attempt(50, 9), make_attempt(51, 9, source="node-3"), None]
)
def test_only_attempts_since_this_death_count(before: Attempt | None) -> None:
    of = sample(recovery=before)
    item, dead = of.instances["inst-web1"], of.nodes["node-2"]
    assert recovery.find_attempt(item, dead) is None
    assert reason(of) == ""
    assert recovery.count_attempt(item, dead, 60, NOW) == Attempt(
        time=NOW, source="node-2", job=60, number=1
    )


def test_attempts_are_counted() -> None:
    of = sample(recovery=make_attempt(51, 2))
    found = recovery.count_attempt(of.instances["inst-web1"], of.nodes["node-2"], 60, NOW)
    assert (found.job, found.number) == (60, 3)


def test_a_node_that_nothing_fenced_has_no_attempts() -> None:
    item = sample(recovery=make_attempt(51)).instances["inst-web1"]
    assert recovery.find_attempt(item, node(2)) is None


def limits(of: Config, **given: Any) -> tuple[dict[str, Any], list[str]]:
    notes: list[str] = []
    found = recovery_settings.limits(of, wire.decode(OpClusterSetParams, given), notes)
    return dict(found), notes


def fenceable(*names: str, **parameters: str) -> Config:
    """A cluster of three master candidates; those named have a way to prove their death."""
    of = config(node(2, master_candidate=True), node(3, master_candidate=True))
    for item in list(of.nodes.values()):
        if not names or item.name.partition(".")[0] in names:
            of = put(of, "nodes", base.replace(item, ndparams=parameters))
    return of


ALL = fenceable(fence_agent="ipmilan")


def test_what_is_not_given_is_not_changed() -> None:
    assert limits(config()) == ({}, [])


def test_zero_stands_for_never() -> None:
    off = {"auto_failover_after": None, "auto_fence_after": None}
    assert limits(config(), auto_failover_after=0, auto_fence_after=0) == (off, [])


@pytest.mark.parametrize(
    ("name", "shortest"), [("auto_failover_after", 15), ("auto_fence_after", 30)]
)
def test_bounds(name: str, shortest: int) -> None:
    for seconds in (shortest, 3600):
        assert limits(ALL, **{name: seconds})[0] == {name: seconds}
    for seconds in (1, shortest - 1, 3601):
        text = f"{name} is {seconds}; choose 0 for never, or from {shortest} to 3600"
        with pytest.raises((errors.OpPrereqError, errors.ParameterError), match=text):
            limits(ALL, **{name: seconds})


def test_a_failover_needs_three_candidates_that_are_not_offline() -> None:
    assert limits(ALL, auto_failover_after=20)[1] == []
    away = put(ALL, "nodes", base.replace(ALL.nodes["node-2"], offline=True))
    [note] = limits(away, auto_failover_after=20)[1]
    assert note.startswith("WARNING: no candidate can take over by itself")
    assert note.endswith("and there are 2")
    assert limits(away, auto_failover_after=0)[1] == []


def test_a_failover_needs_two_candidates_that_are_no_witnesses() -> None:
    cluster = ALL
    for name, expected in (("node-2", []), ("node-3", ["and there are 3 (2 of them only vote)"])):
        params = {**ALL.nodes[name].ndparams, "witness": True}
        cluster = put(cluster, "nodes", base.replace(ALL.nodes[name], ndparams=params))
        notes = limits(cluster, auto_failover_after=20)[1]
        assert [note.partition("offline, ")[2] for note in notes] == expected


def test_pacemaker_and_the_candidates_do_not_both_replace_the_master() -> None:
    vote = {"master_vote": MasterVote.PACEMAKER}
    assert limits(ALL, **vote) == (vote, [])
    text = "auto_failover_after is 15, and Pacemaker replaces a master by its own rules"
    chosen, replaced = with_cluster(ALL, **vote), with_cluster(ALL, auto_failover_after=15)
    for of, changes in (
        (ALL, {**vote, "auto_failover_after": 15}),
        (chosen, {"auto_failover_after": 15}),
        (replaced, vote),
    ):
        with pytest.raises((errors.OpPrereqError, errors.ParameterError), match=text):
            limits(of, **changes)
    both = {**vote, "auto_failover_after": 0}
    assert limits(replaced, **both)[0] == {**vote, "auto_failover_after": None}
    back = {"master_vote": MasterVote.NODES, "auto_failover_after": 15}
    assert limits(chosen, **back)[0]["master_vote"] is None


def test_one_store_does_not_follow_another() -> None:
    text = "master_vote is etcd: change it to nodes first, and then to pacemaker"
    same = {"master_vote": MasterVote.ETCD}
    with pytest.raises((errors.OpPrereqError, errors.ParameterError), match=text):
        limits(with_cluster(ALL, **same), master_vote=MasterVote.PACEMAKER)
    assert limits(with_cluster(ALL, **same), **same)[0] == same


@pytest.mark.parametrize(
    "parameters",
    [{"fence_agent": "ipmilan"}, {"oob_program": "/sbin/power"}, {"watchdog": "/dev/watchdog"}],
)
def test_nodes_that_nothing_can_prove_dead_are_named(parameters: dict[str, str]) -> None:
    assert limits(fenceable(**parameters), auto_fence_after=600)[1] == []
    [note] = limits(fenceable("node1", "node3", **parameters), auto_fence_after=600)[1]
    assert "are never fenced: node2.example.com (" in note
    assert limits(fenceable("node1", **parameters), auto_fence_after=0)[1] == []


def test_an_offline_node_needs_no_device() -> None:
    of = put(fenceable("node1", fence_agent="x"), "nodes", node(2, offline=True))
    [note] = limits(of, auto_fence_after=600)[1]
    assert "node3" in note
    assert "node2" not in note


def test_leases_outlast_the_failover_of_the_master() -> None:
    assert limits(ALL, auto_fence_after=60, auto_failover_after=15)[1] == []
    [note] = limits(ALL, auto_fence_after=59, auto_failover_after=15)[1]
    assert note.startswith("WARNING: nodes act for 39 s without a master")
    assert "may need 40 s: choose auto_fence_after=60 or more" in note
    [note] = limits(ALL, auto_fence_after=37)[1]
    assert note.startswith("WARNING: when the master is down for 25 s, all nodes are without")


def test_limits_that_are_set_already_count() -> None:
    of = with_cluster(ALL, auto_fence_after=60, auto_failover_after=15)
    assert limits(of, auto_failover_after=15)[1] == []
    assert "nodes act for 40 s" in limits(of, auto_failover_after=16)[1][0]
    assert "nodes act for 39 s" in limits(of, auto_fence_after=59)[1][0]
    assert limits(of)[1] == []
