"""Never two: what a node runs only by a fresh order, and not while another node may run it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_node import LocalNode
from node_samples import EPOCHS, INSTANCE, instance, misbehave, renew_right

from ganeti import errors
from ganeti.node.context import NodeContext
from ganeti.node.run_rights import explain_block, refusal
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance, RightState, RunRight


def right(item: NodeInstance, state: RightState, peer: str = "node2.example.com") -> RunRight:
    return RunRight(uuid=item.uuid, name=item.name, epoch=(1, next(EPOCHS)), state=state, peer=peer)


def runs(node: LocalNode) -> bool:
    return node.instance_list(["fake"], {}) == [INSTANCE]


def test_an_order_without_number_is_refused(node: LocalNode) -> None:
    with pytest.raises(errors.RunRightError, match="has no number"):
        node.instance_start(instance(run_epoch=(0, 0)), False, [])
    assert not runs(node)


def test_a_late_order_is_refused_after_a_newer_one(node: LocalNode) -> None:
    late, newer = instance(), instance()
    node.instance_start(newer, False, [])
    node.instance_shutdown(newer, 0, [])
    with pytest.raises(errors.RunRightError, match="out of date"):
        node.instance_start(late, False, [])
    with pytest.raises(errors.RunRightError, match="out of date"):
        node.instance_start(newer, False, [])
    node.instance_start(renew_right(newer), False, [])
    assert runs(node)


def test_the_order_of_an_older_master_is_older_whatever_its_number(node: LocalNode) -> None:
    node.instance_start(instance(run_epoch=(7, 1)), False, [])
    node.instance_shutdown(instance(), 0, [])
    with pytest.raises(errors.RunRightError, match="out of date"):
        node.instance_start(instance(run_epoch=(6, 999)), False, [])


def test_a_late_start_after_the_instance_went_elsewhere(node: LocalNode) -> None:
    late = instance()
    node.run_right_set(right(late, RightState.GONE), "fake")
    with pytest.raises(errors.RunRightError, match="out of date"):
        node.instance_start(late, False, [])
    assert not runs(node)


@pytest.mark.parametrize("state", [RightState.LEAVING, RightState.ARRIVING])
def test_nothing_is_started_while_the_other_node_may_run_it(
    node: LocalNode, state: RightState
) -> None:
    item = instance()
    node.run_right_set(right(item, state), "fake")
    with pytest.raises(errors.RunRightError, match=r"node2\.example\.com .*migrate --cleanup"):
        node.instance_start(renew_right(item), False, [])
    node.run_right_set(right(item, RightState.HERE, ""), "fake")
    node.instance_start(renew_right(item), False, [])
    assert runs(node)


def test_a_hard_reboot_needs_the_right_too(node: LocalNode) -> None:
    item = instance()
    node.instance_start(item, False, [])
    node.run_right_set(right(item, RightState.LEAVING), "fake")
    with pytest.raises(errors.RunRightError, match="did not finish"):
        node.instance_reboot(item, "hard", 0, [])
    assert runs(node)


@pytest.mark.parametrize("state", [RightState.GONE, RightState.ARRIVING])
def test_what_runs_here_is_not_given_away(node: LocalNode, state: RightState) -> None:
    item = instance()
    node.instance_start(item, False, [])
    with pytest.raises(errors.RunRightError, match="has to be stopped"):
        node.run_right_set(right(item, state), "fake")
    node.instance_shutdown(item, 0, [])
    node.run_right_set(right(item, state), "fake")


def test_rights_survive_a_restart_of_the_daemon(context: NodeContext, node: LocalNode) -> None:
    item = instance()
    kept = right(item, RightState.LEAVING)
    node.run_right_set(kept, "fake")
    later = LocalNode(context)
    assert later.run_rights([]) == [kept]
    assert later.run_rights([item.uuid, "unknown"]) == [kept]
    with pytest.raises(errors.RunRightError):
        later.instance_start(renew_right(item), False, [])


def test_the_right_is_on_disk_before_the_guest_begins(node: LocalNode, paths: Paths) -> None:
    misbehave(paths, start={"*": {"fail": "no more memory"}})
    item = instance()
    with pytest.raises(errors.HypervisorError, match="no more memory"):
        node.instance_start(item, False, [])
    [known] = node.run_rights([item.uuid])
    assert (known.epoch, known.state) == (item.run_epoch, RightState.HERE)


def test_the_same_right_may_be_said_twice(node: LocalNode) -> None:
    gone = right(instance(), RightState.GONE)
    node.run_right_set(gone, "fake")
    node.run_right_set(gone, "fake")
    assert node.run_rights([gone.uuid]) == [gone]


def test_a_damaged_record_refuses_and_says_what_to_do(node: LocalNode, paths: Paths) -> None:
    item = instance()
    paths.run_rights.mkdir()
    (paths.run_rights / item.uuid).write_text("{")
    with pytest.raises(errors.RunRightError, match="remove it when you are sure"):
        node.instance_start(item, False, [])


@pytest.mark.parametrize("uuid", ["../epoch", "", ".x", "a/b", "a\0b"])
def test_names_that_leave_the_directory_are_refused(node: LocalNode, uuid: str) -> None:
    with pytest.raises(errors.ParameterError, match="not a uuid"):
        node.instance_start(instance(uuid=uuid), False, [])


EPOCH = st.tuples(st.integers(0, 3), st.integers(0, 5))
STATE = st.sampled_from(RightState)


@given(st.lists(st.tuples(EPOCH, STATE, st.booleans()), max_size=12))
def test_whatever_comes_numbers_only_grow_and_blocked_means_blocked(
    orders: list[tuple[tuple[int, int], RightState, bool]],
) -> None:
    """Any sequence of orders, starts and decisions mixed."""
    known: RunRight | None = None
    for epoch, state, start in orders:
        wanted = RightState.HERE if start else state
        if (start and explain_block(known, "web1")) or refusal(known, "web1", epoch, wanted):
            continue
        assert epoch > (known.epoch if known else (0, 0))
        if start and known is not None:
            assert known.state in (RightState.HERE, RightState.GONE)
        known = RunRight(uuid="u", name="web1", epoch=epoch, state=wanted, peer="other")
