"""Add a storage type, and list its units with ``gnt-node list-storage``."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("- with a storage type of its own",)

TYPE = '    POOL = "pool"\n'
UNITS = '''def _pools(_args: Sequence[object], env: Environment) -> list[Unit]:
    """Each directory of pools of the node."""
    found = sorted(env.paths.under("/srv/pools").iterdir())
    facts = {"size": 100, "free": 60, "used": 40, "allocatable": True}
    return [{"name": path.name, **facts} for path in found]


'''
LISTER = '    "pool": _pools,\n'

LIST = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.cli import generated, program
from ganeti.cli.programs import NODE
from ganeti.opcodes import wire

generated.OPCODES.clear()  # as make docs does
program.main(NODE, ["list-storage", "--help"])
cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=2)
for where in cluster.paths.values():
    for name in ("fast", "slow"):
        where.under(f"/srv/pools/{{name}}").mkdir(parents=True)


def query(**params):
    asked = {{"OP_ID": "OP_NODE_QUERY_STORAGE", "nodes": [], "storage_type": "pool"}}
    return cluster.run(wire.from_wire(asked | params))


try:
    for row in query(output_fields=["node", "type", "name", "free"]):
        print(row)
    print(query(output_fields=["node"], name="slow"))
    query(output_fields=["node"], storage_type="rados")
except errors.OpPrereqError as err:
    print(err.args[0])
finally:
    cluster.close()
"""


def test_a_storage_type_in_two_files_is_listed(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/enums.py", TYPE, before='    RADOS = "rados"')
    package.insert("storage/units.py", UNITS, before="_LISTERS: Final")
    package.insert("storage/units.py", LISTER, before='    "sharedfile": _directories,')
    said = package.output(LIST, tmp_path / "root")
    help_text, listed = " ".join(" ".join(said[:-6]).split()), said[-6:]
    assert "lvm-vg|pool|rados" in help_text
    assert listed == [
        "['node1.example.com', 'pool', 'fast', 60]",
        "['node1.example.com', 'pool', 'slow', 60]",
        "['node2.example.com', 'pool', 'fast', 60]",
        "['node2.example.com', 'pool', 'slow', 60]",
        "[['node1.example.com'], ['node2.example.com']]",
        "storage of type rados has no units to list;"
        " file, gluster, lvm-pv, lvm-vg, pool, sharedfile have",
    ]
    assert package.touched == {"opcodes/enums.py", "storage/units.py"}
