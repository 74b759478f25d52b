"""Add an opcode with its operation, its command and its REST request, as ``doc/adding.md`` says."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("opcode", "request of the remote API", "command")

OPCODE = '''

class OpGroupGreet(OpCode, tag="OP_GROUP_GREET", kw_only=True):
    """Greet a node group."""

    summary_field: ClassVar[str | None] = "group_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/groups/{group_name}/greet",)
    result_type: ClassVar[str] = "nestr"

    group_name: p.GroupName
    words: Annotated[list[NonEmpty] | None, doc("What is said")] = None
    loud: Annotated[bool, doc("Speak up")] = False
    polite: Annotated[bool, doc("Bow first")] = True
'''
OPERATION = '''"""OP_GROUP_GREET."""

from ganeti.opcodes.group import OpGroupGreet
from ganeti.ops.operation import Operation


class GroupGreet(Operation[OpGroupGreet, str]):
    def run(self) -> str:
        self.ctx.log(f"Hello {self.op.group_name}")
        return self.op.group_name
'''
COMMAND = '\nGROUP.submits("greet", "OP_GROUP_GREET", _NAME)\n'

ON_THE_COMMAND_LINE = f"""
import os, sys
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/unit/cli")!r}]
from recording_master import RecordingMaster
from ganeti.cli import manual, program
from ganeti.cli.programs import GROUP

master = RecordingMaster(Path(os.environ["GANETI_ROOTDIR"]))
sys.stderr = sys.stdout
try:
    for line in ("greet --help", "greet --words a,b --lou --no-polite g1", "greet --lowd g1",
                 "greet", "--help"):
        print("code:", program.main(GROUP, line.split()))
    print("submitted:", master.op)
finally:
    master.stop()
print("in the man page:", ".SS greet" in manual.page(GROUP))
"""
EVERYWHERE_ELSE = f"""
import tempfile
import sys
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes import base, describe, registry, wire
from ganeti.rapi import openapi, reference, routes

try:
    wire.from_wire({{"OP_ID": "OP_GROUP_GREET", "group_name": "g1", "loud": "very"}})
except errors.OpPrereqError as err:
    print("refused:", err.args[0])
op = wire.from_wire({{"OP_ID": "OP_GROUP_GREET", "group_name": "default"}})
print("summary:", base.summary(op))
stored = wire.to_stored_form(op)
print("job file:", {{key: stored[key] for key in ("OP_ID", "group_name", "loud", "polite")}})
print("described:", [item.type for item in describe.parameters(type(op))])
cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster")
try:
    print("result:", cluster.run(op))
    print("log:", [line for line in cluster.log if "Hello" in line])
finally:
    cluster.close()
(path,) = (path for path in routes.group_by_path() if path.endswith("/greet"))
(route,) = routes.group_by_path()[path].values()
print("request:", route.method, route.path, "needs", sorted(route.access))
paths = openapi.document(routes.ROUTES)["paths"]
print("OpenAPI:", sorted(paths["/2/groups/{{group_name}}/greet"]))
print("in the reference:", "/2/groups/{{group_name}}/greet" in reference.page(routes.ROUTES))
"""


def test_an_opcode_with_command_and_request_in_three_files(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/group.py", OPCODE)
    package.write("ops/group/greet.py", OPERATION)
    package.insert("cli/group/change.py", COMMAND)

    said = "\n".join(package.output(ON_THE_COMMAND_LINE, tmp_path / "root"))
    helped, submitted, misspelled, missing, overview = said.split("code: ")[:5]
    assert "Usage: gnt-group greet [options] <group>\n\nGreet a node group.\n" in helped
    for option in ("--words <item>,...", "--loud", "--no-polite", "--submit", "--dry-run"):
        assert option in helped
    assert "Speak up" in helped
    assert "Do not bow first" in helped
    assert submitted == "0\n"
    assert misspelled.startswith("0\n")
    assert "error: no such option: --lowd (did you mean --loud?)" in misspelled
    assert missing.startswith("2\nError: Command greet expects exactly 1 argument")
    assert overview.startswith("1\n")
    assert "greet            Greet a node group" in overview
    assert (
        "submitted: {'OP_ID': 'OP_GROUP_GREET', 'group_name': 'g1', 'words': ['a', 'b'],"
        " 'loud': True, 'polite': False}" in said
    )
    assert "in the man page: True" in said

    assert package.output(EVERYWHERE_ELSE, tmp_path / "other") == [
        "refused: OP_GROUP_GREET: parameter loud: expected true or false, got 'very'",
        "summary: GROUP_GREET(default)",
        "job file: {'OP_ID': 'OP_GROUP_GREET', 'group_name': 'default', 'loud': False,"
        " 'polite': True}",
        "described: ['nestr', '[nestr]|null', 'bool', 'bool']",
        "result: default",
        "log: ['Hello default']",
        "request: PUT /2/groups/{group_name}/greet needs ['write']",
        "OpenAPI: ['put']",
        "in the reference: True",
    ]
    assert package.touched == {"opcodes/group.py", "ops/group/greet.py", "cli/group/change.py"}
