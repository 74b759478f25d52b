"""Verify that files which must be the same on nodes are the same. Pure.

``steps/nodes/shared_files.py`` and ``config/ssconf.py`` say which files nodes should have; the copy
of the master is the one that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

from ganeti.base.text import join_names, plural
from ganeti.model import ssconf_keys
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.ops.steps.nodes import shared_files
from ganeti.ops.verification.report import Report
from ganeti.paths import Paths

#: The check of nodes that answers with checksums by file name.
CHECK = "filelist"
_SEND = "gnt-cluster redist-conf sends the file of the master again"


def names(paths: Paths) -> list[str]:
    """Files to compare, by the names that all nodes know them by."""
    files = (*shared_files.list_for_all(paths), *shared_files.list_for_candidates(paths))
    return [paths.common(path) for path in files]


def judge(
    report: Report,
    config: Config,
    paths: Paths,
    nodes: Iterable[Node],
    answers: Mapping[str, Mapping[str, object]],
) -> None:
    """Compare what nodes have with the master's; ``answers`` must have those of the master."""
    sums: dict[NodeUuid, Mapping[str, str]] = {}
    asked = {node.uuid: node for node in [config.master, *nodes]}
    for uuid, node in asked.items():
        answer = answers.get(uuid, {}).get(CHECK)
        if isinstance(answer, dict):
            sums[uuid] = answer
        elif answer is not None:
            report.error("ENODEFILECHECK", "node", node.name, f"files are not compared: {answer}")
    own = sums.pop(config.cluster.master_node, None)
    if own is None:
        return
    others = {uuid: (asked[uuid], found) for uuid, found in sums.items()}
    everybody = {paths.common(path) for path in shared_files.list_for_all(paths)}
    for name in names(paths):
        wanted = own.get(name)
        has = {node.name: found.get(name) for node, found in others.values()}
        must = {
            node.name
            for node, _found in others.values()
            if name in everybody or node.master_candidate
        }
        for text in _differences(wanted, has, must):
            report.error(
                "ECLUSTERFILECHECK", "cluster", config.cluster.cluster_name, f"file {name} {text}"
            )


def _differences(
    wanted: str | None, has: Mapping[str, str | None], must: Collection[str]
) -> Iterable[str]:
    """Problems of one file, whose checksums are given by node; a text for each."""
    extra = sorted(name for name, found in has.items() if found and name not in must)
    if wanted is None:
        left = sorted(name for name in must if has[name])
        if left:
            yield f"is missing on the master node, but {join_names(left)} {_have(left)} it"
    else:
        missing = sorted(name for name in must if has[name] is None)
        if missing:
            yield f"is missing on {join_names(missing)}; {_SEND}"
        other = sorted(name for name in must if has[name] not in (None, wanted))
        if other:
            yield f"of {join_names(other)} differs from that of the master; {_SEND}"
    if extra:
        yield (
            f"is on {join_names(extra)}, but only master candidates may have it; remove it there"
        )


def _have(nodes: Collection[str]) -> str:
    return "has" if len(nodes) == 1 else "have"


def ssconf_names(paths: Paths, sent: Mapping[str, str]) -> list[str]:
    """The files of the values that were sent."""
    return [paths.common(paths.ssconf(key)) for key in sent]


def judge_ssconf(
    report: Report,
    config: Config,
    paths: Paths,
    sent: Mapping[str, str],
    answers: Mapping[NodeUuid, tuple[Node, object]],
) -> None:
    """Compare the ssconf files of nodes (node and answer by uuid) with what they were sent."""
    wanted = {
        paths.common(paths.ssconf(key)): hashlib.sha1(ssconf_keys.content(value)).hexdigest()
        for key, value in sent.items()
    }
    for node, answer in answers.values():
        if not isinstance(answer, dict):
            report.error("ENODEFILECHECK", "node", node.name, f"files are not compared: {answer}")
            continue
        wrong = [
            name.rpartition("/")[2] for name, value in wanted.items() if answer.get(name) != value
        ]
        if wrong:
            text = (
                f"{plural(len(wrong), 'file')} of node {node.name} differ{'s' * (len(wrong) == 1)}"
                f" from what the master sent: {join_names(wrong, 3)}; gnt-cluster redist-conf sends"
                " them again"
            )
            report.error("ECLUSTERFILECHECK", "cluster", config.cluster.cluster_name, text)
