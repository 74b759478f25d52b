"""Verify that no export was left in the middle. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath

from ganeti.model.node import Node
from ganeti.ops.verification.report import Report

CHECK = "unfinished-exports"


def judge(
    report: Report,
    nodes: Iterable[Node],
    found: Mapping[str, Mapping[str, object]],
    busy: Collection[str],
) -> None:
    """Report directories of exports that were cut off.

    ``busy`` are the names of instances that somebody works with: theirs may be made just now.
    """
    for node in nodes:
        answer = found.get(node.uuid, {}).get(CHECK)
        if answer is not None and not isinstance(answer, list):
            report.error("ENODEFILECHECK", "node", node.name, f"exports: {answer}")
            continue
        for path in answer or ():
            instance = PurePath(path).name.rpartition(".")[0]
            if instance not in busy:
                report.error(
                    "ENODEORPHANFILE",
                    "node",
                    node.name,
                    f"the export {path} was cut off and is not listed; the next gnt-backup export"
                    f" of {instance} to this node replaces it, or: rm -r {path}",
                )
