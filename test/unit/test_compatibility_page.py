"""doc/compat.md names what is missing, and nothing that is there."""

from __future__ import annotations

import re
from pathlib import Path

from ganeti.base import jsonio
from ganeti.ops import registry

ROOT = Path(__file__).resolve().parents[2]


def read_not_built() -> str:
    page = (ROOT / "doc" / "compat.md").read_text()
    return page.partition("## Not built yet")[2].partition("\n## ")[0]


def test_opcodes_without_an_operation_are_those_that_the_page_names() -> None:
    known = jsonio.loads((ROOT / "test" / "recorded" / "opcodes.json").read_text())["opcodes"]
    named = set(re.findall(r"`(OP_[A-Z_]+)`", read_not_built()))
    assert named == {op_id for op_id in known if not registry.is_built(op_id)}
