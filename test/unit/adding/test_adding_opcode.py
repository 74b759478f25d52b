"""Add an opcode with its operation in the files that ``doc/adding.md`` names, and run it."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_package import REPOSITORY, OwnPackage

ROWS = ("opcode",)

CLASS = '''
class OpTestGreet(OpCode, tag="OP_TEST_GREET", kw_only=True):
    """Say hello in the job's log."""

    summary_field: ClassVar[str | None] = "name"
    name: Annotated[NonEmpty, doc("Who is greeted")]
    times: Annotated[UInt, doc("How often")] = 1
'''
HEAD = '''"""Opcodes that are polite."""

from typing import Annotated, ClassVar

from ganeti.opcodes.base import OpCode
from ganeti.opcodes.scalars import NonEmpty, UInt, doc

'''
OPERATION = '''"""OP_TEST_GREET."""

from ganeti.opcodes.{module} import OpTestGreet
from ganeti.ops.operation import Operation


class TestGreet(Operation[OpTestGreet, str]):
    def run(self) -> str:
        for _ in range(self.op.times):
            self.ctx.log(f"Hello {{self.op.name}}")
        return self.op.name
'''

USE = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}, {str(REPOSITORY / "tools")!r}]
import compat_page
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes import base, registry, wire

for given in ({{"name": "", "times": 1}}, {{"name": "x", "times": -1}}, {{"nam": "x"}}):
    try:
        wire.from_wire({{"OP_ID": "OP_TEST_GREET", **given}})
    except errors.OpPrereqError as err:
        print("refused:", err.args[0])
op = wire.from_wire({{"OP_ID": "OP_TEST_GREET", "name": "anna", "times": 2}})
stored = wire.to_stored_form(op)
print("job file:", {{key: stored[key] for key in ("OP_ID", "name", "times")}})
print("from the job file:", wire.from_wire(stored) == op)
print("summary:", base.summary(op))
print("new here:", "`OP_TEST_GREET`" in compat_page.PARTS["opcodes"]())
print("listed:", "OP_TEST_GREET" in registry.all_opcodes())
cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)
try:
    print("result:", cluster.run(op), cluster.log)
finally:
    cluster.close()
"""

WHERE = {
    "in the module with this name": ("test", None),
    "in another module": ("placement", '    "OP_TEST_GREET": "placement",\n'),
    "in a new module": ("politeness", '    "OP_TEST_GREET": "politeness",\n'),
}


@pytest.mark.parametrize("where", WHERE)
def test_an_opcode_is_checked_stored_and_run(tmp_path: Path, where: str) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    module, elsewhere = WHERE[where]
    if module == "politeness":
        package.write(f"opcodes/{module}.py", HEAD + CLASS)
        package.insert("opcodes/registry.py", f'    "{module}",\n', before='    "query",')
    else:
        package.insert(f"opcodes/{module}.py", CLASS)
    if elsewhere:
        package.insert("opcodes/registry.py", elsewhere, before='    "OP_CLUSTER_BALANCE": ')
    package.write("ops/test/greet.py", OPERATION.format(module=module))
    assert package.output(USE, tmp_path / "root") == [
        "refused: OP_TEST_GREET: parameter name: expected a non-empty text, got ''",
        "refused: OP_TEST_GREET: parameter times: expected an integer of at least 0, got -1",
        "refused: OP_TEST_GREET: unknown parameter 'nam' (did you mean name?);"
        " parameter name is missing (expected a non-empty text)",
        "job file: {'OP_ID': 'OP_TEST_GREET', 'name': 'anna', 'times': 2}",
        "from the job file: True",
        "summary: TEST_GREET(anna)",
        "new here: True",
        "listed: True",
        "result: anna ['Hello anna', 'Hello anna']",
    ]
    written = {f"opcodes/{module}.py", "ops/test/greet.py"}
    assert package.touched == written | ({"opcodes/registry.py"} if elsewhere else set())
