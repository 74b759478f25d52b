"""What is foretold of the death of a node."""

from __future__ import annotations

from ganeti.recovery.forecast import Moment, Rules, foresee

BOTH = Rules(fence_after=60, failover_after=15)
ETCD = Rules(fence_after=60, failover_after=15, store="etcd")


def describe(moments: list[Moment]) -> list[tuple[int, str]]:
    return [(round(moment.after), moment.text) for moment in moments]


def test_a_node_with_a_watchdog_is_dead_when_its_lease_is_over() -> None:
    assert describe(foresee(BOTH, master=False, watchdog=True, devices=["fence agent x"])) == [
        (59, "the watchdog has reset it, if it still ran"),
        (65, "the master begins to fence it"),
        (65, "its lease is over, and its death is proven by lease and watchdog"),
    ]


def test_the_death_of_the_master_is_first_found_by_a_candidate() -> None:
    found = describe(foresee(BOTH, master=True, watchdog=False, devices=["fence agent x"]))
    assert found == [
        (18, "a candidate asks for votes, and becomes the master"),
        (83, "the master begins to fence it"),
        (95, "its lease is over, and its death is proven by fence agent x"),
    ]


def test_a_candidate_takes_the_role_when_its_lease_in_etcd_is_over() -> None:
    first, fence, over = describe(foresee(ETCD, master=True, watchdog=False, devices=["x"]))
    assert first == (22, "a candidate takes the role in etcd, and becomes the master")
    assert (fence[0], over[0]) == (88, 99)


def test_when_pacemaker_makes_a_master_is_not_foretold() -> None:
    rules = Rules(fence_after=60, failover_after=0, store="pacemaker", chooses=True)
    assert describe(foresee(rules, master=True, watchdog=False, devices=["fence agent x"])) == [
        (0, "Pacemaker makes a candidate the master; what follows counts from then"),
        (65, "the master begins to fence it"),
        (65, "its lease is over, and its death is proven by fence agent x"),
    ]
    other = foresee(rules, master=False, watchdog=False, devices=["fence agent x"])
    assert describe(other)[0] == (65, "the master begins to fence it")


def test_what_is_not_set_ends_it() -> None:
    def foresee_last(
        rules: Rules, *, master: bool = False, devices: tuple[str, ...] = ("x",)
    ) -> str:
        return foresee(rules, master=master, watchdog=False, devices=devices)[-1].text

    assert "auto_failover_after is not set" in foresee_last(Rules(60, 0), master=True)
    assert "auto_fence_after is not set" in foresee_last(Rules(0, 15))
    assert "nothing can prove its death" in foresee_last(BOTH, devices=())


def test_only_the_last_moment_proves_a_death_and_only_when_something_can() -> None:
    found = foresee(BOTH, master=True, watchdog=True, devices=["fence agent x"])
    assert [moment.proves for moment in found] == [False, False, False, True]
    found = foresee(Rules(60, 0), master=True, watchdog=False, devices=["fence agent x"])
    assert found == [Moment(0, "nothing by itself: auto_failover_after is not set")]


def test_the_watchdog_of_a_dead_master_proves_nothing_to_the_next_one() -> None:
    [*_others, last] = foresee(BOTH, master=True, watchdog=True, devices=[])
    assert (last.proves, last.text) == (
        False,
        "nothing more by itself: nothing can prove its death",
    )
    last = foresee(BOTH, master=True, watchdog=True, devices=["fence agent x"])[-1]
    assert last.text.endswith("proven by fence agent x")
