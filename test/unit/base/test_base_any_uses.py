"""How often ``Any`` stands in the code, where a type is not known or not said.

A JSON object is a ``JsonObject``, a value of any type an ``object``. So the number only falls.
"""

from __future__ import annotations

import re
from pathlib import Path

import ganeti

ROOT = Path(ganeti.__file__).parent
MOST = 672


def test_the_number_only_falls() -> None:
    found = {
        str(path.relative_to(ROOT)): len(re.findall(r"^.*\bAny\b.*$", path.read_text(), re.M))
        for path in sorted(ROOT.rglob("*.py"))
    }
    assert sum(found.values()) <= MOST, {file: number for file, number in found.items() if number}


def test_plain_objects_have_one_name() -> None:
    written = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        if "dict[str, Any]" in path.read_text() and path.name != "json_types.py"
    ]
    assert not written
