"""The fields of all kinds: a change of what clients can ask for must be seen in review.

After a wanted change: ``UPDATE_RECORDED=1 pytest test/unit/query``, then read the difference.
"""

import os
import re
from pathlib import Path

import pytest
from query_cluster import StubSources, config

from ganeti.base import jsonio
from ganeti.base.text import natural_sorted
from ganeti.errors import ParameterError, ProgrammerError
from ganeti.filters.answer import FieldKind, ResultStatus
from ganeti.query import engine
from ganeti.query.field import Field, Kind
from ganeti.query.registry import KINDS

FILE = Path(__file__).parents[2] / "recorded" / "query_fields.json"


def written():
    """The text of the recorded file, made from the code: one line for each field."""
    kinds = []
    for what in KINDS.names():
        kind = KINDS.get(what)
        fields = ",\n".join(
            f"  {jsonio.dumps(name)}: {jsonio.dumps([field.title, field.kind.value])}"
            for name, field in sorted(kind.fields.items())
        )
        head = f'{{"name_field": {jsonio.dumps(kind.name_field)}, "fields": {{'
        kinds.append(f" {jsonio.dumps(what)}: {head}\n{fields}\n }}}}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


if os.environ.get("UPDATE_RECORDED"):
    FILE.write_text(written(), encoding="utf-8")
RECORDED = jsonio.loads(FILE.read_text(encoding="utf-8"))
ALIASES = {
    "vcpus": "be/vcpus",
    "be/memory": "be/maxmem",
    "sda_size": "disk.size/0",
    "sdb_size": "disk.size/1",
    "ip": "nic.ip/0",
    "mac": "nic.mac/0",
    "bridge": "nic.bridge/0",
    "nic_mode": "nic.mode/0",
    "nic_link": "nic.link/0",
    "nic_network": "nic.network/0",
}
#: Fields that cost more than a look at the configuration.
LIVE = {
    "backup": set(RECORDED["backup"]["fields"]) - {"repository"},
    "cluster": {"architecture", "drain_flag", "vcs_version", "watcher_pause"},
    "export": {"export"},
    "instance": {"console", "oper_ram", "oper_state", "oper_vcpus", "status"},
    "job": set(RECORDED["job"]["fields"]) - {"id"},
    "node": {"bootid", "cnodes", "cnos", "csockets", "ctotal", "dfree", "dtotal"}
    | {"mfree", "mnode", "mtotal", "spfree", "sptotal"},
}


@pytest.mark.parametrize("what", sorted(RECORDED))
def test_fields_are_those_recorded(what):
    kind, recorded = KINDS.get(what), RECORDED[what]
    answer = engine.fields_of(what)["fields"]
    found = {each["name"]: [each["title"], each["kind"]] for each in answer}
    assert found == recorded["fields"]
    assert kind.name_field == recorded["name_field"]
    assert kind.name == what


@pytest.mark.parametrize("what", sorted(RECORDED))
def test_definitions_keep_the_rules_of_the_format(what):
    fields = engine.fields_of(what)["fields"]
    assert [each["name"] for each in fields] == natural_sorted(RECORDED[what]["fields"])
    for each in fields:
        assert set(each) == {"name", "title", "kind", "doc"}
        assert re.fullmatch(r"[a-z0-9/._]+", each["name"])
        assert each["title"]
        assert not re.search(r"\s", each["title"])
        assert re.fullmatch(r"[A-Z].*[^.,;:!?\s]", each["doc"])
        assert each["kind"] in set(FieldKind) - {FieldKind.UNKNOWN}


@pytest.mark.parametrize("what", sorted(RECORDED))
def test_which_fields_are_live(what):
    found = {name for name, field in KINDS.get(what).fields.items() if field.needs}
    assert found == LIVE.get(what, set())


def test_fields_that_compare_in_a_special_way():
    def having(flag):
        return {
            (what, name)
            for what in RECORDED
            for name, field in KINDS.get(what).fields.items()
            if getattr(field, flag)
        }

    assert having("hostname") == {
        ("backup", "instance"),
        ("node", "name"),
        ("instance", "name"),
        ("disk", "instance"),
        ("instance", "pnode"),
        ("export", "node"),
    }
    assert having("seconds") == {("job", f"{which}_ts") for which in ("received", "start", "end")}
    assert having("numeric_text") == {("job", "id")}


@pytest.mark.parametrize(("alias", "of"), ALIASES.items())
def test_aliases_have_the_same_definition(alias, of):
    first, second = engine.fields_of("instance", [alias, of])["fields"]
    assert first == {**second, "name": alias}


@pytest.mark.parametrize(
    ("old", "listed"),
    [
        ("nic1.ip", "nic.ip/1"),
        ("disk0.size", "disk.size/0"),
        ("hvparam/acpi", "hv/acpi"),
        ("beparam/vcpus", "be/vcpus"),
    ],
)
def test_old_spellings_are_understood_but_not_listed(old, listed):
    first, second = engine.fields_of("instance", [old, listed])["fields"]
    assert first == {**second, "name": old}
    assert old not in KINDS.get("instance").fields


def test_fields_by_name_in_the_order_asked():
    found = engine.fields_of("node", ["offline", "nosuch", "name"])["fields"]
    assert [each["name"] for each in found] == ["offline", "nosuch", "name"]
    assert found[1] == {
        "name": "nosuch",
        "title": "nosuch",
        "kind": "unknown",
        "doc": found[1]["doc"],
    }
    assert engine.fields_of("node", []) == engine.fields_of("node")
    assert engine.fields_of("node", None) == engine.fields_of("node")


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match=r"'nodes'.*did you mean node"):
        engine.fields_of("nodes")
    with pytest.raises(ParameterError, match="choose from backup, cluster"):
        engine.query(StubSources(config()), "", ["name"])


def test_statuses_have_their_numbers():
    assert [(status.name, status.value) for status in ResultStatus] == [
        ("NORMAL", 0),
        ("UNKNOWN", 1),
        ("NODATA", 2),
        ("UNAVAIL", 3),
        ("OFFLINE", 4),
    ]


@pytest.mark.parametrize(
    ("name", "title", "doc"),
    [
        ("Name", "Name", "A name"),
        ("name", "The name", "A name"),
        ("name", "", "A name"),
        ("name", "Name", "a name"),
        ("name", "Name", "A name."),
        ("name", "Name", "A\nname"),
    ],
)
def test_a_field_that_breaks_the_rules_cannot_be_made(name, title, doc):
    with pytest.raises(ProgrammerError, match="has an invalid"):
        Field(name, title, FieldKind.TEXT, doc, lambda ctx: lambda row: (0, row))


class Things(Kind[str]):
    name = "thing"

    def rows(self, ctx):
        return []


def test_a_field_cannot_be_defined_twice():
    kind = Things()
    kind.attribute("name", "Name", FieldKind.TEXT, "A name", "name")
    with pytest.raises(ProgrammerError, match="the thing field 'name' is defined twice"):
        kind.attribute("name", "Name", FieldKind.TEXT, "A name", "name")
