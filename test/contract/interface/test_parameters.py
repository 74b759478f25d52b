"""Every recorded parameter has an effect, which a test observes."""

from __future__ import annotations

import ast
import re
from functools import cache

import contract
from effects import EFFECTS


def list_parameters() -> list[str]:
    table = contract.read_recorded("params")
    nested = [
        f"{kind} {group} {name}"
        for kind in ("hypervisor", "disk")
        for group, names in table[kind].items()
        for name in names
    ]
    plain = [
        f"{kind} {name}"
        for kind in ("backend", "node", "nic", "policy", "spec", "cluster")
        for name in table[kind]
    ]
    return nested + plain


def test_every_parameter_has_an_effect_that_a_test_observes() -> None:
    names = list_parameters()
    unknown = [item for item in EFFECTS if not item.endswith("*") and item not in names]
    assert not unknown
    contract.check_table(
        "parameters with an effect", names, [item for item in names if proof(item)]
    )


def proof(item: str) -> str:
    """The test that shows the effect, empty if there is none."""
    group, _, name = item.rpartition(" ")
    for key in (item, f"{group} *"):
        _how, test, *word = EFFECTS.get(key, ("", ""))
        if test and speaks_of(test, word[0] if word else name, whole_file=key.endswith("*")):
            return test
        assert not test or key.endswith("*"), f"{test} says nothing of {item}"
    return ""


@cache
def functions(path: str) -> dict[str, str]:
    """Tests, fixtures and tables of a file with their text."""
    text = (contract.ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {"": text}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return found


def speaks_of(test: str, name: str, *, whole_file: bool) -> bool:
    path, _, function = test.partition("::")
    known = functions(path)
    assert function in known, f"{test} does not exist"
    text = known["" if whole_file else function]
    pattern = re.sub("[-_]", "[-_]", name)
    if whole_file:
        return re.search(f'"{pattern}": \\(', text) is not None
    return re.search(rf"\b{pattern}\b", text) is not None
