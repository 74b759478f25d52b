"""What tags say about repairs, and what instances need."""

import pytest

from ganeti.htools import repair
from ganeti.htools.repair import Repair, Result
from ganeti.model import repair_tags
from ganeti.model.repair_tags import PREFIX, Type
from ganeti.placement.facts import Instance


@pytest.mark.parametrize(
    "one",
    [
        Repair(Type.FAILOVER, "u-1", 1700000000, (12, 13)),
        Repair(Type.FIX_STORAGE, "u-2", 1700000000),
        Repair(Type.REINSTALL, "u-3", 1, (4,), Result.FAILURE),
        Repair(Type.MIGRATE, "u-4", 1, (), Result.ENOPERM),
    ],
)
def test_tags_are_read_as_they_were_written(one: Repair) -> None:
    assert repair.read(one.tag) == one


def test_the_form_of_the_tags() -> None:
    one = Repair(Type.FIX_STORAGE, "u", 5, (1, 2))
    assert one.tag == "ganeti:watcher:autorepair:pending:fix-storage:u:5:1+2"
    done = Repair(Type.FIX_STORAGE, "u", 5, (1, 2), Result.SUCCESS)
    assert done.tag == "ganeti:watcher:autorepair:result:fix-storage:u:5:success:1+2"


@pytest.mark.parametrize(
    "tag",
    [
        "web",
        "failover",
        f"{PREFIX}failover",
        f"{PREFIX}pending:failover:u:soon:1",
        f"{PREFIX}pending:hope:u:5:1",
        f"{PREFIX}pending:failover:u:5",
        f"{PREFIX}result:failover:u:5:maybe:1",
        f"{PREFIX}pending:failover:u:5:1+x",
    ],
)
def test_other_tags_are_no_repairs(tag: str) -> None:
    assert repair.read(tag) is None
    assert repair.repairs([tag]) == []


def test_a_repair_with_a_result_is_over() -> None:
    begun = Repair(Type.FAILOVER, "u", 5, (1,))
    other = Repair(Type.FAILOVER, "v", 6, (2,))
    ended = Repair(Type.FAILOVER, "u", 7, (1,), Result.SUCCESS)
    found = repair.repairs([begun.tag, ended.tag, other.tag])
    assert repair.find_unfinished(found) == [other]


@pytest.mark.parametrize(
    ("levels", "most"),
    [
        ([[], [], []], None),
        ([[], [], ["failover"]], Type.FAILOVER),
        ([["fix-storage"], ["reinstall"], ["failover"]], Type.FIX_STORAGE),
        ([[], ["reinstall", "failover"], []], Type.FAILOVER),
        ([["anything"], ["migrate"], []], Type.MIGRATE),
        ([["suspend"], [], ["failover"]], Type.FAILOVER),
    ],
)
def test_the_nearest_object_with_a_tag_decides(levels: list[list[str]], most: Type | None) -> None:
    assert repair_tags.find_allowed([[PREFIX + word for word in tags] for tags in levels]) is most


@pytest.mark.parametrize(
    ("tags", "answer"),
    [
        ([], False),
        (["suspend"], True),
        (["suspend:100"], False),
        (["suspend:300"], True),
        (["suspend:100", "suspend:300"], True),
        (["suspend:100", "suspend"], True),
        (["suspend:tomorrow"], True),
        (["suspended"], False),
        (["failover"], False),
    ],
)
def test_suspension_ends_at_its_time(tags: list[str], answer: bool) -> None:
    assert repair_tags.is_suspended([PREFIX + tag for tag in tags], 200.0) is answer


@pytest.mark.parametrize(
    ("template", "offline", "kind"),
    [
        ("drbd", "", None),
        ("drbd", "b", Type.FIX_STORAGE),
        ("drbd", "a", Type.FAILOVER),
        ("drbd", "ab", Type.REINSTALL),
        ("plain", "a", Type.REINSTALL),
        ("plain", "b", None),
        ("file", "a", None),
        ("ext", "a", None),
    ],
)
def test_what_an_instance_needs(template: str, offline: str, kind: Type | None) -> None:
    second = "b" if template == "drbd" else ""
    item = Instance("i", 1, 1, 1, "running", True, "a", second, template)
    assert repair.find_needed_repair(item, frozenset(offline)) is kind
