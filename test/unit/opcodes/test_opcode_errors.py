"""What a user is told about an opcode that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.opcodes import wire

CREATE = {"instance_name": "web1", "disks": [], "nics": [], "mode": "create"}
REQUIRED: dict[str, dict[str, Any]] = {
    "OP_INSTANCE_CREATE": CREATE,
    "OP_INSTANCE_SET_PARAMS": {"instance_name": "web1"},
    "OP_INSTANCE_RECREATE_DISKS": {"instance_name": "web1"},
    "OP_INSTANCE_GROW_DISK": {"instance_name": "web1", "disk": 0, "amount": 1},
    "OP_NETWORK_ADD": {"network_name": "net", "network": "192.0.2.0/24"},
    "OP_NETWORK_SET_PARAMS": {"network_name": "net"},
    "OP_TEST_DELAY": {"duration": 1},
    "OP_BACKUP_EXPORT": {"instance_name": "web1", "target_node": "node1"},
}


def refusal(op_id: str, **given: Any) -> str:
    """Text of the refusal; without the opcode, which it must start with."""
    with pytest.raises(errors.OpPrereqError) as caught:
        wire.from_wire({"OP_ID": op_id, **REQUIRED.get(op_id, {}), **given})
    text, code = caught.value.args
    assert code == "wrong_input"
    assert text.startswith(f"{op_id}: ")
    return str(text).removeprefix(f"{op_id}: ")


SIZE = "expected a size in MiB, or text with a unit such as 20G"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"disks": [{"size": "20X"}]}, f"parameter disks[0].size: {SIZE}, got '20X'"),
        ({"disks": [{}, {"size": -1}]}, f"parameter disks[1].size: {SIZE}, got -1"),
        ({"disks": [{"size": "9" * 400}]}, f"parameter disks[0].size: {SIZE}, got a text of"),
        ({"disks": [{"mode": "rx"}]}, "disks[0].mode: expected one of ro, rw or null, got 'rx'"),
        ({"disks": [3]}, "parameter disks[0]: expected an object with disk parameters, got 3"),
        ({"disks": [{"": 1}]}, "parameter disks[0]: expected non-empty texts as names"),
        ({"disks": {}}, "parameter disks: expected a list (each item an object), got an object"),
        ({"nics": [{"ipp": "x"}]}, "parameter nics[0]: unknown key 'ipp'; known keys are bridge,"),
        ({"nics": [{}, {"ip": 1}]}, "parameter nics[1].ip: expected text or null, got 1"),
        ({"mode": "creat"}, "import, remote-import, got 'creat' (did you mean create?)"),
        ({"hypervisor": "kvmm"}, "xen-pvm or null, got 'kvmm' (did you mean kvm?)"),
        ({"start": "yes"}, "parameter start: expected true or false, got 'yes'"),
        ({"start": None}, "parameter start: expected true or false, got null"),
        ({"tags": [""]}, "parameter tags[0]: expected a non-empty text, got ''"),
        ({"tags": "a"}, "expected a list (each item a non-empty text), got 'a'"),
        ({"hvparams": []}, "parameter hvparams: expected an object, got an empty list"),
        ({"priority": 5}, "parameter priority: expected one of -10, 0, 10, got 5"),
        ({"debug_level": -1}, "debug_level: expected an integer of at least 0 or null, got -1"),
        ({"depends": [[1]]}, "parameter depends[0]: expected a list of a job id and a list"),
        ({"depends": [["x", []]]}, "parameter depends[0][0]: expected a job id, or a negative"),
        ({"depends": [[True, []]]}, "parameter depends[0][0]: expected a job id, or a negative"),
        (
            {"depends": [[1, ["done"]]]},
            "depends[0][1][0]: expected one of canceled, error, success, got 'done'",
        ),
        ({"reason": [["a"]]}, "parameter reason[0]: expected a list of 3 items (text, text, an"),
    ],
)
def test_bad_values_of_a_creation(given: dict[str, Any], text: str) -> None:
    assert text in refusal("OP_INSTANCE_CREATE", **given)


@pytest.mark.parametrize(
    ("op_id", "given", "text"),
    [
        (
            "OP_INSTANCE_SET_PARAMS",
            {"nics": [["added", 0, {}]]},
            "nics[0][0]: expected one of add, attach, detach, modify, remove, got 'added'",
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"nics": [["modify", {}]]},
            "nics[0][0]: expected an index or one of add, attach, detach, remove, got 'modify'",
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"nics": [["add", "", {}]]},
            "parameter nics[0][1]: expected an index, a name or a uuid, got ''",
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"nics": [["add"]]},
            "expected a list of action, index or name, and parameters, got a list of 1 item",
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"disks": [["add", -1, {"size": True}]]},
            f"parameter disks[0][2].size: {SIZE}, got true",
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"runtime_mem": 0},
            "parameter runtime_mem: expected an integer above 0 or null, got 0",
        ),
        (
            "OP_INSTANCE_RECREATE_DISKS",
            {"disks": [-1]},
            "parameter disks[0]: expected a disk index (0 or above), got -1",
        ),
        (
            "OP_INSTANCE_RECREATE_DISKS",
            {"disks": [[0, {"size": []}]]},
            f"parameter disks[0][1].size: {SIZE}, got an empty list",
        ),
        (
            "OP_INSTANCE_RECREATE_DISKS",
            {"disks": [[0, {}, 1]]},
            "parameter disks[0]: expected a disk index, or a list of index and disk parameters",
        ),
        ("OP_INSTANCE_GROW_DISK", {"disk": 16}, "disk: expected an integer from 0 to 15, got 16"),
        ("OP_TEST_DELAY", {"duration": "5"}, "duration: expected a number up to 1e+15, got '5'"),
        ("OP_TEST_DELAY", {"duration": float("inf")}, "expected a number up to 1e+15, got inf"),
        ("OP_TEST_DELAY", {"duration": float("nan")}, "expected a number up to 1e+15, got nan"),
        ("OP_BACKUP_EXPORT", {"target_node": ""}, "expected a non-empty text or a list, got ''"),
        (
            "OP_INSTANCE_MULTI_ALLOC",
            {"instances": [CREATE, CREATE | {"mode": "x"}]},
            "parameter instances[1].mode: expected one of create, import, remote-import, got 'x'",
        ),
        (
            "OP_INSTANCE_MULTI_ALLOC",
            {"instances": [CREATE | {"modee": "x"}]},
            "parameter instances[0]: unknown key 'modee' (did you mean mode?)",
        ),
        (
            "OP_INSTANCE_MULTI_ALLOC",
            {"instances": [{}]},
            "parameter instances[0].instance_name is missing",
        ),
        (
            "OP_INSTANCE_MULTI_ALLOC",
            {"instances": [CREATE | {"OP_ID": "OP_TAGS_GET"}]},
            "parameter instances[0].OP_ID: invalid value 'OP_TAGS_GET'",
        ),
        (
            "OP_CLUSTER_SET_PARAMS",
            {"uid_pool": [[1, 2, 3]]},
            "uid_pool[0]: expected a list of 2 items (an integer, an integer), got a list of 3",
        ),
        (
            "OP_CLUSTER_SET_PARAMS",
            {"diskparams": {"drdb": {}}},
            "parameter diskparams: expected as a key one of blockdev, diskless, drbd,",
        ),
        (
            "OP_CLUSTER_SET_PARAMS",
            {"hvparams": {"kvm": {}, "fake": 3}},
            "parameter hvparams[fake]: expected an object, got 3",
        ),
        (
            "OP_CLUSTER_VERIFY",
            {"ignore_errors": ["ENODESHS"]},
            "expected a word of CVErrorCode, got 'ENODESHS' (did you mean ENODESSH?)",
        ),
        ("OP_NETWORK_ADD", {"network": "192.0.2.0"}, "IPv4 network such as 192.0.2.0/24, got"),
        ("OP_NETWORK_ADD", {"network": "192.0.2.0/33"}, "IPv4 network such as 192.0.2.0/24, got"),
        ("OP_NETWORK_ADD", {"network": 7}, "IPv4 network such as 192.0.2.0/24, got 7"),
        ("OP_NETWORK_ADD", {"gateway": "none"}, "IPv4 address such as 192.0.2.1, got 'none'"),
        ("OP_NETWORK_ADD", {"gateway6": "::g"}, "IPv6 address such as 2001:db8::1, got '::g'"),
        ("OP_NETWORK_ADD", {"network6": "::"}, "IPv6 network such as 2001:db8::/64, got '::'"),
        (
            "OP_NETWORK_SET_PARAMS",
            {"gateway": "off"},
            "an IPv4 address such as 192.0.2.1, or none to remove it, got 'off'",
        ),
    ],
)
def test_bad_values_elsewhere(op_id: str, given: dict[str, Any], text: str) -> None:
    assert text in refusal(op_id, **given)


def test_all_unknown_and_missing_parameters_are_named_at_once() -> None:
    text = refusal("OP_INSTANCE_RENAME", instance_nam="web1", foo=1)
    assert "unknown parameter 'instance_nam' (did you mean instance_name?)" in text
    assert "unknown parameter 'foo'" in text
    assert "parameter instance_name is missing (expected text)" in text
    assert "parameter new_name is missing (expected a non-empty text)" in text


@pytest.mark.parametrize(
    ("op_id", "given"),
    [
        ("OP_INSTANCE_CREATE", {"osparams_secret": "hunter2"}),
        ("OP_INSTANCE_CREATE", {"osparams_private": ["hunter2"]}),
        ("OP_INSTANCE_CREATE", {"osparams_secrets": {"hunter": "hunter2"}}),
        ("OP_CLUSTER_SET_PARAMS", {"osparams_private_cluster": {"debian": "hunter2"}}),
        ("OP_INSTANCE_MULTI_ALLOC", {"instances": [CREATE | {"osparams_secret": "hunter2"}]}),
    ],
)
def test_a_refusal_does_not_show_hidden_values(op_id: str, given: dict[str, Any]) -> None:
    text = refusal(op_id, **given)
    assert "osparams" in text
    assert "hunter2" not in text


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(refusal("OP_INSTANCE_CREATE", mode="x" * 100_000)) < 300


@pytest.mark.parametrize("raw", [None, [], "OP_CLUSTER_QUERY", {}, {"OP_ID": 3}, {"OP_ID": None}])
def test_what_is_no_opcode_at_all(raw: Any) -> None:
    with pytest.raises(errors.OpPrereqError, match="OP_ID") as caught:
        wire.from_wire(raw)
    assert caught.value.args[1] == "wrong_input"


def test_text_that_looks_like_a_place_does_not_confuse() -> None:
    text = refusal("OP_INSTANCE_CREATE", mode="x - at `$.disks[0]`")
    assert text.startswith("parameter mode: expected one of create, import, remote-import")


def test_an_unknown_opcode_is_an_error_of_its_own() -> None:
    with pytest.raises(errors.OpCodeUnknown, match="did you mean OP_CLUSTER_QUERY"):
        wire.from_wire({"OP_ID": "OP_CLUSTER_QUERRY"})
