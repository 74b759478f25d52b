"""gnt-instance list, info and tags: what is printed."""

from __future__ import annotations

from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors

NIC = [
    "eth0",
    "nic-uuid",
    "10.0.0.1",
    "aa:00:00:00:00:01",
    "bridged",
    "br0",
    "",
    "net-uuid",
    {"name": "lan"},
]


def disk(**fields: Any) -> dict[str, Any]:
    return {
        "iv_name": "disk/0",
        "dev_type": "plain",
        "logical_id": ["xenvg", "uuid.disk0"],
        "drbd_info": None,
        "pstatus": ["/dev/xenvg/uuid.disk0", 253, 0, None, None, False, 0],
        "sstatus": None,
        "children": [],
        "mode": "rw",
        "size": 10240,
        "spindles": None,
        "name": None,
        "uuid": "disk-uuid",
        **fields,
    }


def facts(**fields: Any) -> dict[str, Any]:
    """An answer of OP_INSTANCE_QUERY_DATA about one instance."""
    return {
        "name": "web1.example.com",
        "config_state": "up",
        "run_state": "up",
        "pnode": "node1.example.com",
        "pnode_group_uuid": "g1",
        "pnode_group_name": "default",
        "snodes": ["node2.example.com"],
        "snodes_group_uuids": ["g1"],
        "snodes_group_names": ["default"],
        "os": "debian+small",
        "nics": [NIC],
        "disk_template": "plain",
        "disks": [disk()],
        "hypervisor": "kvm",
        "network_port": 11000,
        "hv_instance": {"acpi": False},
        "hv_actual": {"acpi": False, "kernel_path": ""},
        "be_instance": {"maxmem": 2048},
        "be_actual": {"always_failover": False, "maxmem": 2048, "minmem": 128, "vcpus": 1},
        "os_instance": {"root": "yes"},
        "os_actual": {"root": "yes", "size": "1"},
        "serial_no": 3,
        "mtime": 1700000060.5,
        "ctime": 1700000000.0,
        "uuid": "web1-uuid",
        **fields,
    }


EXPECTED = """\
- Instance name: web1.example.com
  UUID: web1-uuid
  Serial number: 3
  Creation time: {created}
  Modification time: {modified}
  State: configured to be up, actual state is up
  Nodes: 
    - primary: node1.example.com
      group: default (UUID g1)
    - secondaries: node2.example.com (group default, group UUID g1)
  Operating system: debian+small
  Operating system parameters: 
    root: yes
    size: default (1)
  Allocated network port: 11000
  Hypervisor: kvm
  Hypervisor parameters: 
    acpi: False
    kernel_path: default ()
  Back-end parameters: 
    always_failover: default (False)
    maxmem: 2048
    memory: 2048
    minmem: default (128)
    vcpus: default (1)
  NICs: 
    - nic/0: 
      MAC: aa:00:00:00:00:01
      IP: 10.0.0.1
      mode: bridged
      link: br0
      vlan: 
      network: lan
      UUID: nic-uuid
      name: eth0
  Disk template: plain
  Disks: 
    - disk/0: plain, size 10.0G
      access mode: rw
      logical_id: xenvg/uuid.disk0
      on primary: /dev/xenvg/uuid.disk0 (253:0)
      name: None
      UUID: disk-uuid
"""  # noqa: W291 - a key without a value ends with a space


def stamp(seconds: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def test_everything_about_an_instance(master: RecordingMaster, gnt_instance: Run) -> None:
    master.results["OP_INSTANCE_QUERY_DATA"] = {"web1.example.com": facts()}
    ran = gnt_instance("info web1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == EXPECTED.format(created=stamp(1700000000), modified=stamp(1700000060))
    assert master.op["instances"] == ["web1"]
    assert master.op["static"] is False


def test_static_facts_say_nothing_about_now(master: RecordingMaster, gnt_instance: Run) -> None:
    static = facts(run_state=None, disks=[disk(pstatus=None)], snodes=[], nics=[])
    master.results["OP_INSTANCE_QUERY_DATA"] = {
        "web1": static | {"snodes_group_names": [], "snodes_group_uuids": []}
    }
    ran = gnt_instance("show -s web1")
    assert master.op["static"] is True
    assert "  State: configured to be up\n" in ran.out
    assert "on primary" not in ran.out
    assert "    - secondaries: \n  Operating system:" in ran.out
    assert "  NICs: \n  Disk template:" in ran.out


def test_all_instances_come_in_natural_order(master: RecordingMaster, gnt_instance: Run) -> None:
    names = ["web10", "web2", "web1"]
    master.results["OP_INSTANCE_QUERY_DATA"] = {name: facts(name=name) for name in names}
    ran = gnt_instance("info --all --roman")
    found = [line.split()[-1] for line in ran.out.splitlines() if line.startswith("- Instance")]
    assert found == ["web1", "web2", "web10"]
    assert master.op["instances"] == []


@pytest.mark.parametrize(
    ("bound", "line"),
    [
        ("0.0.0.0", "vnc to node1.example.com:11000 (display 5100)"),
        ("127.0.0.1", "vnc to 127.0.0.1:11000 (display 5100) on node node1.example.com"),
        ("/run/vnc", "vnc to node1.example.com:/run/vnc/web1.example.com.vnc"),
    ],
)
def test_where_the_vnc_display_is(
    master: RecordingMaster, gnt_instance: Run, bound: str, line: str
) -> None:
    master.results["OP_INSTANCE_QUERY_DATA"] = {
        "web1": facts(hv_actual={"vnc_bind_address": bound}, hv_instance={})
    }
    assert f"  console connection: {line}\n" in gnt_instance("info web1").out


def test_mirrored_disks(master: RecordingMaster, gnt_instance: Run) -> None:
    shared = {
        "primary_node": "node1",
        "secondary_node": "node2",
        "port": 11001,
        "primary_minor": 0,
        "secondary_minor": 1,
        "secret": "hush",
    }
    mirror = disk(
        dev_type="drbd",
        drbd_info=shared,
        logical_id=["a", "b", 11001, 0, 1, "hush"],
        spindles=2,
        pstatus=["/dev/drbd0", 147, 0, 41.5, 90, True, 0],
        sstatus=["/dev/drbd1", 147, 1, None, None, True, 2],
        children=[disk(iv_name=None, size=128)],
    )
    healthy = disk(
        dev_type="drbd",
        drbd_info=shared,
        iv_name="disk/1",
        pstatus=["/dev/drbd1", None, None, None, None, False, 0],
    )
    master.results["OP_INSTANCE_QUERY_DATA"] = {"web1": facts(disks=[mirror, healthy])}
    out = gnt_instance("info web1").out
    for line in (
        "    - disk/0: drbd, size 10.0G",
        "      spindles: 2",
        "      nodeA: node1, minor=0",
        "      nodeB: node2, minor=1",
        "      port: 11001",
        "      on primary: /dev/drbd0 (147:0), *RECOVERING* 41.50%, time left 90 seconds,"
        " status *DEGRADED*",
        "      on secondary: /dev/drbd1 (147:1), status *DEGRADED* *MISSING DISK*",
        "      child devices: ",
        "        - child 0: plain, size 128M",
        "      on primary: /dev/drbd1 (N/A:N/A) in sync, status ok",
    ):
        assert f"{line}\n" in out
    assert "hush" not in out


def test_info_of_an_unknown_instance_fails(master: RecordingMaster, gnt_instance: Run) -> None:
    master.failures["OP_INSTANCE_QUERY_DATA"] = errors.OpPrereqError(
        "instance 'x' is not known", errors.ErrorCode.NOENT
    )
    ran = gnt_instance("info x")
    assert (ran.code, ran.out) == (1, "")
    assert "instance 'x' is not known" in ran.err


# list ----------------------------------------------------------------------------------------


def field(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "title": name.capitalize(), "kind": kind, "doc": f"About {name}"}


def test_the_usual_columns_and_a_name(master: RecordingMaster, gnt_instance: Run) -> None:
    usual = ["name", "hypervisor", "os", "pnode", "status", "oper_ram"]
    master.query_answer = {
        "fields": [field(name, "unit" if name == "oper_ram" else "text") for name in usual],
        "data": [[[0, "web1"], [0, "kvm"], [0, "debian"], [0, "node1"], [0, "running"], [0, 2048]]],
    }
    ran = gnt_instance("list web1 web*")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Name Hypervisor Os     Pnode Status  Oper_ram",
        "web1 kvm        debian node1 running     2.0G",
    ]
    method, args = master.requests[-1]
    assert (method, args["what"], args["fields"]) == ("Query", "instance", usual)
    assert args["qfilter"][:2] == ["|", ["==", "name", "web1"]]
    assert args["qfilter"][2][:2] == ["=~", "name"]


def test_a_filter_more_columns_and_a_separator(master: RecordingMaster, gnt_instance: Run) -> None:
    master.query_answer = {
        "fields": [field("tags", "other"), field("disk.names", "other"), field("x", "unknown")],
        "data": [[[0, ["a", "b"]], [0, ["root", None]], [1, None]]],
    }
    ran = gnt_instance("list", "--no-headers", "--separator=|", "-o", "+tags", 'pnode == "node1"')
    assert ran.code == 14
    assert ran.out == "a,b|['root', None]|??\n"
    assert ran.err == "Warning: Queried for unknown fields x\n"
    ((asked, qfilter),) = (
        (args["fields"], args["qfilter"]) for method, args in master.requests if method == "Query"
    )
    assert asked[-2:] == ["oper_ram", "tags"]
    assert qfilter == ["==", "pnode", "node1"]


def test_default_options_from_the_environment(
    master: RecordingMaster, gnt_instance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    master.query_answer = {"fields": [field("name", "text")], "data": [[[0, "web1"]]]}
    monkeypatch.setenv("GNT_INSTANCE_LIST", "-o name --no-headers")
    assert gnt_instance("list").out == "web1\n"
    assert master.requests[-1][1]["fields"] == ["name"]
    monkeypatch.setenv("GNT_INSTANCE_LIST", "-o 'name")
    assert gnt_instance("list").code == 2


def test_fields_can_be_listed(master: RecordingMaster, gnt_instance: Run) -> None:
    master.query_answer = {"fields": [field("oper_ram", "unit")], "data": []}
    ran = gnt_instance("list-fields --separator : oper_ram")
    assert ran.out == "Name:Type:Title:Description\noper_ram:Storage size:Oper_ram:About oper_ram\n"


def test_tags_are_listed_in_order(master: RecordingMaster, gnt_instance: Run) -> None:
    master.add_instance("web1", tags=["web", "blue"])
    assert gnt_instance("list-tags web1").out == "blue\nweb\n"


# no master -----------------------------------------------------------------------------------


def test_a_machine_without_a_cluster(
    gnt_instance: Run, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path_factory.mktemp("empty")))
    ran = gnt_instance("list")
    assert ran.code == 5
    assert "belongs to no cluster" in ran.err


def test_a_node_that_is_not_the_master(master: RecordingMaster, gnt_instance: Run) -> None:
    master.where.ssconf("master_node").write_text("node7.example.com\n")
    master.where.luxi_socket.unlink()
    ran = gnt_instance("list")
    assert ran.code == 11
    assert "log in to 'node7.example.com'" in ran.err
