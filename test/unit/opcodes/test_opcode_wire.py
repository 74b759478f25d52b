"""Opcodes as JSON: what is read, what is written, what stays hidden."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

from ganeti.base import jsonio
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode, reason_source, summary
from ganeti.opcodes.cluster import OpClusterSetParams, OpClusterVerify
from ganeti.opcodes.devices import DiskChange, DiskParams, DiskRecreation, NicChange, NicParams
from ganeti.opcodes.enums import DdmFull, DiskMode, DiskTemplate, FinalStatus, InstCreateMode
from ganeti.opcodes.hidden import Private, Secret
from ganeti.opcodes.instance import OpInstanceReinstall, OpInstanceSetParams, OpInstanceStartup
from ganeti.opcodes.instance_create import OpInstanceCreate, OpInstanceMultiAlloc
from ganeti.opcodes.instance_disks import OpInstanceRecreateDisks
from ganeti.opcodes.network import OpNetworkAdd, OpNetworkSetParams
from ganeti.opcodes.node import OpOobCommand
from ganeti.opcodes.tags import OpTagsGet
from ganeti.opcodes.test import OpTestAllocator, OpTestDelay, OpTestDummy
from ganeti.opcodes.values import JobDep

CREATE = {
    "OP_ID": "OP_INSTANCE_CREATE",
    "instance_name": "web1",
    "disks": [{"size": 1024}],
    "nics": [{}],
    "mode": "create",
}


def create(**more: Any) -> OpInstanceCreate:
    return wire.decode(OpInstanceCreate, CREATE | more)


def test_defaults_are_written_and_unset_parameters_are_not() -> None:
    """The form of a job file: of the unset ones only depends and comment appear."""
    op = wire.from_wire({"OP_ID": "OP_TEST_DELAY", "duration": 0.1, "depends": [[2, []]]})
    assert wire.to_stored_form(op) == {
        "OP_ID": "OP_TEST_DELAY",
        "priority": 0,
        "depends": [[2, []]],
        "comment": None,
        "reason": [],
        "duration": 0.1,
        "on_master": True,
        "on_nodes": [],
        "repeat": 0,
        "interruptible": False,
        "no_locks": True,
    }
    assert wire.to_wire(OpTestDelay(duration=1.0))["depends"] is None


def test_an_integer_is_taken_for_a_number() -> None:
    op = wire.decode(OpTestDelay, {"duration": 3})
    assert isinstance(op.duration, float)


@pytest.mark.parametrize("reason", [{}, {"reason": None}, {"reason": []}])
def test_older_clients_send_no_reason(reason: dict[str, Any]) -> None:
    assert wire.from_wire({"OP_ID": "OP_CLUSTER_QUERY", **reason}).reason == []


def test_reason_entries_are_kept() -> None:
    entry = ["gnt:client", "weekly maintenance", 1795225082961834000]
    op = wire.from_wire({"OP_ID": "OP_CLUSTER_QUERY", "reason": [entry]})
    assert wire.to_wire(op)["reason"] == [entry]


def test_dependencies_of_all_forms() -> None:
    op = wire.from_wire(
        {
            "OP_ID": "OP_CLUSTER_QUERY",
            "depends": [[12, ["error", "success"]], ["34", []], [-1, ["canceled"]]],
        }
    )
    assert op.depends == [
        JobDep(12, [FinalStatus.ERROR, FinalStatus.SUCCESS]),
        JobDep(34),
        JobDep(-1, [FinalStatus.CANCELED]),
    ]
    assert wire.to_wire(op)["depends"][1] == [34, []]


@pytest.mark.parametrize(
    ("size", "mebibytes"), [(10, 10), ("20G", 20480), ("1.5t", 1572864), ("512", 512)]
)
def test_disk_sizes_with_units_become_mebibytes(size: Any, mebibytes: int) -> None:
    op = create(disks=[{"size": size}])
    assert op.disks[0].size == mebibytes
    assert wire.to_wire(op)["disks"] == [{"size": mebibytes}]


def test_unknown_disk_keys_go_to_the_storage_provider() -> None:
    given = {"size": 8, "mode": "ro", "provider": "pvdr", "param1": "x", "replicas": 3}
    op = create(disks=[given])
    disk = op.disks[0]
    assert disk.mode is DiskMode.RO
    assert disk.ext == {"param1": "x", "replicas": 3}
    assert wire.to_wire(op)["disks"] == [given]


@pytest.mark.parametrize(
    ("given", "action", "item"),
    [
        (["add", -1, {"ip": "pool"}], DdmFull.ADD, -1),
        (["modify", "eth-front", {"ip": "pool"}], DdmFull.MODIFY, "eth-front"),
        (["add", {"ip": "pool"}], DdmFull.ADD, -1),
        (["remove", {"ip": "pool"}], DdmFull.REMOVE, -1),
        ([0, {"ip": "pool"}], DdmFull.MODIFY, 0),
    ],
)
def test_changes_of_devices_in_all_forms(given: Any, action: DdmFull, item: Any) -> None:
    op = wire.decode(OpInstanceSetParams, {"instance_name": "web1", "nics": [given]})
    assert op.nics == [NicChange(action, item, NicParams(ip="pool"))]
    assert wire.to_wire(op)["nics"] == [[action.value, item, {"ip": "pool"}]]


def test_a_disk_change_reads_its_size() -> None:
    op = wire.decode(
        OpInstanceSetParams, {"instance_name": "web1", "disks": [["add", {"size": "1g"}]]}
    )
    assert op.disks == [DiskChange(DdmFull.ADD, -1, DiskParams(size=1024))]


def test_disks_to_recreate_with_and_without_parameters() -> None:
    op = wire.decode(
        OpInstanceRecreateDisks, {"instance_name": "web1", "disks": [0, [2, {"size": "1G"}]]}
    )
    assert op.disks == [DiskRecreation(0), DiskRecreation(2, DiskParams(size=1024))]
    assert wire.to_wire(op)["disks"] == [[0, {}], [2, {"size": 1024}]]


def test_sets_lose_duplicates_and_are_written_in_order() -> None:
    op = wire.decode(OpClusterVerify, {"ignore_errors": ["ENODESSH", "EEXTAGS", "ENODESSH"]})
    assert wire.to_wire(op)["ignore_errors"] == ["EEXTAGS", "ENODESSH"]


def test_words_become_enum_members_and_plain_text_again() -> None:
    op = wire.decode(OpClusterSetParams, {"diskparams": {"drbd": {"metavg": "x"}}})
    assert op.diskparams == {DiskTemplate.DRBD: {"metavg": "x"}}
    written = wire.to_wire(op)["diskparams"]
    assert [type(key) for key in written] == [str]


def test_addresses_are_kept_as_written() -> None:
    given = {
        "OP_ID": "OP_NETWORK_ADD",
        "network_name": "net",
        "network": "192.0.2.0/24",
        "gateway": "192.0.2.1",
        "network6": "2001:DB8::/64",
        "gateway6": "2001:DB8::1",
        "add_reserved_ips": ["192.0.2.7"],
    }
    op = wire.from_wire(given)
    assert isinstance(op, OpNetworkAdd)
    assert op.network == "192.0.2.0/24"
    assert given.items() <= wire.to_wire(op).items()


def test_a_gateway_can_be_taken_away() -> None:
    op = wire.decode(OpNetworkSetParams, {"network_name": "net", "gateway": "none"})
    assert wire.to_wire(op)["gateway"] == "none"


def test_members_of_an_allocation_are_opcodes() -> None:
    op = wire.from_wire({"OP_ID": "OP_INSTANCE_MULTI_ALLOC", "instances": [CREATE]})
    assert isinstance(op, OpInstanceMultiAlloc)
    assert op.instances == [create()]
    assert wire.to_wire(op)["instances"] == [wire.to_wire(create())]


def test_any_value_is_kept_where_nothing_is_checked() -> None:
    value = {"a": [1, None, {"b": 2.5}]}
    op = wire.decode(OpTestDummy, {"result": value, "fail": False})
    assert op.result == value
    written = wire.to_wire(op)
    assert written["result"] == value
    assert written["fail"] is False
    assert "messages" not in written


# What a log, a list or a job file may show

PASSWORD = "correct horse"
TOKEN = "battery staple"


@pytest.fixture
def confidential() -> OpInstanceCreate:
    return create(osparams_private={"pw": PASSWORD}, osparams_secret={"token": TOKEN})


def test_hidden_values_are_for_those_who_ask(confidential: OpInstanceCreate) -> None:
    assert confidential.osparams_private is not None
    assert confidential.osparams_secret is not None
    assert confidential.osparams_private["pw"].reveal() == PASSWORD
    assert confidential.osparams_secret["token"].reveal() == TOKEN


def test_printing_an_opcode_hides_values(
    confidential: OpInstanceCreate, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("test").warning("%s %r", confidential, confidential.osparams_secret)
    texts = [repr(confidential), str(confidential), f"{confidential.osparams_private}", caplog.text]
    for text in texts:
        assert "<redacted>" in text
        assert PASSWORD not in text
        assert TOKEN not in text


def test_a_submission_carries_everything(confidential: OpInstanceCreate) -> None:
    written = wire.to_wire(confidential)
    assert written["osparams_private"] == {"pw": PASSWORD}
    assert written["osparams_secret"] == {"token": TOKEN}
    assert wire.from_wire(written) == confidential


def test_a_job_file_holds_private_but_no_secret_values(confidential: OpInstanceCreate) -> None:
    written = wire.to_stored_form(confidential)
    assert written["osparams_private"] == {"pw": PASSWORD}
    assert written["osparams_secret"] == {"token": "<redacted>"}


def test_a_log_holds_neither(confidential: OpInstanceCreate) -> None:
    written = wire.to_wire(confidential, redact=True)
    assert written["osparams_private"] == {"pw": "<redacted>"}
    assert written["osparams_secret"] == {"token": "<redacted>"}


def test_members_of_an_allocation_are_hidden_too(confidential: OpInstanceCreate) -> None:
    op = OpInstanceMultiAlloc(instances=[confidential])
    assert TOKEN not in jsonio.dumps(wire.to_stored_form(op))
    assert PASSWORD not in jsonio.dumps(wire.to_wire(op, redact=True))
    assert TOKEN in jsonio.dumps(wire.to_wire(op))


def test_parameters_of_several_oses_are_hidden() -> None:
    op = wire.decode(OpClusterSetParams, {"osparams_private_cluster": {"debian": {"pw": PASSWORD}}})
    assert PASSWORD not in repr(op)
    assert PASSWORD not in jsonio.dumps(wire.to_wire(op, redact=True))
    assert wire.to_stored_form(op)["osparams_private_cluster"] == {"debian": {"pw": PASSWORD}}


def test_secrets_that_a_restart_lost_are_named(confidential: OpInstanceCreate) -> None:
    assert wire.find_lost_secrets(confidential) == []
    restored = wire.from_wire(wire.to_stored_form(confidential))
    assert wire.find_lost_secrets(restored) == ["osparams_secret[token]"]
    several = OpInstanceMultiAlloc(instances=[create(), wire.decode(OpInstanceCreate, CREATE)])
    assert wire.find_lost_secrets(several) == []
    several.instances.append(restored if isinstance(restored, OpInstanceCreate) else create())
    assert wire.find_lost_secrets(several) == ["instances[2].osparams_secret[token]"]


def test_hidden_values_can_be_compared_and_copied() -> None:
    op = wire.decode(OpInstanceReinstall, {"instance_name": "w", "osparams_secret": {"a": [1]}})
    assert copy.deepcopy(op) == op
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != Private("a")


def test_a_hidden_value_does_not_get_into_json_by_accident() -> None:
    with pytest.raises(TypeError):
        jsonio.dumps({"token": Secret(TOKEN)})


# Names for people


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (create(), "INSTANCE_CREATE(web1)"),
        (OpTestDelay(duration=0.2), "TEST_DELAY(200000000 ns)"),
        (OpTestDelay(duration=1), "TEST_DELAY(1000000000 ns)"),
        (OpClusterVerify(), "CLUSTER_VERIFY"),
        (wire.from_wire({"OP_ID": "OP_TAGS_GET", "kind": "cluster"}), "TAGS_GET(None)"),
        (wire.from_wire({"OP_ID": "OP_QUERY_FIELDS", "what": "os"}), "QUERY_FIELDS(os)"),
        (
            wire.from_wire(
                {"OP_ID": "OP_TEST_ALLOCATOR", "direction": "in", "mode": "relocate", "name": "x"}
            ),
            "TEST_ALLOCATOR(None)",
        ),
        (wire.from_wire({"OP_ID": "OP_NODE_REMOVE", "node_name": "node1"}), "NODE_REMOVE(node1)"),
        (wire.from_wire({"OP_ID": "OP_GROUP_REMOVE", "group_name": "g"}), "GROUP_REMOVE(g)"),
    ],
)
def test_summaries(op: OpCode, text: str) -> None:
    assert summary(op) == text


def test_a_list_in_a_summary_is_joined_by_commas() -> None:
    class OpShown(OpOobCommand, tag="OP_SHOWN", kw_only=True):
        summary_field = "node_names"

    op = wire.decode(OpShown, {"command": "health", "node_names": ["node1", "node2"]})
    assert summary(op) == "SHOWN(node1,node2)"


def test_source_of_the_reason_entry() -> None:
    assert reason_source(OpTestDelay(duration=1)) == "gnt:opcode:test_delay"
    assert reason_source(OpInstanceStartup(instance_name="x")) == "gnt:opcode:instance_startup"


def test_opcodes_made_in_code_equal_those_read() -> None:
    made = OpInstanceCreate(
        instance_name="web1",
        disks=[DiskParams(size=1024)],
        nics=[NicParams()],
        mode=InstCreateMode.CREATE,
    )
    assert made == create()
    assert made.op_id == "OP_INSTANCE_CREATE"
    assert OpTagsGet.__struct_config__.tag == "OP_TAGS_GET"
    assert not OpTestDummy.exclusive_bgl
    assert OpTestAllocator.exclusive_bgl
