"""What is shown of groups, networks, disks, nodes, images, storage providers and OSes."""

from __future__ import annotations

from typing import Any

import pytest
from recording_master import RecordingMaster, Run

NOW = 1_700_000_000.0


def strip_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def rows(*objects: dict[str, Any]) -> Any:
    """A classic query: the asked fields of the named objects, or of all."""

    def answer(args: dict[str, Any]) -> list[list[Any]]:
        names = args["names"]
        found = [item for item in objects if not names or item["name"] in names]
        return [[item.get(field) for field in args["fields"]] for item in found]

    return answer


# groups ------------------------------------------------------------------------------------


def group(name: str, **more: Any) -> dict[str, Any]:
    pair = {"min": {"memory-size": 128}, "max": {"memory-size": 32768}}
    policy = {"minmax": [pair], "disk-templates": ["drbd"], "vcpu-ratio": 4, "spindle-ratio": 32}
    return {
        "name": name,
        "uuid": f"uuid-{name}",
        "ndparams": {"ssh_port": 22, "oob_program": "/sbin/oob"},
        "custom_ndparams": {"oob_program": "/sbin/oob"},
        "diskparams": {"drbd": {"metavg": "xenvg"}},
        "custom_diskparams": {},
        "ipolicy": policy,
        "custom_ipolicy": {},
        "custom_beparams": {},
        **more,
    }


def test_what_a_group_inherits_is_marked(master: RecordingMaster, gnt: Run) -> None:
    own = {"vcpu-ratio": 2, "minmax": [{"min": {}, "max": {}}]}
    master.answers["QueryGroups"] = rows(
        group("default"), group("rack1", custom_ipolicy=own, custom_beparams={"ha": "failover"})
    )
    default, rack1 = gnt("gnt-group", "info").out.split("- Node group: rack1")
    for line in (
        "ssh_port: default (22)",
        "oob_program: /sbin/oob",
        "memory-size: default (32768)",
        "allowed disk templates: default (drbd)",
        "vcpu-ratio: default (4)",
    ):
        assert line in strip_lines(default)
    assert "Backend parameters:" not in strip_lines(default)
    for line in ("ha: failover", "memory-size: 32768", "spindle-ratio: default (32)"):
        assert line in strip_lines(rack1)
    assert "vcpu-ratio: 4" in strip_lines(rack1)


def test_a_group_that_does_not_exist(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryGroups"] = rows(group("default"))
    ran = gnt("gnt-group", "info", "defalt")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no node group 'defalt'" in ran.err
    assert "default" in ran.err
    assert "Node group: default" in gnt("gnt-group", "info", "default").out


def test_policies_of_groups_as_commands(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryGroups"] = rows(group("default"))
    assert gnt("gnt-group", "show-ispecs-cmd").out == "gnt-group add default\n"
    assert gnt("gnt-group", "show-ispecs-cmd", "--include-defaults").out == (
        "gnt-group add --ipolicy-bounds-specs min:memory-size=128/max:memory-size=32768"
        " --ipolicy-disk-templates drbd --ipolicy-spindle-ratio 32 --ipolicy-vcpu-ratio 4"
        " default\n"
    )


def test_lists_of_groups(master: RecordingMaster, gnt: Run) -> None:
    master.tables["group"] = [
        {
            "name": "default",
            "node_cnt": 2,
            "pinst_cnt": 0,
            "alloc_policy": "preferred",
            "ndparams": {"b": 1, "a": 2},
            "node_list": ["node1", "node2"],
        }
    ]
    ran = gnt("gnt-group", "list", "--no-headers", "--separator", "|", "-o", "+node_list")
    assert ran.out == "default|2|0|preferred|a=2, b=1|node1,node2\n"
    assert "alloc_policy" in gnt("gnt-group", "list-fields").out


# networks ----------------------------------------------------------------------------------


def network(**more: Any) -> dict[str, Any]:
    return {
        "name": "lan",
        "uuid": "uuid-lan",
        "serial_no": 3,
        "network": "192.0.2.0/25",
        "gateway": "192.0.2.1",
        "network6": None,
        "gateway6": None,
        "mac_prefix": None,
        "dns": ["192.0.2.3"],
        "mtu": 1400,
        "free_count": 64,
        "reserved_count": 64,
        "map": "X" * 64 + "." * 64,
        "external_reservations": "192.0.2.0, 192.0.2.127",
        "group_list": [["default", "bridged", "br0", ""]],
        "inst_list": ["web1"],
        **more,
    }


def test_everything_about_a_network(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryNetworks"] = rows(network())
    master.add_instance(
        "web1",
        **{"nic.networks": ["uuid-x", "uuid-lan"], "nic.ips": ["198.51.100.1", "192.0.2.9"]},
    )
    assert gnt("gnt-network", "info", "lan").out.splitlines() == [
        "Network name: lan",
        "UUID: uuid-lan",
        "Serial number: 3",
        "  Subnet: 192.0.2.0/25",
        "  Gateway: 192.0.2.1",
        "  IPv6 Subnet: None",
        "  IPv6 Gateway: None",
        "  Mac Prefix: None",
        "  Name servers: 192.0.2.3",
        "  MTU: 1400",
        "  Size: 128",
        "  Free: 64 (50.00%)",
        "  Usage map:",
        f"        0 {'X' * 64} 63",
        f"       64 {'.' * 64} 127",
        "          (X) used    (.) free",
        "  externally reserved IPs:",
        "    192.0.2.0, 192.0.2.127",
        "  connected to node groups:",
        "    default (mode: bridged, link: br0, vlan: )",
        "  used by 1 instances:",
        "    web1: 1:192.0.2.9",
    ]


def test_a_network_that_nobody_uses(master: RecordingMaster, gnt: Run) -> None:
    bare = network(dns=None, mtu=None, map=None, group_list=[], inst_list=[])
    master.answers["QueryNetworks"] = rows(bare)
    lines = gnt("gnt-network", "info").out.splitlines()
    assert lines[-2:] == ["  not connected to any node group", "  not used by any instances"]
    assert not any("Size" in line or "MTU" in line for line in lines)


def test_networks_for_programs(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryNetworks"] = rows(network(), network(name="web", inst_list=[]))
    master.add_instance("web1", **{"nic.networks": ["uuid-lan"], "nic.ips": ["192.0.2.9"]})
    text = gnt("gnt-network", "info", "--format", "json").out
    assert '"0": "192.0.2.9"' in text
    assert '"vlan": ""' in text
    assert '"Instances": {}' in text


def test_lists_of_networks(master: RecordingMaster, gnt: Run) -> None:
    row = dict.fromkeys(("name", "network", "gateway", "mac_prefix"), "x")
    connected = [["default", "bridged", "br0", ""], ["rack1", "routed", "", ""]]
    master.tables["network"] = [{**row, "group_list": connected, "tags": ["a", "b"]}]
    ran = gnt("gnt-network", "list", "--no-headers", "--separator", "|")
    assert ran.out == "x|x|x|x|default (bridged, br0, ), rack1 (routed, , )|a,b\n"
    assert "mac_prefix" in gnt("gnt-network", "list-fields").out


# disks -------------------------------------------------------------------------------------


def disk(**more: Any) -> dict[str, Any]:
    return {
        "uuid": "d-1",
        "name": "data",
        "size": 10240,
        "template": "drbd",
        "mode": "rw",
        "spindles": None,
        "max_iops": None,
        "max_bandwidth": None,
        "instance": None,
        "index": None,
        "nodes": [],
        "path": None,
        "volumes": None,
        "minors": None,
        "logical_id": ["a", 1],
        "params": None,
        "forthcoming": False,
        "tags": ["t"],
        "serial_no": 1,
        "ctime": NOW,
        "mtime": NOW,
        **more,
    }


def test_a_detached_disk(master: RecordingMaster, gnt: Run) -> None:
    master.tables["disk"] = [disk(), disk(uuid="d-2")]
    lines = strip_lines(gnt("gnt-disk", "info", "d-1").out)
    assert lines[0] == "- Disk: d-1"
    for line in ("Size: 10.0G", "Instance: none (detached)", "Nodes: all", "Logical ID: a/1"):
        assert line in lines
    assert "Forthcoming" not in " ".join(lines)
    assert len([line for line in strip_lines(gnt("gnt-disk", "info").out) if "- Disk" in line]) == 2


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"instance": "web1", "index": 0}, "Instance: web1, disk 0"),
        ({"nodes": ["node1", "node2"]}, "Nodes: node1, node2"),
        ({"path": "/srv/web1"}, "Path: /srv/web1"),
        ({"volumes": ["xenvg/a", "xenvg/b"]}, "Volumes: xenvg/a, xenvg/b"),
        ({"minors": [3, 4]}, "Minors: 3, 4"),
        ({"spindles": 2}, "Spindles: 2"),
        ({"max_iops": 500}, "Max IOPS: 500"),
        ({"max_bandwidth": 80}, "Max bandwidth: 80 MiB/s"),
        ({"params": {"pool": "ssd"}}, "pool: ssd"),
        ({"forthcoming": True}, 'Forthcoming: "yes: reserved, or its creation did not end"'),
    ],
)
def test_what_only_some_disks_have(
    master: RecordingMaster, gnt: Run, fields: dict[str, Any], line: str
) -> None:
    master.tables["disk"] = [disk(**fields)]
    assert line in strip_lines(gnt("gnt-disk", "info", "d-1").out)


def test_lists_of_disks(master: RecordingMaster, gnt: Run) -> None:
    master.tables["disk"] = [disk(nodes=["node1", "node2"])]
    ran = gnt("gnt-disk", "list", "--no-headers", "--separator", "|", "d-1")
    assert ran.out == "d-1|data|10240|drbd|node1,node2|None|None|rw\n"
    assert "max_iops" in gnt("gnt-disk", "list-fields").out
    gnt("gnt-disk", "list", "da*")
    conditions = [args["qfilter"] for name, args in master.requests if name == "Query"]
    assert conditions[0] == ["|", ["==", "uuid", "d-1"]]
    assert "name" in str(conditions[1])


# nodes -------------------------------------------------------------------------------------


def test_everything_about_a_node(master: RecordingMaster, gnt: Run) -> None:
    usual = {
        "pip": "192.0.2.1",
        "sip": "198.51.100.1",
        "master_candidate": True,
        "drained": False,
        "master_capable": True,
        "ndparams": {"ssh_port": 22},
        "custom_ndparams": {},
        "powered": None,
    }
    master.add_node("node1", **usual, vm_capable=True)
    master.nodes[0] |= {"pinst_list": ["web1"], "sinst_list": None}
    master.add_node("node2", **{**usual, "powered": True}, vm_capable=False)
    first, second = gnt("gnt-node", "info").out.split("- Node name: node2")
    for line in ("secondary ip: 198.51.100.1", "- web1", "ssh_port: default (22)"):
        assert line in strip_lines(first)
    assert "powered" not in first
    assert "powered: True" in strip_lines(second)
    assert "primary for instances" not in second
    ran = gnt("gnt-node", "info", "node9")
    assert ran.code == 1
    assert "There is no node 'node9'" in ran.err


def test_a_person_sees_the_roles_of_nodes(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt")
    numbers = dict.fromkeys(names, 1)
    master.tables["node"] = [
        {"name": "node1", "role": "M", **numbers},
        {"name": "node2", "role": "O", **numbers},
    ]
    plain = gnt("gnt-node", "list", "--no-headers")
    assert plain.out.split()[:2] == ["node1", "1"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = [line.split()[:2] for line in gnt("gnt-node", "list").out.splitlines()]
    assert shown[1:] == [["node1", "master"], ["node2", "offline"]]
    assert "mfree" in gnt("gnt-node", "list-fields").out


# images ------------------------------------------------------------------------------------


def test_everything_about_an_image(master: RecordingMaster, gnt: Run) -> None:
    image = {
        "name": "debian",
        "uuid": "i-1",
        "status": "ready",
        "disk_size": 2048,
        "file_size": 512,
        "nodes": ["node1", "node2"],
        "inst_list": [],
        "ctime": NOW,
        "mtime": NOW,
    }
    master.answers["QueryImages"] = rows(image)
    lines = strip_lines(gnt("gnt-image", "info", "debian").out)
    for line in (
        "Smallest disk: 2.0G",
        "Size of the file: 512M",
        "Copies on: node1, node2",
        "Created: 2023-11-14 22:13:20",
    ):
        assert line in lines
    ran = gnt("gnt-image", "info", "debain")
    assert ran.code == 1
    assert "There is no image 'debain'" in ran.err


def test_lists_of_images(master: RecordingMaster, gnt: Run) -> None:
    fields = ("name", "disk_size", "file_size", "copies", "status", "description")
    master.tables["image"] = [{**dict.fromkeys(fields, "x"), "nodes": ["node1", "node2"]}]
    ran = gnt("gnt-image", "list", "--no-headers", "--separator", "|", "-o", "+nodes")
    assert ran.out == "x|x|x|x|x|x|node1,node2\n"
    assert "copies" in gnt("gnt-image", "list-fields").out


# providers of external storage -------------------------------------------------------------


@pytest.fixture
def two_nodes(master: RecordingMaster) -> RecordingMaster:
    master.add_node("node10")
    master.add_node("node2")
    return master


def test_where_a_provider_works(two_nodes: RecordingMaster, gnt: Run) -> None:
    two_nodes.results["OP_EXT_STORAGE_DIAGNOSE"] = [
        [
            "pool",
            {
                "uuid-node10": [["/usr/share/pool", True, "", [["size", "Size"], ["tier", "-"]]]],
                "uuid-node2": [["/usr/share/pool", False, "attach is missing", []]],
                "gone": [],
            },
            {"default": {"valid": True}, "rack1": {"valid": False}},
        ]
    ]
    assert gnt("gnt-storage", "diagnose").out.splitlines() == [
        "Provider: pool",
        "  Node: node10, status: valid (path: /usr/share/pool) [parameters: size, tier]",
        "  Node: gone, status: ExtStorage provider not found",
        "  Node: node2, status: invalid - attach is missing (path: /usr/share/pool)"
        " [no parameters]",
        "  For nodegroup: default --> valid",
        "  For nodegroup: rack1 --> invalid",
        "",
    ]


def test_parameters_of_a_provider(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_EXT_STORAGE_DIAGNOSE"] = [
        ["pool", {"default": {"valid": True}}, [["tier", "Kind of disk"]]],
        ["other", {"default": {"valid": False}}, []],
    ]
    assert gnt("gnt-storage", "info", "pool", "nosuch").out.splitlines() == [
        "pool:",
        "  - Valid for nodegroups:",
        "      default",
        "  - Supported parameters:",
        "      tier: Kind of disk",
        "",
        "nosuch: Not Found",
        "",
    ]
    assert "  - Invalid for all nodegroups" in gnt("gnt-storage", "info").out.splitlines()


# OSes --------------------------------------------------------------------------------------


def test_oses_that_can_be_installed(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_OS_DIAGNOSE"] = [
        ["debian", ["small", "large"], True, False, False],
        ["noop", [], True, False, False],
        ["broken", [], False, False, False],
        ["old", [], True, True, False],
        ["bad", [], True, False, True],
    ]
    names = ["debian+small", "debian+large", "noop"]
    assert gnt("gnt-os", "list").out.split() == ["Name", *names]
    assert gnt("gnt-os", "list", "--no-headers").out.split() == names
    assert '"name":"noop"' in gnt("gnt-os", "list", "--format", "json").out


def facts(name: str, *, valid: bool) -> list[Any]:
    parameters = [["mirror", "Where\npackages are"]]
    more = [parameters, [20, 15], False, False, {}, {}, True, ["kvm"]]
    return [name, valid, ["small"], *more]


def test_versions_variants_and_parameters_of_an_os(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_OS_DIAGNOSE"] = [facts("debian", valid=True), facts("old", valid=False)]
    ran = gnt("gnt-os", "info", "debian", "old", "nosuch")
    debian, old, nosuch = ran.out.rstrip("\n").split("\n\n")
    lines = strip_lines(debian)
    assert lines[:4] == ["debian:", "- valid: True", "- hidden: False", "- blacklisted: False"]
    for line in ("- 15", "- small", "- trusted: True", "- kvm"):
        assert line in lines
    assert lines.index("- 15") < lines.index("- 20")
    assert any(line.startswith("- mirror: ") for line in lines)
    assert strip_lines(old) == ["old:", "- valid: False", "- hidden: False", "- blacklisted: False"]
    assert nosuch.strip() == "nosuch:"
    text = gnt("gnt-os", "info", "--format", "json", "debian", "nosuch").out
    assert '"nosuch": null' in text


def on_node(ok: bool, text: str = "", *, version: int = 20, **more: Any) -> list[Any]:
    versions = [version] if version else []
    return ["/os", ok, text, more.get("variants", []), more.get("parameters", []), versions, True]


def test_where_an_os_works(two_nodes: RecordingMaster, gnt: Run) -> None:
    def os(name: str, valid: bool, status: dict[str, Any], **more: Any) -> list[Any]:
        marks = [more.get("hidden", False), False, ["kvm"]]
        return [name, valid, ["small"], [["mirror", ""]], [20], status, *marks]

    good = on_node(True, variants=["small"], parameters=[["mirror", ""]])
    two_nodes.results["OP_OS_DIAGNOSE"] = [
        os("debian", True, {"uuid-node2": [good, on_node(True, version=0)]}, hidden=True)
    ]
    ran = gnt("gnt-os", "diagnose")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "OS: debian [global status: valid] [hidden]",
            "  Variants: [small]",
            "  Parameters: [mirror]",
            "  Hypervisors: [kvm]",
            "  Node: node2, status: VALID (path: /os) [API versions: 20] [variants: small]"
            " [parameters: mirror] [trusted]",
            "    [path: /os, status: VALID]",
            "",
        ],
    )
    broken = on_node(False, "create is missing", version=0)
    two_nodes.results["OP_OS_DIAGNOSE"] = [
        os("a", False, {"uuid-node2": [on_node(True)], "uuid-node10": []}),
        os("b", False, {"uuid-node2": [broken], "uuid-node10": [on_node(False, version=15)]}),
    ]
    ran = gnt("gnt-os", "diagnose")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0] == "OS: a [global status: partial valid]"
    assert lines[1].endswith("[API versions: 20] [no variants] [no parameters] [trusted]")
    assert lines[2] == "  Node: node10, status: OS not found"
    assert lines[4] == "OS: b [global status: invalid]"
    assert lines[5] == (
        "  Node: node2, status: INVALID - create is missing (path: /os)"
        " [no API versions declared] [trusted]"
    )
    assert lines[6].endswith("[API versions: 15] [no variants] [trusted]")


def test_settings_of_an_os(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt(
        *("gnt-os", "modify", "-H", "kvm:acpi=no", "-O", "mirror=x,size=default"),
        *("--os-parameters-private", "key=secret", "--hidden", "yes", "--blacklisted", "no"),
        "debian",
    )
    assert ran.code == 0, ran.err
    assert master.op == {
        "OP_ID": "OP_CLUSTER_SET_PARAMS",
        "force": False,
        "os_hvp": {"debian": {"kvm": {"acpi": "no"}}},
        "osparams": {"debian": {"mirror": "x", "size": "default"}},
        "osparams_private_cluster": {"debian": {"key": "secret"}},
        "hidden_os": [["add", "debian"]],
        "blacklisted_os": [["remove", "debian"]],
    }
    ran = gnt("gnt-os", "modify", "debian")
    assert ran.code == 1
    assert "Nothing to change: give at least one option" in ran.err
