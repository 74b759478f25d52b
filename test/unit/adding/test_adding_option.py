"""Add a parameter to an opcode; see it as an option, in files, and over both interfaces."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("option or parameter of an opcode", "- with another name as an option")

FIELD = """    hue: Annotated[NonEmpty | None, doc("Colour of its label"), Mark.SAFE] = None
"""
USE = """        if self.op.hue == "pink":
            raise errors.make_invalid_error("no label is pink")
"""

ON_THE_COMMAND_LINE = f"""
import os, sys
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/unit/cli")!r}]
from recording_master import RecordingMaster
from ganeti.base import jsonio
from ganeti.cli import generated, manual, program
from ganeti.cli.programs import PROGRAMS

generated.OPCODES.clear()  # as make docs does
master = RecordingMaster(Path(os.environ["GANETI_ROOTDIR"]))
master.results["OP_INSTANCE_MULTI_ALLOC"] = {{"jobs": [], "allocatable": [], "failed": []}}
wanted = {{"instance_name": "w", "disk_template": "diskless",
          "disks": [], "nics": [], "hue": "red"}}
Path("batch").write_text(jsonio.dumps([wanted]))
sys.stderr = sys.stdout
"""
COMMANDS = """
LINES = ("add --help", "add -t diskless --hue red w", "reserve --help",
         "reserve -t diskless --hue red w", "batch-create batch")
try:
    for line in LINES:
        print("code:", program.main(PROGRAMS["gnt-instance"], line.split()))
    print("add:", master.ops[0]["hue"])
    print("others:", [op["instances"][0]["hue"] for op in master.ops[1:]])
finally:
    master.stop()
print("man page:", "hue" in manual.page(PROGRAMS["gnt-instance"]))
"""
EVERYWHERE_ELSE = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes import wire
from ganeti.rapi import openapi, reference, routes

given = {{"OP_ID": "OP_INSTANCE_CREATE", "mode": "create", "instance_name": "w.example.com",
         "disk_template": "diskless", "disks": [], "nics": [], "pnode": "node1.example.com",
         "no_install": True, "start": False}}
try:
    wire.from_wire(given | {{"hue": 7}})
except errors.OpPrereqError as err:
    print("refused:", err.args[0])
op = wire.from_wire(given | {{"hue": "pink"}})
print("stored:", wire.to_stored_form(op)["hue"])
cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)
try:
    cluster.run(op)
except errors.OpPrereqError as err:
    print("used:", err.args[0])
finally:
    cluster.close()
body = openapi.document(routes.ROUTES)["paths"]["/2/instances"]["post"]["requestBody"]
print("OpenAPI:", "Colour of its label" in str(body))
print("reference:", "hue" in reference.page(routes.ROUTES))
"""


def test_a_parameter_is_an_option_and_a_key_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/instance_create.py", FIELD, before="    ssh_keys: p.SshKeys")
    package.insert("ops/instance/create.py", USE, before="        given = checks.host_name(")
    said = package.output(ON_THE_COMMAND_LINE + COMMANDS, tmp_path / "root")
    assert sum("--hue <hue>" in line and "Colour of its label" in line for line in said) == 2
    assert said[-3:] == ["add: red", "others: ['red', 'red']", "man page: True"]
    assert package.output(EVERYWHERE_ELSE, tmp_path / "other") == [
        "refused: OP_INSTANCE_CREATE: parameter hue: expected a non-empty text or null, got 7",
        "stored: pink",
        "used: no label is pink",
        "OpenAPI: True",
        "reference: True",
    ]
    assert package.touched == {"opcodes/instance_create.py", "ops/instance/create.py"}


OF_NODES = """    hue: Annotated[NonEmpty | None, doc("Colour of its label")] = None
    shade: Annotated[NonEmpty | None, doc("How dark it is")] = None
    gloss: Annotated[NonEmpty | None, doc("How much it shines")] = None
"""
FOR_ALL_COMMANDS = '    "hue": override("-K", "--colour", metavar="<colour>"),\n'
FOR_ONE = '        "shade": override("--paint", choices=("light", "dark"), kind="choice"),\n'
FOR_NONE = '    without=("gloss",),\n'
HELP = """
try:
    print("code:", program.main(PROGRAMS["gnt-node"], ["modify", "--help"]))
finally:
    master.stop()
"""


def test_an_option_has_another_name_or_none(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/node.py", OF_NODES, before="    master_candidate: ")
    package.insert("cli/fields.py", FOR_ALL_COMMANDS, before='    "hv_state": override(')
    package.insert("cli/node/change.py", FOR_ONE, before='        "drained": override("-D"')
    package.insert("cli/node/change.py", FOR_NONE, before='    names={\n        "shade"')
    said = " ".join(" ".join(package.output(ON_THE_COMMAND_LINE + HELP, tmp_path / "root")).split())
    assert "-K, --colour <colour> Colour of its label" in said
    assert "--paint light|dark How dark it is" in said
    assert "How much it shines" not in said
    assert package.touched == {"opcodes/node.py", "cli/fields.py", "cli/node/change.py"}
