"""Add metrics, one that the master counts and one that nodes measure, and scrape them."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("metric of `/metrics`",)

OF_MASTER = '    _gauge("groups", (), "Node groups of the cluster"),\n'
COUNT = '    sheet.add("groups", (), len(config.groups))\n'
OF_NODE = '    _gauge("node_open_files", _NODE, "Open files of a node"),\n'
SHOWN = '    "node_open_files": "open_files",\n'
MEMBER = """    #: of all processes
    open_files: int | None = None
"""
READ = """        open_files=int((root / "proc/sys/fs/file-nr").read_text().split()[0]),
"""

SCRAPE = f"""
import sys

sys.path[:0] = [{str(Path(__file__).parent)!r}]
import own_master
from ganeti import paths
from ganeti.base import jsonio
from ganeti.master import measures
from ganeti.master.survey import NodeState
from ganeti.node.context import NodeContext
from ganeti.node.sampler import Sampler
from ganeti.rapi import exposition
from ganeti.rpc import wire

core = own_master.make()
sampler = Sampler(NodeContext(paths.current(), "node1.example.com"))
sampler.take()
sent = jsonio.loads(jsonio.dumps(wire.encode(sampler.latest)))
samples = wire.decode_result(wire.specs()["samples_latest"], sent)
(node,) = core.store.current.nodes.values()
core.survey.nodes[node.uuid] = NodeState(True, 0.0, 1.0, samples)
for line in exposition.write(measures.collect(core).items()).decode().splitlines():
    if "ganeti_groups" in line or "open_files" in line:
        print(line)
"""


def test_metrics_are_scraped_with_help_and_type(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("model/metrics.py", OF_MASTER, before='    _gauge("watcher_paused"')
    package.insert("master/measures.py", COUNT, before='    sheet.add("master_term"')
    package.insert("model/metrics.py", OF_NODE, before='    _gauge("node_cpus"')
    package.insert("master/measures.py", SHOWN, before='    "node_cpus": "cpus",')
    package.insert("rpc/samples.py", MEMBER, before="    #: of the last minute")
    package.insert("node/host_counters.py", READ, before="        load=os.getloadavg()[0],")
    *lines, last = package.output(SCRAPE, tmp_path / "root")
    assert lines == [
        "# HELP ganeti_groups Node groups of the cluster",
        "# TYPE ganeti_groups gauge",
        "ganeti_groups 1.0",
        "# HELP ganeti_node_open_files Open files of a node",
        "# TYPE ganeti_node_open_files gauge",
    ]
    name, value = last.split()
    assert name == 'ganeti_node_open_files{node_name="node1.example.com"}'
    assert float(value) > 0
    assert package.touched == {
        "model/metrics.py",
        "master/measures.py",
        "rpc/samples.py",
        "node/host_counters.py",
    }
