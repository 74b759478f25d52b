"""Somebody with limits reaches only own objects, and no parameter that is not marked as safe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from config_samples import data, disk, instance, node
from examples import examples
from hypothesis import event, given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import jsonio
from ganeti.config import limits
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import marks
from ganeti.model.config import Config
from ganeti.model.enums import HypervisorName
from ganeti.model.group import NodeGroup
from ganeti.model.limits import Limits
from ganeti.model.marks import Mark
from ganeti.model.params import BackendParams
from ganeti.opcodes import describe, registry, wire
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskKeys, NicParams

RECORDED = Path(__file__).parents[2] / "recorded" / "marks.json"
SIDE, MINE = Limits(name="token:t", group="side"), Limits(name="token:t", tag="mine")
BOTH = Limits(name="token:t", group="side", tag="mine")
D1, D3, LOOSE, MARKED, BOUND = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(5))


def cluster() -> Config:
    """web1 and web2 are in the group side, web1 and web3 have the tag."""
    kvm = HypervisorName.KVM
    guests = (
        instance(1, primary_node="node-2", tags=("mine",), disks=(D1, BOUND), hypervisor=kvm),
        instance(2, primary_node="node-2", hypervisor=kvm),
        instance(3, tags=("mine",), disks=(D3,), hypervisor=kvm),
    )
    disks = (
        disk(D1, "web1", nodes=("node-2",)),
        disk(D3, "web3"),
        disk(BOUND, "web1", nodes=("node-2",), tags=("mine",)),
        disk(LOOSE, "", nodes=("node-2",), name="loose"),
        disk(MARKED, "", tags=("mine",)),
    )
    return Config(
        data(
            nodes={item.uuid: item for item in (node(1), node(2, group="group-2"))},
            nodegroups={
                "group-1": NodeGroup(uuid="group-1", name="default"),
                "group-2": NodeGroup(uuid="group-2", name="side"),
            },
            instances={item.uuid: item for item in guests},
            disks={item.uuid: item for item in disks},
        )
    )


CONFIG = cluster()


def allowed(mine: Limits, raw: dict[str, Any]) -> bool:
    try:
        limits.check(CONFIG, mine, wire.from_wire(raw))
    except errors.AccessError:
        return False
    return True


def make_instance_op(verb: str, name: str, **more: Any) -> dict[str, Any]:
    return {"OP_ID": f"OP_INSTANCE_{verb}", "instance_name": name, **more}


def modified(*changes: Any) -> dict[str, Any]:
    return make_instance_op("SET_PARAMS", "web1.example.com", disks=list(changes))


def creation(**more: Any) -> dict[str, Any]:
    own = {"mode": "create", "disks": [], "nics": [], "disk_template": "diskless"}
    return make_instance_op("CREATE", "web9.example.com", **{**own, **more})


def make_disk_op(verb: str, uuid: str, **more: Any) -> dict[str, Any]:
    return {"OP_ID": f"OP_DISK_{verb}", "disk_name": uuid, **more}


def new_disk(**more: Any) -> dict[str, Any]:
    return {"OP_ID": "OP_DISK_CREATE", "disk_template": "file", "disk": {"size": 4}, **more}


def tagged(verb: str, kind: str, name: str, *tags: str) -> dict[str, Any]:
    return {"OP_ID": f"OP_TAGS_{verb}", "kind": kind, "name": name, "tags": list(tags)}


@pytest.mark.parametrize(
    ("mine", "raw", "expected"),
    [
        (SIDE, make_instance_op("STARTUP", "web2.example.com"), True),
        (SIDE, make_instance_op("STARTUP", "inst-2"), True),
        (SIDE, make_instance_op("STARTUP", "web3.example.com"), False),
        (MINE, make_instance_op("STARTUP", "web2.example.com"), False),
        (MINE, make_instance_op("STARTUP", "nosuch"), False),
        (BOTH, make_instance_op("STARTUP", "web1.example.com"), True),
        (BOTH, make_instance_op("STARTUP", "web3.example.com"), False),
        (MINE, make_instance_op("STARTUP", "web1.example.com", instance_uuid="inst-2"), False),
        (MINE, make_instance_op("STARTUP", "web1.example.com", beparams={"maxmem": 9999}), False),
        (MINE, {"OP_ID": "OP_INSTANCE_QUERY_DATA"}, False),
        (SIDE, make_instance_op("MIGRATE", "web1.example.com", target_node="node1"), False),
        (SIDE, make_instance_op("MIGRATE", "web1.example.com", target_node="node2"), True),
        (SIDE, {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node2"}, True),
        (SIDE, {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node1"}, False),
        (MINE, {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node2"}, False),
        (SIDE, {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "node2", "drained": True}, True),
        (
            SIDE,
            {
                "OP_ID": "OP_NODE_SET_PARAMS",
                "node_name": "node2",
                "ndparams": {"oob_program": "/tmp/x"},
            },
            False,
        ),
        (
            SIDE,
            {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "node2", "master_candidate": True},
            False,
        ),
        (
            SIDE,
            {"OP_ID": "OP_GROUP_SET_PARAMS", "group_name": "side", "alloc_policy": "preferred"},
            True,
        ),
        (
            SIDE,
            {
                "OP_ID": "OP_GROUP_SET_PARAMS",
                "group_name": "side",
                "diskparams": {"drbd": {"net-custom": "x"}},
            },
            False,
        ),
        (SIDE, {"OP_ID": "OP_GROUP_SET_PARAMS", "group_name": "default"}, False),
        (SIDE, {"OP_ID": "OP_CLUSTER_DESTROY"}, False),
        (SIDE, modified(["detach", 0, {}]), True),
        (SIDE, modified(["detach", 0, {"provider": "x"}]), False),
        (MINE, tagged("SET", "instance", "web3.example.com", "new"), True),
        (MINE, tagged("SET", "cluster", ""), False),
        (MINE, tagged("SET", "node", "node2"), False),
        (SIDE, tagged("SET", "node", "node2"), True),
        (MINE, tagged("SET", "disk", LOOSE), False),
        (MINE, tagged("DEL", "instance", "web3.example.com", "new"), True),
        (MINE, tagged("DEL", "instance", "web3.example.com", "mine"), False),
        (MINE, creation(tags=["mine"], disks=[{"size": 1}]), True),
        (MINE, creation(tags=["mine"], disks=[{"adopt": "vm-of-others"}]), False),
        (MINE, creation(tags=["other"]), False),
        (MINE, creation(tags=["mine"], mode="import"), False),
        (SIDE, creation(group_name="side"), True),
        (SIDE, creation(group_name="default"), False),
        (SIDE, creation(pnode="node2", snode="node1"), False),
        (SIDE, creation(), False),
        (SIDE, creation(forthcoming=True, group_name="side"), False),
        (SIDE, creation(forthcoming=True, pnode="node2"), True),
        (
            MINE,
            make_instance_op(
                "CREATE",
                "web2.example.com",
                mode="create",
                disks=[],
                nics=[],
                commit=True,
                tags=["mine"],
            ),
            False,
        ),
        (
            MINE,
            make_instance_op(
                "CREATE", "web1.example.com", mode="create", disks=[], nics=[], commit=True
            ),
            True,
        ),
        (MINE, modified(["attach", -1, {"uuid": MARKED}]), True),
        (MINE, modified(["attach", {"uuid": LOOSE}]), False),
        (MINE, modified(["attach", 0, {"name": "loose"}]), False),
        (MINE, modified(["attach", 0, {}]), False),
        (MINE, modified(["attach", 0, {"uuid": MARKED, "path": "/dev/sda"}]), False),
        (SIDE, modified(["attach", 0, {"uuid": LOOSE}]), True),
        (MINE, modified(["add", -1, {"size": 4}], ["remove", 0, {}]), True),
        (MINE, modified(["add", -1, {"size": 4, "vg": "other"}]), False),
        (MINE, modified(["detach", 0, {}]), False),
        (MINE, modified(["detach", D1, {}]), False),
        (MINE, modified(["detach", BOUND, {}]), True),
        (MINE, make_disk_op("REMOVE", MARKED), True),
        (MINE, make_disk_op("REMOVE", LOOSE), False),
        (MINE, make_disk_op("GROW", D1, amount=4), True),
        (MINE, make_disk_op("GROW", "web1.example.com/0", amount=4), False),
        (MINE, make_disk_op("ATTACH", MARKED, instance_name="web1.example.com"), True),
        (MINE, make_disk_op("ATTACH", MARKED, instance_name="web2.example.com"), False),
        (MINE, make_disk_op("DETACH", D1), False),
        (MINE, make_disk_op("DETACH", BOUND), True),
        (MINE, new_disk(tags=["mine"]), True),
        (MINE, new_disk(), False),
        (MINE, new_disk(tags=["mine"], file_storage_dir="../../etc"), False),
        (MINE, new_disk(tags=["mine"], disk={"size": 4, "name": "../../x"}), False),
        (SIDE, new_disk(nodes=["node2"]), True),
        (SIDE, new_disk(nodes=["node1"]), False),
        (SIDE, new_disk(), False),
    ],
)
def test_which_objects_may_be_changed(mine: Limits, raw: dict[str, Any], expected: bool) -> None:
    assert allowed(mine, raw) is expected


WEB1, WEB3 = "web1.example.com", "web3.example.com"


@pytest.mark.parametrize(
    ("mine", "raw", "text"),
    [
        (SIDE, {"OP_ID": "OP_CLUSTER_DESTROY"}, "do OP_CLUSTER_DESTROY"),
        (
            MINE,
            {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node2"},
            "do OP_NODE_POWERCYCLE",
        ),
        (
            MINE,
            {"OP_ID": "OP_INSTANCE_QUERY_DATA"},
            "do OP_INSTANCE_QUERY_DATA without naming one instance",
        ),
        (SIDE, new_disk(), "create disks without naming their nodes"),
        (MINE, new_disk(), "create anything without the tag 'mine'"),
        (MINE, make_instance_op("STARTUP", "nosuch"), "do anything with instance 'nosuch'"),
        (
            SIDE,
            make_instance_op("MIGRATE", WEB1, target_node="node1"),
            "do anything with node 'node1'",
        ),
        (SIDE, creation(group_name="default"), "do anything with group 'default'"),
        (MINE, make_disk_op("REMOVE", LOOSE), f"do anything with disk '{LOOSE}'"),
        (
            SIDE,
            make_instance_op("SET_PARAMS", WEB1, osparams={"a": "b"}),
            "set the parameter 'osparams'",
        ),
        (
            MINE,
            make_instance_op("STARTUP", WEB1, hvparams={"kvm_extra": "x"}),
            "set the hypervisor parameter 'kvm_extra'",
        ),
        (
            MINE,
            make_instance_op("SET_PARAMS", WEB1, beparams={"unknown": 1}),
            "set the backend parameter 'unknown'",
        ),
        (MINE, modified(["add", -1, {"size": 4, "vg": "x"}]), "set the disk parameter 'vg'"),
        (
            MINE,
            make_instance_op("SET_PARAMS", WEB1, nics=[["add", -1, {"link": "x"}]]),
            "set the key in nics 'link'",
        ),
        (MINE, modified(["attach", 0, {}]), "attach a disk without its uuid"),
        (MINE, modified(["detach", 0, {}]), "detach a disk that is not named by its uuid"),
        (
            MINE,
            modified(["detach", D1, {}]),
            "detach a disk that does not have the tag 'mine' itself",
        ),
        (
            MINE,
            make_disk_op("DETACH", D1),
            "detach a disk that does not have the tag 'mine' itself",
        ),
        (MINE, creation(tags=["mine"], mode="import"), "import instances"),
        (
            SIDE,
            creation(),
            "create instances without naming this group or one of its nodes",
        ),
        (MINE, tagged("SET", "cluster", ""), "change tags of the cluster"),
        (MINE, tagged("SET", "node", "node2"), "change tags of the node"),
        (SIDE, tagged("SET", "nodegroup", "side"), "change tags of the nodegroup"),
        (MINE, tagged("DEL", "instance", WEB3, "mine"), "remove the tag 'mine'"),
    ],
)
def test_a_refusal_says_who_may_not_do_what(mine: Limits, raw: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.AccessError) as caught:
        limits.check(CONFIG, mine, wire.from_wire(raw))
    assert errors.text(caught.value) == f"{mine} and may not {text}"


def test_the_scope_has_what_fits_the_group_and_the_tag() -> None:
    found = {
        str(mine): (
            [item.name[:4] for item in CONFIG.instances.values() if scope.has_instance(item)],
            [uuid[-1] for uuid, item in CONFIG.disks.items() if scope.has_disk(item)],
            [name for name in ("node1", "node2", "node-2", "nosuch") if scope.has(Mark.NODE, name)],
            [name for name in ("default", "side", "nosuch") if scope.has(Mark.GROUP, name)],
        )
        for mine in (SIDE, MINE, BOTH)
        for scope in [limits.Scope(CONFIG, mine)]
    }
    assert found == {
        str(SIDE): (["web1", "web2"], ["0", "4", "2"], ["node2", "node-2"], ["side"]),
        str(MINE): (
            ["web1", "web3"],
            ["0", "1", "4", "3"],
            ["node1", "node2", "node-2"],
            ["default", "side"],
        ),
        str(BOTH): (["web1"], ["0", "4"], ["node2", "node-2"], ["side"]),
    }


def test_a_disk_on_nodes_of_two_groups_is_in_none() -> None:
    wide = disk("wide", "", nodes=("node-1", "node-2"))
    gone = disk("gone", "", nodes=("node-2", "node-9"))
    scope = limits.Scope(CONFIG, SIDE)
    assert not scope.has_disk(wide)
    assert scope.has_disk(gone)
    assert not scope.has_disk(disk("nowhere", "", nodes=()))
    assert not scope.has_instance(instance(9, primary_node="node-9"))


@pytest.mark.parametrize(
    "given_here",
    [
        {"hvparams": {"kvm_extra": "-netdev tap,script=/tmp/x"}},
        {"hvparams": {"cdrom_image_path": "/srv/other"}},
        {"hvparams": {"boot_order": "disk", "kernel_path": "default"}},
        {"beparams": {"unknown": 1}},
        {"nics": [["add", -1, {"link": "br-of-others"}]]},
        {"nics": [["modify", 0, {"network": "net-1", "ip": "pool"}]]},
        {"osparams": {"script": "x"}},
        {"osparams_private": {"script": "x"}},
        {"file_storage_dir": "/etc"},
        {"file_driver": "blktap"},
        {"ext_params": {"provider": "x"}},
        {"disk_template": "ext"},
        {"iallocator": "x"},
        {"ignore_ipolicy": True},
        {"runtime_mem": 100000, "force": True},
        {"pnode": "node2"},
    ],
)
def test_what_reaches_a_node_is_refused(given_here: dict[str, Any]) -> None:
    assert not allowed(MINE, make_instance_op("SET_PARAMS", "web1.example.com", **given_here))


def test_what_is_harmless_is_taken() -> None:
    assert allowed(
        MINE, make_instance_op("STARTUP", "web1.example.com", hvparams={"boot_order": "network"})
    )
    more = {
        "hvparams": {"acpi": "default"},
        "beparams": {"memory": 256, "vcpus": 2},
        "nics": [["add", -1, {}]],
        "offline": True,
    }
    assert allowed(MINE, make_instance_op("SET_PARAMS", "web1.example.com", **more))


def test_a_safe_parameter_is_safe_for_values_of_its_type_only() -> None:
    raw = make_instance_op(
        "STARTUP", "web1.example.com", hvparams={"boot_order": "disk,menu=on,splash=/etc"}
    )
    with pytest.raises(errors.GanetiError, match="boot_order"):
        limits.check(CONFIG, MINE, wire.from_wire(raw))


@pytest.mark.parametrize("verb", ["STARTUP", "SET_PARAMS", "CREATE"])
def test_an_instance_of_others_cannot_be_told_from_none(verb: str) -> None:
    """Not even by the parameters that its hypervisor knows."""

    def answer(name: str) -> str:
        more = creation(tags=["mine"]) if verb == "CREATE" else {}
        raw = {**more, **make_instance_op(verb, name, hvparams={"boot_order": "network"})}
        with pytest.raises(errors.AccessError) as caught:
            limits.check(CONFIG, MINE, wire.from_wire(raw))
        return errors.text(caught.value).replace(name, "NAME")

    assert answer("web2.example.com") == answer("web8.example.com")


# every parameter there is ---------------------------------------------------------------------


def current() -> dict[str, Any]:
    """All marks; what is not here is closed to those with limits."""
    structs: dict[str, Any] = {
        **{f"hypervisor {n}": HYPERVISORS.get(n).params for n in HYPERVISORS.names()},
        "backend": BackendParams,
        "disk": DiskKeys,
        "NIC": NicParams,
        "OP_*": OpCode,
        **{op_id: cls for op_id, cls in registry.all_opcodes().items() if cls.within is not None},
    }
    common = {mark: marks.names(OpCode, mark) for mark in Mark}
    return {
        title: {
            mark.name: names
            for mark in Mark
            if (
                names := sorted(
                    marks.names(cls, mark)
                    - (
                        common[mark]
                        if issubclass(cls, OpCode) and cls is not OpCode
                        else frozenset()
                    )
                )
            )
        }
        for title, cls in structs.items()
    }


def test_every_mark_is_as_recorded() -> None:
    """After a wanted change: ``UPDATE_RECORDED=1 pytest test/unit/config``, then read it."""
    if os.environ.get("UPDATE_RECORDED"):
        RECORDED.write_text(jsonio.format_pretty(current()) + "\n", encoding="utf-8")
    assert current() == jsonio.loads(RECORDED.read_bytes())


def test_safe_hypervisor_parameters_are_no_free_text() -> None:
    free = []
    for name in HYPERVISORS.names():
        cls = HYPERVISORS.get(name).params
        hints = {info.name: describe.peel(info.type)[0] for info in msgspec.structs.fields(cls)}
        for parameter in marks.names(cls, Mark.SAFE):
            kind = hints[parameter]
            if not (kind in (bool, int) or get_origin(kind) is Literal):
                free.append((name, parameter, get_args(kind)))
    assert free == []


# whatever is asked ----------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "",
        "x",
        "default",
        "/etc/passwd",
        "../x",
        "http://x/",
        "web1.example.com",
        "inst-2",
        D1,
        LOOSE,
        "node2",
        "side",
        "mine",
        "a;reboot",
        0,
        1,
        True,
        None,
    ]
)
DRIVERS = [HYPERVISORS.get(name).params for name in HYPERVISORS.names()]
HYPERVISOR_KEYS = {info.name for cls in DRIVERS for info in msgspec.structs.fields(cls)}
SAFE_KEYS = {"memory"}.union(
    *(marks.names(cls, Mark.SAFE) for cls in (DiskKeys, BackendParams, *DRIVERS))
)
#: How a disk is named that is attached.
NAMING = {"uuid", "name"}
KEYS = st.sampled_from(sorted(SAFE_KEYS)) | st.sampled_from(
    sorted(
        HYPERVISOR_KEYS
        | NAMING
        | {*DiskKeys.__struct_fields__, *NicParams.__struct_fields__, "path"}
    )
)
DICTS = st.dictionaries(KEYS, st.sampled_from([1, True, "default"]) | WORDS, max_size=2)
CHANGES = st.tuples(
    st.sampled_from(["add", "modify", "remove", "attach", "detach"]),
    st.sampled_from([0, -1, D1, BOUND]),
    DICTS,
).map(list)
ANY = WORDS | DICTS | st.lists(WORDS | DICTS | CHANGES, max_size=3)
MOST = [
    make_instance_op("STARTUP", "web1.example.com"),
    make_instance_op("SET_PARAMS", "web1.example.com"),
    creation(tags=["mine"], pnode="node2"),
    make_instance_op("RECREATE_DISKS", "web1.example.com"),
    make_instance_op("REINSTALL", "web1.example.com"),
    new_disk(tags=["mine"], nodes=["node2"]),
    make_instance_op("REPLACE_DISKS", "web1.example.com", mode="replace_auto"),
    make_instance_op("REMOVE", "web1.example.com"),
    make_instance_op("MIGRATE", "web1.example.com"),
    make_disk_op("GROW", D1, amount=4),
]
ALL = [{"OP_ID": op_id} for op_id in registry.all_opcodes()]


def fitting(info: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    """Values of which many have the type of a field."""
    kind = describe.type_text(info.type)
    if kind.startswith("bool"):
        return st.booleans() | ANY
    if kind.startswith(("uint", "int", "pint")):
        return st.integers(0, 9) | ANY
    if kind.startswith("["):
        item = CHANGES if "Ddm" in kind else DICTS if "Params" in kind else WORDS
        return st.lists(item, max_size=2) | ANY
    return (DICTS if kind.startswith("{") else WORDS) | ANY


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    raw = dict(draw(st.sampled_from(MOST) | st.sampled_from(ALL)))
    fields = msgspec.structs.fields(registry.find(raw["OP_ID"]))
    for info in draw(st.lists(st.sampled_from(fields), max_size=2)):
        raw[info.name] = draw(fitting(info))
    return raw


def keys_in(value: Any) -> set[str]:
    """All keys of objects anywhere in a value."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_in, value.values()))
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


@examples(200)
@given(requests(), st.sampled_from([SIDE, MINE, BOTH]))
def test_what_passes_has_only_marked_parameters(raw: dict[str, Any], mine: Limits) -> None:
    try:
        op = wire.from_wire(raw)
        limits.check(CONFIG, mine, op)
    except errors.GanetiError:
        return
    event("passes")
    cls = type(op)
    assert cls.within is not None
    defaults = {p.name: p.default for p in describe.parameters(cls) if not p.required}
    own = {
        name: value
        for name, value in wire.to_wire(op).items()
        if name != "OP_ID" and value is not None and value != defaults.get(name)
    }
    assert set(own) <= {name for mark in Mark for name in marks.names(cls, mark)}
    own.pop("depends", None)
    # The operation takes nothing but texts for these.
    for name in ("password_hash", "user_data", "vendor_data"):
        own.pop(name, None)
    assert keys_in(list(own.values())) <= SAFE_KEYS | NAMING


def test_each_hypervisor_parameter_without_a_mark_is_refused() -> None:
    for name in HYPERVISORS.names():
        cls = HYPERVISORS.get(name).params
        config = Config(
            msgspec.structs.replace(
                CONFIG.data,
                instances={"inst-1": instance(1, tags=("mine",), hypervisor=HypervisorName(name))},
            )
        )
        for info in msgspec.structs.fields(cls):
            raw = make_instance_op(
                "STARTUP", "web1.example.com", hvparams={info.name: info.default}
            )
            if info.name in marks.names(cls, Mark.SAFE):
                limits.check(config, MINE, wire.from_wire(raw))
            else:
                with pytest.raises(errors.AccessError, match=f"parameter '{info.name}'"):
                    limits.check(config, MINE, wire.from_wire(raw))
