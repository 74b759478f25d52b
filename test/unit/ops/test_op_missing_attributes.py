"""What a reservation still needs, and what is said when it is taken for an instance."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import change, config, node, put, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate
from ganeti.model.instance import Instance, Reservation
from ganeti.ops.planning import missing_attributes
from ganeti.ops.targets import instance as target

RESERVED = Reservation(owner="shop")


def make_reservation(**changes: Any) -> Config:
    """A reservation of web1 with all that an instance needs, except what changes."""
    of = with_instance(config(node(2)), "web1", "node-2", forthcoming=True, reservation=RESERVED)
    return put(of, "instances", base.replace(web1(of), **changes))


def web1(of: Config) -> Instance:
    return of.instances["inst-web1"]  # type: ignore[index]


def list_missing(of: Config) -> list[str]:
    return [str(item) for item in missing_attributes.attributes(of, web1(of))]


def refusal(of: Config) -> str:
    return missing_attributes.refusal(of, web1(of))


def test_a_complete_reservation_needs_nothing_but_its_creation() -> None:
    of = make_reservation()
    assert list_missing(of) == []
    assert refusal(of) == (
        "instance 'web1' is forthcoming: its place is reserved, but it does not exist yet;"
        " gnt-instance add --commit web1 creates it"
    )


def test_each_missing_attribute_is_named_with_the_command_that_sets_it() -> None:
    of = make_reservation(name="", primary_node="", disks=())
    assert list_missing(of) == [
        "a name (gnt-instance rename inst-web1 NAME)",
        "a node (gnt-instance failover --target-node NODE inst-web1)",
        "disks (gnt-instance modify --disk add:size=10G inst-web1, or -t diskless)",
    ]


def test_a_node_that_was_removed_is_missing() -> None:
    assert list_missing(make_reservation(primary_node="node-9")) == [
        "a node (gnt-instance failover --target-node NODE web1)"
    ]


def test_disks_without_a_size_are_named_by_their_number() -> None:
    of = make_reservation()
    old = of.disks["disk-web1"]  # type: ignore[index]
    second = base.replace(old, uuid="disk-more", size=0)
    of = put(of, "disks", second)
    of = change(of, disks=("disk-web1", "disk-more"))
    assert list_missing(of) == [
        "the size of disk 1 (gnt-instance modify --disk 1:size=10G web1)",
    ]


def test_disks_that_are_still_to_be_made_count_instead_of_those_it_has() -> None:
    of = make_reservation()
    planned = base.replace(of.disks["disk-web1"], size=0)  # type: ignore[index]
    [found] = missing_attributes.attributes(of, web1(of), [planned])
    assert found.name == "the size of disk 0"
    assert missing_attributes.attributes(of, web1(of), []) == []


def test_a_disk_that_is_gone_has_no_size_to_set() -> None:
    assert list_missing(make_reservation(disks=("disk-web1", "disk-gone"))) == []


@pytest.mark.parametrize(
    ("template", "missing"),
    [(DiskTemplate.DISKLESS, False), (DiskTemplate.PLAIN, True), (None, True)],
)
def test_an_instance_without_disks_must_be_wanted(
    template: DiskTemplate | None, missing: bool
) -> None:
    of = make_reservation(disks=(), reservation=Reservation(disk_template=template))
    assert missing_attributes.has_disks(web1(of)) is not missing
    assert bool(list_missing(of)) is missing


def test_disks_without_a_reservation_must_exist() -> None:
    assert missing_attributes.has_disks(web1(make_reservation(reservation=None)))
    assert not missing_attributes.has_disks(web1(make_reservation(reservation=None, disks=())))


def test_the_refusal_names_all_that_is_missing_and_the_os() -> None:
    text = refusal(make_reservation(os="", primary_node=""))
    assert text == (
        "instance 'web1' is forthcoming: its place is reserved, but it does not exist yet, still"
        " missing: a node (gnt-instance failover --target-node NODE web1),"
        " an OS (gnt-instance modify --os-type OS web1, or --no-install);"
        " gnt-instance add --commit web1 creates it"
    )


def test_a_creation_that_was_interrupted_can_only_be_removed() -> None:
    assert refusal(make_reservation(creating=12, reservation=None)) == (
        "instance 'web1' is forthcoming: job 12 creates it, or was interrupted;"
        " then gnt-instance remove web1 removes what is left of it"
    )


def test_a_reservation_whose_creation_was_interrupted_can_start_over() -> None:
    assert refusal(make_reservation(creating=12, os="")) == (
        "instance 'web1' is forthcoming: job 12 makes it real, or was interrupted;"
        " then gnt-instance add --commit web1 starts over and"
        " gnt-instance remove web1 gives it up"
    )


def test_an_operation_on_real_instances_refuses_a_reservation() -> None:
    of = make_reservation()
    with pytest.raises(errors.OpPrereqError) as refused:
        target.check_real(of, web1(of))
    assert refused.value.args == (refusal(of), errors.ErrorCode.STATE)
    target.check_real(of, web1(change(of, forthcoming=None)))
