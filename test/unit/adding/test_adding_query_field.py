"""Add a query field in the file that ``doc/adding.md`` names; list it, show it, filter by it."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("query field",)

FIELD = """

@KIND.value("letters", "Letters", NUMBER, "Number of letters in the name")
def _letters(node: Node) -> int:
    return sum(char.isalpha() for char in node.name)
"""

QUERIES = """
from types import SimpleNamespace

from ganeti.filters import grammar
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.node import Node
from ganeti.query import engine

nodes = {
    name: Node(uuid=name, name=name, primary_ip="", secondary_ip="", group="g")
    for name in ("ab1", "abc2")
}
cluster = Cluster(
    uuid="c",
    cluster_name="c",
    master_node="ab1",
    master_ip="",
    master_netdev="lo",
    master_netmask=32,
)
data = ConfigData(
    version=3020000, cluster=cluster, nodes=nodes, nodegroups={"g": NodeGroup(uuid="g", name="g")}
)
sources = SimpleNamespace(config=Config(data))
print("listed:", [item for item in engine.fields_of("node")["fields"] if item["name"] == "letters"])
print("shown:", engine.query(sources, "node", ["name", "letters"])["data"])
wanted = grammar.parse("letters > 2")
print("filtered:", engine.query(sources, "node", ["name"], wanted)["data"])
"""


def test_a_field_in_one_file_is_listed_shown_and_compared(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("query/kinds/node.py", FIELD)
    assert package.output(QUERIES, tmp_path / "root") == [
        "listed: [{'name': 'letters', 'title': 'Letters', 'kind': 'number',"
        " 'doc': 'Number of letters in the name'}]",
        "shown: [[(0, 'ab1'), (0, 2)], [(0, 'abc2'), (0, 3)]]",
        "filtered: [[(0, 'abc2')]]",
    ]
    assert package.touched == {"query/kinds/node.py"}
