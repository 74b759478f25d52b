"""Add parameters to an opcode that changes settings: one is a change, one only says how."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("option or parameter of an opcode", "- of an opcode that changes settings")

FIELDS = """    repaint: Annotated[bool, doc("Paint it again")] = False
    gently: Annotated[bool, doc("Take time for it")] = False
"""
SAYS_HOW = '            "gently",\n'
USE = """        if self.op.repaint:
            self.ctx.log("gently" if self.op.gently else "at once")
"""
OF_RESERVATIONS = '        "repaint",\n'
USE_FOR_RESERVATIONS = """        if self.op.repaint:
            self.ctx.log("in advance")
"""

COMMANDS = f"""
import os, sys
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/unit/cli")!r}]
from recording_master import RecordingMaster
from ganeti.cli import generated, program
from ganeti.cli.programs import INSTANCE

generated.OPCODES.clear()  # as make docs does
master = RecordingMaster(Path(os.environ["GANETI_ROOTDIR"]))
sys.stderr = sys.stdout
try:
    for line in ("modify --gently w", "modify --repaint w"):
        print("code:", program.main(INSTANCE, line.split()))
    print("submitted:", master.op["repaint"], master.op["gently"])
finally:
    master.stop()
"""
JOBS = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes import wire

SAID = ("gently", "at once", "in advance")
cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)


def run(op, **params):
    cluster.log.clear()
    name = "w.example.com"
    given = [key for key in params if key in ("gently", "repaint")]
    try:
        cluster.run(wire.from_wire({{"OP_ID": op, "instance_name": name, **params}}))
        print(given, *[line for line in cluster.log if line in SAID])
    except errors.OpPrereqError as err:
        print(given, err.args[0])


try:
    create = dict(mode="create", disk_template="diskless", disks=[], nics=[], start=False,
                  no_install=True, pnode="node1.example.com")
    for kind in ({{}}, {{"forthcoming": True}}):
        run("OP_INSTANCE_CREATE", **create, **kind)
        for names in (["gently"], ["repaint"], ["repaint", "gently"]):
            run("OP_INSTANCE_SET_PARAMS", **dict.fromkeys(names, True))
        run("OP_INSTANCE_REMOVE")
finally:
    cluster.close()
"""
REFUSED = "nothing to change: give at least one setting, disk or NIC"


def _add(package: OwnPackage) -> None:
    package.insert("opcodes/instance.py", FIELDS, before="    reseed: Annotated[")
    package.insert("opcodes/instance.py", SAYS_HOW, before='            "force_variant",')
    package.insert("ops/instance/set_params.py", USE, before="        primary = config.nodes[")


def test_a_parameter_is_a_change_unless_it_says_how(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    _add(package)
    assert package.output(COMMANDS, tmp_path / "commands") == [
        "Nothing to change: give at least one option",
        "code: 1",
        "code: 0",
        "submitted: True False",
    ]
    refused = "repaint cannot be set for w.example.com: it is forthcoming;"
    refused += " gnt-instance add --commit w.example.com creates it"
    assert package.output(JOBS, tmp_path / "jobs") == [
        "[]",
        f"['gently'] {REFUSED}",
        "['repaint'] at once",
        "['repaint', 'gently'] gently",
        "[]",
        "[]",
        f"['gently'] {REFUSED}",
        f"['repaint'] {refused}",
        f"['repaint', 'gently'] {refused}",
        "[]",
    ]
    assert package.touched == {"opcodes/instance.py", "ops/instance/set_params.py"}


def test_a_reservation_has_it_too(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    _add(package)
    name = "ops/on_reservations/modify.py"
    package.insert(name, OF_RESERVATIONS, before='        "pnode_uuid",')
    package.insert(name, USE_FOR_RESERVATIONS, before="        new, rows = self._settings(")
    assert package.output(JOBS, tmp_path / "jobs")[6:] == [
        f"['gently'] {REFUSED}",
        "['repaint'] in advance",
        "['repaint', 'gently'] in advance",
        "[]",
    ]
