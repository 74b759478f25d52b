"""Which steps bring a cluster to another version, from whatever is found on its nodes."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from ganeti import errors
from ganeti.base.releases import Version, parse
from ganeti.base.upgrade_intent import Intent
from ganeti.bootstrap.upgrade_plan import (
    Facts,
    Kind,
    describe_left,
    list_refusals,
    make_steps,
)
from ganeti.rpc.objects import VersionState

OLD, NEW = Version(3, 2), Version(3, 3)
MASTER, SECOND, THIRD = "node1", "node2", "node3"


def state(running: Version, active: Version | None = None, *installed: Version) -> VersionState:
    return VersionState(
        running=str(running),
        release=f"{running}.0",
        active=str(active or running),
        installed=[str(each) for each in installed or (OLD, NEW)],
    )


def facts(
    config: Version = OLD, active: Version = OLD, master_runs: bool = True, **nodes: VersionState
) -> Facts:
    states = {MASTER: state(active), SECOND: state(OLD), THIRD: state(OLD)} | nodes
    return Facts("c", MASTER, config, active, master_runs, states)


def shape(found: Facts, target: Version) -> list[str]:
    return [step.node or step.kind.value for step in make_steps(found, target)]


def test_nodes_go_first_on_the_way_up_and_last_on_the_way_down() -> None:
    assert shape(facts(), NEW) == ["hold", SECOND, THIRD, MASTER, "release"]
    up = {SECOND: state(NEW), THIRD: state(NEW)}
    assert shape(facts(NEW, NEW, **up), OLD) == ["hold", MASTER, SECOND, THIRD, "release"]


def test_what_was_done_is_not_done_again() -> None:
    assert shape(facts(node2=state(NEW)), NEW) == ["hold", THIRD, MASTER, "release"]
    assert shape(facts(node2=state(OLD, NEW)), NEW)[1] == SECOND, "its daemon is the old one"
    assert shape(facts(), OLD) == []


@pytest.mark.parametrize("target", [OLD, NEW])
def test_no_master_is_ever_newer_than_a_node_that_it_calls(target: Version) -> None:
    """After each step of each plan, from each mixture that a killed run can leave."""
    for config, active, second, third in itertools.product((OLD, NEW), repeat=4):
        if active > min(second, third):
            continue  # no run leaves that: it never is so, as this test shows
        found = facts(config, active, config == active, node2=state(second), node3=state(third))
        running = {SECOND: second, THIRD: third, MASTER: active}
        for step in make_steps(found, target):
            if step.node:
                running[step.node] = target
            assert running[MASTER] <= min(running.values()), (found, step)
        assert set(running.values()) == {target}


def test_a_master_whose_files_are_of_two_versions_is_brought_to_one() -> None:
    nodes = {SECOND: state(NEW), THIRD: state(NEW)}
    assert shape(facts(NEW, OLD, False, **nodes), NEW) == ["hold", MASTER, "release"]
    assert MASTER in shape(facts(NEW, NEW, False, **nodes), NEW), "its daemon is to be started"


def test_a_node_that_was_away_is_all_that_is_left() -> None:
    found = facts(NEW, NEW, node3=state(NEW))
    assert shape(found, NEW) == ["hold", SECOND, "release"]


def test_each_reason_names_its_node_and_what_to_do() -> None:
    found = dataclasses.replace(
        facts(
            node2=state(OLD, OLD, OLD),
            node3=with_values(state(OLD), active=""),
            node5=state(Version(3, 1)),
        ),
        silent={"node4": "no route"},
    )
    text = "\n".join(list_refusals(found, NEW))
    assert "node4 does not answer (no route)" in text
    assert "gnt-node modify --offline yes node4" in text
    assert "version 3.3 is not installed on node2 (there is 3.2)" in text
    assert "node3 cannot have several versions" in text
    assert "node5 runs version 3.1, which is not next to 3.3" in text
    assert list_refusals(facts(), NEW) == []


def with_values(value: VersionState, **changes: object) -> VersionState:
    for name, new in changes.items():
        setattr(value, name, new)
    return value


def test_offline_nodes_are_named() -> None:
    found = dataclasses.replace(facts(), offline=("node7", "node8"))
    assert describe_left(facts(), NEW) == []
    assert "node7, node8" in describe_left(found, NEW)[0]
    assert Kind.NODE not in {s.kind for s in make_steps(found, NEW) if s.node == "node7"}


def test_versions_that_work_together() -> None:
    assert parse("3.2").is_beside(parse("3.3"))
    assert parse("3.3").is_beside(parse("3.2"))
    assert not parse("3.2").is_beside(parse("3.4"))
    assert parse("3.9").is_beside(parse("4.0"))
    assert not parse("3.9").is_beside(parse("4.1"))
    assert parse("3.10") > parse("3.9")
    for text in ("3", "3.2.1", "v3.2", "3.02", "", "3.2\n", "3.100"):
        with pytest.raises(errors.ParameterError):
            parse(text)


def test_the_intent_has_the_form_of_ganeti() -> None:
    assert Intent("3.2", "3.3", 4711).to_text() == "3.2,3.3,4711\n"
    odd = Intent("3,2\\", "3.3", 1)
    assert odd.to_text() == "3\\,2\\\\,3.3,1\n"
    assert Intent.from_text(odd.to_text()) == odd
    for text in ("", "3.2,3.3", "3.2,3.3,x", "3.2,3.3,1,2"):
        with pytest.raises(errors.ParseError):
            Intent.from_text(text)
