"""Add checks of ``gnt-cluster verify`` in the files that ``doc/adding.md`` names; see findings."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("check of `gnt-cluster verify`",)

CHECKS = '''"""Verify what owners want. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report

CHECK = "paint"


def groups(report: Report, config: Config) -> None:
    """Report node groups without a tag."""
    for group in config.groups.values():
        if not group.tags:
            report.error("ECLUSTERCFG", "group", group.name, "has no tag")


def judge(report: Report, nodes: Iterable[Node], answers: Mapping[str, Mapping[str, Any]]) -> None:
    """Report nodes that are not painted."""
    for node in nodes:
        if answers[node.uuid][CHECK] is not True:
            report.error("ENODESETUP", "node", node.name, "is not painted")
'''
IMPORT = "from ganeti.ops.verification import paint\n"
CALL_FOR_CONFIG = "        paint.groups(report, ctx.config)\n"
QUESTION = "            paint.CHECK: None,\n"
CALL_FOR_NODES = "        paint.judge(report, online, found)\n"
ANSWER = """            "paint": lambda _arg, _hv: (context.paths.data / "painted").exists(),
"""

VERIFY = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti.opcodes.cluster import OpClusterVerifyConfig, OpClusterVerifyGroup

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=2)
(cluster.paths["node1"].data / "painted").touch()

def told(op):
    cluster.log.clear()
    good = cluster.run(op)
    return good, [line for line in cluster.log if "tag" in line or "painted" in line]

try:
    for codes in (False, True):
        print(*told(OpClusterVerifyConfig(error_codes=codes)))
        group = OpClusterVerifyGroup(group_name="default", error_codes=codes)
        print(*told(group))
    ignored = OpClusterVerifyConfig(ignore_errors=["ECLUSTERCFG"])
    print(*told(ignored))
    ignored = OpClusterVerifyGroup(group_name="default", ignore_errors=["ENODESETUP"])
    print(told(ignored)[1])
finally:
    cluster.close()
"""


def test_checks_are_in_the_report_with_their_codes(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("ops/verification/paint.py", CHECKS)
    for name in ("verify_config", "verify_group"):
        package.insert(
            f"ops/cluster/{name}.py", IMPORT, before="from ganeti.ops.verification.report"
        )
    package.insert(
        "ops/cluster/verify_config.py",
        CALL_FOR_CONFIG,
        before="        self._check_interrupted(report)",
    )
    package.insert("ops/cluster/verify_group.py", QUESTION, before="            shared.CHECK:")
    package.insert(
        "ops/cluster/verify_group.py", CALL_FOR_NODES, before="        bounds.nodes(report,"
    )
    package.insert("node/verify.py", ANSWER, before='            "pvlist":')
    assert package.output(VERIFY, tmp_path / "root") == [
        "False ['  - ERROR: group default: has no tag']",
        "False ['  - ERROR: node node2.example.com: is not painted']",
        "False ['  - ERROR:ECLUSTERCFG:group:default:has no tag']",
        "False ['  - ERROR:ENODESETUP:node:node2.example.com:is not painted']",
        "True ['  - WARNING: group default: has no tag']",
        "['  - WARNING: node node2.example.com: is not painted']",
    ]
    assert package.touched == {
        "ops/verification/paint.py",
        "ops/cluster/verify_config.py",
        "ops/cluster/verify_group.py",
        "node/verify.py",
    }
