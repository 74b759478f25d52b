"""Each library that is not ours is behind one module: a contract of imports says which."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
#: msgspec is the type of every message and record; pyasyncore is there for pyinotify only.
EXEMPT = {"msgspec", "pyasyncore"}
#: Packages whose module has another name.
MODULES = {"pyOpenSSL": "OpenSSL", "qemu.qmp": "qemu"}
#: Two grammars need it.
SEVERAL = {"pyparsing"}


def test_every_dependency_has_a_contract() -> None:
    contracts = {
        name: contract["allowed_importers"]
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if contract["type"] == "protected"
        for name in contract["protected_modules"]
    }
    packages = {
        re.split(r"[<>=;\s]", text, maxsplit=1)[0] for text in PROJECT["project"]["dependencies"]
    }
    modules = {MODULES.get(name, name) for name in packages - EXEMPT}
    assert modules == contracts.keys()
    assert {name for name, importers in contracts.items() if len(importers) > 1} == SEVERAL
