"""Add a collector of ``ganeti-mond`` in the files that ``doc/adding.md`` names, and ask for it."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("collector of `ganeti-mond`",)

COLLECTOR = '''"""How long this node has been up."""

from ganeti.base import files
from ganeti.mond.collector import Collector, Kind


class Uptime(Collector):
    """Seconds since the node booted."""

    name = "uptime"
    category = "node"
    kind = Kind.PERFORMANCE

    def data(self) -> object:
        return {"seconds": float(files.read_text(self._node.proc / "uptime").split()[0])}
'''

ASK = """
from ganeti import paths
from ganeti.mond import registry
from ganeti.mond.app import MonitorApp
from ganeti.mond.cluster import ClusterFacts
from ganeti.mond.collector import Node
from ganeti.base import jsonio
from ganeti.tools import mon_collector

where = paths.current()
where.under("/proc").mkdir(parents=True)
where.under("/proc/uptime").write_text("12.5 20.0\\n")
facts = ClusterFacts(where, "node1.example.com")
app = MonitorApp(registry.create(Node(where, facts, proc=where.under("/proc"))), facts)


def get(path):
    told = []
    [body] = app({"REQUEST_METHOD": "GET", "PATH_INFO": path}, lambda *head: told.append(head[0]))
    return told[0], jsonio.loads(body)


print("listed:", ["uptime", "node", 0] in get("/1/list/collectors")[1])
code, report = get("/1/report/node/uptime")
print(code, report["name"], report["category"], report["kind"], report["data"])
print("in all:", "uptime" in [one["name"] for one in get("/1/report/all")[1]])
print("by itself:", mon_collector.main(["uptime"]))
"""


def test_a_collector_in_two_files_is_listed_and_reported(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("mond/uptime.py", COLLECTOR)
    package.insert("mond/registry.py", "    Uptime,\n", before="    CpuAverageLoad,\n")
    package.insert(
        "mond/registry.py",
        "from ganeti.mond.uptime import Uptime\n",
        before="from ganeti.mond.disks import",
    )
    lines = package.output(ASK, tmp_path / "root")
    assert lines[:3] == [
        "listed: True",
        "200 OK uptime node 0 {'seconds': 12.5}",
        "in all: True",
    ]
    assert lines[-1] == "by itself: 0"
    assert "seconds" in "".join(lines[3:-1])
    assert package.touched == {"mond/uptime.py", "mond/registry.py"}
