"""Add an opcode with its operation in the files that ``doc/adding.md`` names, and run it."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("opcode",)

#: Word of the opcode, module of its class; all three are of ``ops/test``.
MODULES = {"GREET": "test", "SALUTE": "placement", "WAVE": "politeness"}
CLASS = '''
class OpTest{name}(OpCode, tag="OP_TEST_{word}", kw_only=True):
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
OPERATION = '''"""OP_TEST_{word}."""

from ganeti.opcodes.{module} import OpTest{name}
from ganeti.ops.operation import Operation


class Test{name}(Operation[OpTest{name}, str]):
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

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)
for word in {list(MODULES)!r}:
    op_id = f"OP_TEST_{{word}}"
    for given in ({{"name": "", "times": 1}}, {{"name": "x", "times": -1}}, {{"nam": "x"}}):
        try:
            wire.from_wire({{"OP_ID": op_id, **given}})
        except errors.OpPrereqError as err:
            print("refused:", err.args[0])
    op = wire.from_wire({{"OP_ID": op_id, "name": "anna", "times": 2}})
    stored = wire.to_stored_form(op)
    print("job file:", {{key: stored[key] for key in ("OP_ID", "name", "times")}})
    print("from the job file:", wire.from_wire(stored) == op)
    print("summary:", base.summary(op))
    print("new here:", f"`{{op_id}}`" in compat_page.PARTS["opcodes"]())
    print("listed:", op_id in registry.all_opcodes())
    cluster.log.clear()
    print("result:", cluster.run(op), cluster.log)
cluster.close()
"""


def _expect(word: str) -> list[str]:
    return [
        f"refused: OP_TEST_{word}: parameter name: expected a non-empty text, got ''",
        f"refused: OP_TEST_{word}: parameter times: expected an integer of at least 0, got -1",
        f"refused: OP_TEST_{word}: unknown parameter 'nam' (did you mean name?);"
        " parameter name is missing (expected a non-empty text)",
        f"job file: {{'OP_ID': 'OP_TEST_{word}', 'name': 'anna', 'times': 2}}",
        "from the job file: True",
        f"summary: TEST_{word}(anna)",
        "new here: True",
        "listed: True",
        "result: anna ['Hello anna', 'Hello anna']",
    ]


def test_opcodes_in_any_module_are_checked_stored_and_run(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    for word, module in MODULES.items():
        names = {"word": word, "name": word.capitalize(), "module": module}
        if module == "politeness":
            package.write(f"opcodes/{module}.py", HEAD + CLASS.format(**names))
            package.insert("opcodes/registry.py", f'    "{module}",\n', before='    "query",')
        else:
            package.insert(f"opcodes/{module}.py", CLASS.format(**names))
        if module != "test":
            line = f'    "OP_TEST_{word}": "{module}",\n'
            package.insert("opcodes/registry.py", line, before='    "OP_CLUSTER_BALANCE": ')
        package.write(f"ops/test/{word.lower()}.py", OPERATION.format(**names))
    said = package.output(USE, tmp_path / "root")
    assert said == [line for word in MODULES for line in _expect(word)]
    classes = {f"opcodes/{module}.py" for module in MODULES.values()}
    operations = {f"ops/test/{word.lower()}.py" for word in MODULES}
    assert package.touched == classes | operations | {"opcodes/registry.py"}
