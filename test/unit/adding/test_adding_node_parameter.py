"""Add a node parameter in the files that ``doc/adding.md`` names; set, inherit and show it."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("node parameter",)

FIELD = """    rack_unit: Annotated[int, Meta(ge=0, le=60)] = 0
"""
SHOWN = """    "rack_unit": ("RackUnit", FieldKind.NUMBER, "Where in its rack a node is"),
"""

SHOW = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.opcodes.node import OpNodeSetParams
from ganeti.query import engine

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=2)
try:
    def now():
        nodes = sorted(cluster.config.nodes.values(), key=lambda node: node.name)
        return [cluster.config.ndparams(node)["rack_unit"] for node in nodes]

    print("by default:", now())
    cluster.run(OpClusterSetParams(ndparams={{"rack_unit": 1}}))
    print("of the cluster:", now())
    cluster.run(OpGroupSetParams(group_name="default", ndparams={{"rack_unit": 2}}))
    print("of the group:", now())
    cluster.run(OpNodeSetParams(node_name="node2.example.com", ndparams={{"rack_unit": 3}}))
    print("of a node:", now())
    try:
        cluster.run(OpNodeSetParams(node_name="node2.example.com", ndparams={{"rack_unit": 61}}))
    except errors.GanetiError as err:
        print(errors.text(err))
    found = {{item["name"]: item for item in engine.fields_of("node")["fields"]}}
    print(found["ndp/rack_unit"]["title"], "group" in str(engine.fields_of("group")["fields"][0]))
finally:
    cluster.close()
"""


def test_a_parameter_in_two_files_is_set_inherited_and_shown(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("model/params.py", FIELD, before="    spindle_count: int = 1\n")
    package.insert("query/kinds/ndparams.py", SHOWN, before='    "ssh_port": (')
    lines = package.output(SHOW, tmp_path / "root")
    assert lines[:4] == [
        "by default: [0, 0]",
        "of the cluster: [1, 1]",
        "of the group: [2, 2]",
        "of a node: [2, 3]",
    ]
    assert "rack_unit" in lines[4]
    assert "60" in lines[4]
    assert lines[5].startswith("RackUnit")
    assert package.touched == {"model/params.py", "query/kinds/ndparams.py"}
