"""Add a backend parameter and a NIC parameter; set, inherit, check and show both."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("backend parameter", "NIC parameter")

BACKEND = """    nice: Annotated[
        int, Meta(ge=0, le=19, description="How far it yields"), Mark.SAFE
    ] = 5
"""
NIC = """    mtu: Annotated[int, Meta(ge=68, le=65535)] = 1500
"""
IN_REQUESTS = """    mtu: str | None = None
"""
SHOWN = """    ("mtu", "NicMTU", "mtus", "NIC_MTUs", "MTU", _param("mtu")),
"""

FOLLOW = f"""
import importlib.util, os, sys, tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import ganeti

repository = Path({str(REPOSITORY)!r})
sys.path[:0] = [str(repository / "test/support"), str(repository / "test/unit/cli"),
                str(repository / "tools")]
from one_process import OneProcess
from recording_master import RecordingMaster
from ganeti import errors
from ganeti.base import jsonio
from ganeti.cli import program
from ganeti.cli.programs import CLUSTER, INSTANCE
from ganeti.config.upgrade.upgrade import upgrade
from ganeti.ops import annotate
from ganeti.opcodes import wire
from ganeti.query import engine

master = RecordingMaster(Path(os.environ["GANETI_ROOTDIR"]))
sys.stderr = sys.stdout
try:
    for line in ("modify -B nice=7 --net 0:mtu=9000 w", "modify --net 0:mtuu=1 w"):
        print("code:", program.main(INSTANCE, line.split()))
    program.main(CLUSTER, ["modify", "-B", "nice=6", "-N", "mtu=1400"])
    for op in master.ops:
        print({{key: op[key] for key in ("beparams", "nics", "nicparams") if key in op}})
finally:
    master.stop()

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)
NAME = "w.example.com"


def run(op, **params):
    try:
        cluster.run(wire.from_wire({{"OP_ID": op, **params}}))
    except errors.GanetiError as err:
        print("refused:", errors.text(err))


def show():
    fields = ["be/nice", "nic.mtu/0"]
    found = engine.query(SimpleNamespace(config=cluster.config), "instance", fields)
    item = cluster.config.instance(NAME)
    print([value for _, value in found["data"][0]], cluster.config.beparams(item)["nice"],
          annotate.instance(cluster.config, item).nics[0].nicparams["mtu"])


def change(**params):
    run("OP_INSTANCE_SET_PARAMS", instance_name=NAME, hotplug=False, **params)


try:
    run("OP_INSTANCE_CREATE", mode="create", instance_name=NAME, disk_template="diskless",
        disks=[], nics=[{{}}], no_install=True, start=False, pnode="node1.example.com")
    show()
    run("OP_CLUSTER_SET_PARAMS", beparams={{"nice": 6}}, nicparams={{"mtu": "1400"}})
    show()
    change(beparams={{"nice": "7"}}, nics=[["modify", 0, {{"mtu": "9000"}}]])
    show()
    change(beparams={{"nice": 20}})
    change(nics=[["modify", 0, {{"mtu": "60"}}]])
    change(beparams={{"nice": "default"}}, nics=[["modify", 0, {{"mtu": "default"}}]])
    show()
finally:
    cluster.close()
old = upgrade(jsonio.loads((repository / "test/recorded/config_3_0_2.json").read_bytes()))
print(*[str(c) for c in old.report.changes if "nice" in str(c) or "mtu" in str(c)])
loader = SourceFileLoader("make_docs", str(repository / "tools/make-docs"))
make_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_docs", loader))
loader.exec_module(make_docs)
print(*[line for line in make_docs.parameters().splitlines() if "`nice`" in line])
"""


def test_parameters_of_instances_are_known_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("model/params.py", BACKEND, before="    spindle_use: Annotated[")
    package.insert("model/params.py", NIC, before='    vlan: str = ""')
    package.insert("opcodes/devices.py", IN_REQUESTS, before="    name: str | None = None")
    package.insert("query/kinds/instance_nics.py", SHOWN, before='    ("name", "NicName"')
    assert package.output(FOLLOW, tmp_path / "root") == [
        "code: 0",
        "NIC 0: unknown key 'mtuu' (did you mean mtu?); known are bridge, ip, link, mac,"
        " mode, mtu, name, network, vlan",
        "code: 1",
        "{'beparams': {'nice': 7}, 'nics': [['modify', 0, {'mtu': '9000'}]]}",
        "{'beparams': {'nice': '6'}, 'nicparams': {'mtu': '1400'}}",
        "[5, 1500] 5 1500",
        "[6, 1400] 6 1400",
        "[7, 9000] 7 9000",
        "refused: backend parameter: Expected `int` <= 19 - at `$.nice`",
        "refused: NIC 0: NIC parameter: Expected `int` >= 68 - at `$.mtu`",
        "[6, 1400] 6 1400",
        "added cluster/beparams/default/nice: 5 added cluster/nicparams/default/mtu: 1500",
        "| `nice` | `uint` | `5` | How far it yields |",
    ]
    assert package.touched == {
        "model/params.py",
        "opcodes/devices.py",
        "query/kinds/instance_nics.py",
    }
