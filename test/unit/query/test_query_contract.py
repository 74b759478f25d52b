"""The fields of this program against those of Ganeti, and the rules that names must keep.

``contract_query_fields.json`` holds what clients of Ganeti 3.2 find: it never follows the code.
"""

from __future__ import annotations

import importlib
import re
import string
from pathlib import Path

import pytest

from ganeti.base import jsonio
from ganeti.query import engine
from ganeti.query.registry import KINDS

FILE = Path(__file__).parents[2] / "recorded" / "contract_query_fields.json"
CONTRACT = jsonio.loads(FILE.read_text(encoding="utf-8"))
#: kind -> module of its list command, and the constant there
LISTS = {
    "filter": ("filter.commands", "_FIELDS"),
    "group": ("group.show", "_LIST_FIELDS"),
    "instance": ("instance.show", "_LIST_FIELDS"),
    "job": ("job.show", "LIST_FIELDS"),
    "lock": ("debug.commands", "_LOCK_FIELDS"),
    "node": ("node.show", "_LIST_FIELDS"),
}
#: fields of our own, about what Ganeti does not have
OWN = {
    "group": ["custom_beparams", "ndp/fence_agent", "ndp/watchdog", "ndp/witness"],
    "instance": [
        "backup.at",
        "backup.bandwidth",
        "backup.booted",
        "backup.booted_time",
        "backup.every",
        "backup.keep_daily",
        "backup.keep_last",
        "backup.keep_monthly",
        "backup.keep_weekly",
        "backup.last",
        "backup.repository",
        "backup.time",
        "backup.verified",
        "backup.verified_time",
        "backup.verify_boot",
        "backup.verify_every",
        "backup.verify_tried",
        "backup.verify_until",
        "be/ha",
        "be/ha_attempts",
        "cloud_init.id",
        "cloud_init.keys",
        "cloud_init.private",
        "expires",
        "hv/accelerator",
        "hv/firmware",
        "hv/guest_type",
        "hv/max_vcpus",
        "image",
        "owner",
        "reserved_for",
        "snapshot.count",
        "snapshot.names",
        "snapshots",
    ],
    "job": ["user"],
    "network": ["dns", "mtu"],
    "node": [
        "maintenance",
        "ndp/fence_agent",
        "ndp/watchdog",
        "ndp/witness",
        "reserved.count",
        "reserved.disk",
        "reserved.memory",
        "reserved.spindles",
        "reserved.vcpus",
    ],
    "os": ["hypervisors"],
}


def all_fields() -> list[tuple[str, str]]:
    return [(what, name) for what in KINDS.names() for name in KINDS.get(what).fields]


def test_the_same_kinds() -> None:
    assert set(KINDS.names()) - {"backup", "disk", "image"} == set(CONTRACT)


@pytest.mark.parametrize("what", sorted(CONTRACT))
def test_the_same_fields_titles_and_kinds(what: str) -> None:
    found = {
        item["name"]: [item["title"], item["kind"]] for item in engine.fields_of(what)["fields"]
    }
    wanted = CONTRACT[what]["fields"]
    assert sorted(set(wanted) - set(found)) == [], "fields that clients expect are missing"
    own = sorted(set(found) - set(wanted))
    assert own == OWN.get(what, []), "fields that Ganeti does not have"
    assert {name: found[name] for name in wanted if found[name] != wanted[name]} == {}
    assert KINDS.get(what).name_field == CONTRACT[what]["name_field"]


@pytest.mark.parametrize("what", sorted(LISTS))
def test_the_same_default_columns(what: str) -> None:
    module, constant = LISTS[what]
    columns = getattr(importlib.import_module(f"ganeti.cli.{module}"), constant)
    assert list(columns) == CONTRACT[what]["default_columns"]


@pytest.mark.parametrize("what", sorted(CONTRACT))
def test_rules_of_names_titles_and_descriptions(what: str) -> None:
    for item in engine.fields_of(what)["fields"]:
        name, title, doc = item["name"], item["title"], item["doc"]
        assert set(name) <= set(string.ascii_lowercase + string.digits + "/._"), name
        assert title, name
        assert not set(title) & set(string.whitespace), name
        assert doc[0] in string.ascii_uppercase, (name, doc)
        assert doc[-1] not in string.punctuation.replace(")", "") + string.whitespace, (name, doc)
        assert "\n" not in doc, name
        assert item["kind"] in ("text", "bool", "number", "float", "unit", "timestamp", "other"), (
            name
        )


def test_titles_tell_columns_apart() -> None:
    """Two fields of a kind have one title only where they are the same thing."""
    for what in KINDS.names():
        seen: dict[str, str] = {}
        for item in engine.fields_of(what)["fields"]:
            other = seen.setdefault(item["title"], item["name"])
            fields = KINDS.get(what).fields
            same = fields[other].getter is fields[item["name"]].getter
            assert other == item["name"] or same or what == "cluster", (other, item["name"])


def test_every_spelling_of_the_first_designs_is_accepted() -> None:
    fields = KINDS.get("instance").fields
    pairs = [(f"hvparam/{name[3:]}", name) for name in fields if name.startswith("hv/")]
    pairs += [(f"beparam/{name[3:]}", name) for name in fields if name.startswith("be/")]
    for name in fields:
        found = re.fullmatch(r"(nic|disk)\.([a-z.]+)/([0-9]+)", name)
        if found:
            pairs.append((f"{found[1]}{found[3]}.{found[2]}", name))
    assert len(pairs) > 200
    old, new = ([pair[side] for pair in pairs] for side in (0, 1))
    answers = (engine.fields_of("instance", names)["fields"] for names in (old, new))
    for asked, first, second in zip(old, *answers, strict=True):
        assert first == {**second, "name": asked}
        assert first["kind"] != "unknown"


def test_fields_are_static_once_loaded() -> None:
    """Asking, also with spellings that are not listed, changes no table."""
    before = all_fields()
    same = {(what, name): KINDS.get(what).fields[name] for what, name in before}
    for what in KINDS.names():
        engine.fields_of(what, ["name", "nic0.ip", "hvparam/acpi", "xyz", "nic.ip/99"])
        engine.fields_of(what)
    assert all_fields() == before
    assert all(KINDS.get(what).fields[name] is field for (what, name), field in same.items())


@pytest.mark.parametrize(
    "name",
    [
        "nic.ip/8",
        "disk.size/16",
        "nic8.ip",
        "nic0.colour",
        "hv/xyz",
        "hvparam/xyz",
        "NAME",
        "name ",
        "",
        "nic.ip/-1",
        "nic٣.ip",
        "nic.ip/00",
    ],
)
def test_names_near_a_field_are_unknown(name: str) -> None:
    (item,) = engine.fields_of("instance", [name])["fields"]
    assert (item["name"], item["kind"]) == (name, "unknown")
