"""Verify where instances are and what they may be, from the configuration alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.planning import policy
from ganeti.ops.verification.report import Report
from ganeti.storage.registry import traits_of

#: Tags of a cluster with a prefix for tags of instances that must not share a node.
_EXCLUSION = "htools:iextags:"


def instance(report: Report, config: Config, item: Instance) -> None:
    """Policy and nodes of one instance that exists."""
    broken = policy.violations(config, item)
    if broken:
        text = f"violates the instance policy of its node group: {'; '.join(broken)}"
        report.warning("EINSTANCEPOLICY", "instance", item.name, text)
    nodes = [config.nodes[uuid] for uuid in config.instance_nodes(item) if uuid in config.nodes]
    groups = sorted({config.groups[n.group].name for n in nodes if n.group in config.groups})
    if len(groups) > 1:
        text = f"its nodes {join_names(n.name for n in nodes)} are in groups {join_names(groups)}"
        report.warning("EINSTANCESPLITGROUPS", "instance", item.name, text)
    for node in nodes:
        if config.ndparams(node).get("exclusive_storage"):
            _exclusive(report, config, item, node)


def _exclusive(report: Report, config: Config, item: Instance, node: Node) -> None:
    """With exclusive storage only plain disks can have their physical volumes for themselves."""
    here = [disk for disk in config.disks_of(item) if node.uuid in disk.nodes]
    mirrored = sorted({str(disk.dev_type) for disk in here if traits_of(disk.dev_type).mirrored})
    for template in mirrored:
        text = f"has disks of template {template} on node {node.name}, which has exclusive storage"
        report.error("EINSTANCEUNSUITABLENODE", "instance", item.name, text)
    unknown = [disk.iv_name for disk in here if _is_uncounted(disk)]
    if unknown:
        text = (
            f"the number of spindles of {join_names(unknown)} is not set, but node {node.name} has"
            f" exclusive storage; gnt-instance modify --disk INDEX:spindles=NUMBER {item.name} sets"
            " it"
        )
        report.error("EINSTANCEMISSINGCFGPARAMETER", "instance", item.name, text)


def _is_uncounted(disk: Disk) -> bool:
    return traits_of(disk.dev_type).is_volume and disk.spindles is None


def exclusion_tags(report: Report, config: Config, nodes: Iterable[Node]) -> None:
    """Instances on one node that share a tag which says that they must not."""
    for node in nodes:
        for tag, names in _find_shared_tags(config, config.primaries.get(node.uuid, [])):
            text = f"instances {join_names(names)} share the exclusion tag {tag}"
            report.error("EEXTAGS", "node", node.name, text)


def _find_shared_tags(
    config: Config, instances: Iterable[Instance]
) -> Iterator[tuple[str, list[str]]]:
    prefixes = tuple(
        f"{tag.removeprefix(_EXCLUSION)}:"
        for tag in config.cluster.tags
        if tag.startswith(_EXCLUSION)
    )
    users: dict[str, list[str]] = {}
    for item in instances:
        for tag in item.tags if not item.forthcoming else ():
            if prefixes and tag.startswith(prefixes):
                users.setdefault(tag, []).append(item.name)
    yield from ((tag, names) for tag, names in sorted(users.items()) if len(names) > 1)
