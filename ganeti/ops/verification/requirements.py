"""Verify what a node must have: its set-up, programs and directories. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.config import role_stores
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report
from ganeti.paths import Paths
from ganeti.storage.registry import TEMPLATES, traits_of

#: Answers of a node to its checks, by name.
Answers = Mapping[str, Any]

#: Setting of the cluster with a directory -> check of that directory, code of the finding.
_DIRECTORIES: Mapping[str, tuple[str, str]] = {
    "file_storage_dir": ("file-storage-path", "ENODEFILESTORAGEPATHUNUSABLE"),
    "shared_file_storage_dir": (
        "shared-file-storage-path",
        "ENODESHAREDFILESTORAGEPATHUNUSABLE",
    ),
    "gluster_storage_dir": ("gluster-storage-path", "ENODEGLUSTERSTORAGEPATHUNUSABLE"),
}


def checks(config: Config, paths: Paths, nodes: Iterable[Node]) -> JsonObject:
    """Return the checks for nodes, with their arguments."""
    enabled = config.cluster.enabled_disk_templates
    asked: JsonObject = {"nodesetup": None}
    used = [traits_of(name) for name in enabled]
    for field, (check, _code) in _DIRECTORIES.items():
        directory = getattr(config.cluster, field)
        if directory and any(traits.directory == field for traits in used):
            asked[check] = directory
    if any(traits.file_based for traits in used):
        asked["allowed-file-storage-paths"] = None
    if programs := _oob_programs(config):
        asked["oob-paths"] = programs
    if agents := _list_devices(config, "fence_agent"):
        asked["fence-agents"] = agents
    if watchdogs := _list_devices(config, "watchdog"):
        asked["watchdogs"] = watchdogs
    asked.update(role_stores.list_checks(config))
    scripts = {path for item in nodes for path in _user_scripts(config, paths, item)}
    if scripts:
        asked["user-scripts"] = sorted(scripts)
    return asked


def _oob_programs(config: Config) -> list[str]:
    found = {str(config.ndparams(n).get("oob_program") or "") for n in config.nodes.values()}
    return sorted(found - {""})


def _list_devices(config: Config, parameter: str) -> list[tuple[str, str]]:
    """The values of a node parameter that are set, each with its node."""
    nodes = sorted(config.nodes.values(), key=lambda node: node.name)
    found = [(str(config.ndparams(node).get(parameter) or ""), node.name) for node in nodes]
    return [pair for pair in found if pair[0]]


def _user_scripts(config: Config, paths: Paths, item: Node) -> set[str]:
    """Programs of the administrator that operations run on a node, by full path.

    A name without a directory is looked for by the tools of the hypervisor.
    """
    cluster = config.cluster
    found = set()
    if cluster.use_external_mip_script and item.master_capable:
        found.add(paths.common(paths.master_ip_script))
    if not item.vm_capable:
        return found
    used = [(name, cluster.hvparams.get(name, {})) for name in cluster.enabled_hypervisors]
    here = (*config.primaries.get(item.uuid, []), *config.secondaries.get(item.uuid, []))
    used += [(i.hypervisor, config.hvparams(i)) for i in here if i.hypervisor is not None]
    for hypervisor, values in used:
        names = HYPERVISORS.get(hypervisor).traits.scripts
        found.update(str(values.get(name) or "") for name in names)
    return {path for path in found if path.startswith("/")}


def node(report: Report, config: Config, paths: Paths, item: Node, answers: Answers) -> None:
    """Report what is wrong with one node."""
    name = item.name
    for text in list_texts(answers.get("nodesetup")):
        report.error("ENODESETUP", "node", name, text)
    if flaw := answers.get("watchdogs"):
        report.error("ENODEFENCING", "node", name, f"watchdog: {flaw}")
    if item.master_candidate:
        # the master runs them, and each candidate may become the master
        for text in list_texts(answers.get("oob-paths")):
            report.error("ENODEOOBPATH", "node", name, f"out-of-band program: {text}")
        for text in list_texts(answers.get("fence-agents")):
            report.error("ENODEFENCING", "node", name, f"fence agent: {text}")
        for text in list_texts(answers.get("etcd")):
            report.error("ENODEETCD", "node", name, text)
        for text in list_texts(answers.get("pacemaker")):
            report.error("ENODEPACEMAKER", "node", name, text)
    wrong = _user_scripts(config, paths, item).intersection(list_texts(answers.get("user-scripts")))
    if wrong:
        text = f"user scripts are missing or not executable: {', '.join(sorted(wrong))}"
        report.error("ENODEUSERSCRIPTS", "node", name, text)
    if item.vm_capable:
        _directories(report, config, item, answers)


def _directories(report: Report, config: Config, item: Node, answers: Answers) -> None:
    for field, (check, code) in _DIRECTORIES.items():
        if text := answers.get(check):
            users = [t for t in TEMPLATES.names() if traits_of(t).directory == field]
            directory = getattr(config.cluster, field)
            where = f"disks of template {join_names(users)} cannot be in {directory}"
            report.error(code, "node", item.name, f"{where}: {text}")
    forbidden = answers.get("allowed-file-storage-paths")
    if isinstance(forbidden, str):
        report.error("ENODEFILESTORAGEPATHS", "node", item.name, forbidden)
    elif forbidden:
        text = f"directories that no disks may be in are allowed: {', '.join(forbidden)}"
        report.error("ENODEFILESTORAGEPATHS", "node", item.name, text)


def log_in(report: Report, master: Node, answer: object) -> None:
    """Report nodes that the master cannot log in to; the answer is ``{node: text}``."""
    found = answer if isinstance(answer, dict) else {master.name: str(answer)}
    for name, text in found.items():
        report.error(
            "ENODESSH",
            "node",
            name,
            f"the master cannot run a command here with its remote shell: {text}; gnt-cluster"
            " command and copyfile and gnt-node add --readd need that",
        )


def list_texts(answer: Any) -> Iterable[str]:
    """Texts of a list, without those for what is fine; a check that failed is a text."""
    if isinstance(answer, str):
        return [answer]
    return [text for text in answer or () if text]
