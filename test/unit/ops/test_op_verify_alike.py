"""What verification makes of OS definitions and files that nodes have."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from op_samples import Findings, config, node, with_cluster

from ganeti.model.config import Config
from ganeti.ops.verification import os_definitions, shared
from ganeti.paths import Paths

PATHS = Paths(Path("/nowhere"))


# OS definitions -----------------------------------------------------------------------------------


def definition(name: str = "noop", **more: Any) -> dict[str, Any]:
    facts = {"name": name, "path": f"/os/{name}", "valid": True, "diagnose": ""}
    return {**facts, "api_versions": [20], "variants": [], "parameters": [], **more}


def oses(findings: Findings, *answers: Any, of: Config | None = None) -> list[str]:
    of = of or config(node(2), node(3))
    uuids = [of.cluster.master_node, "node-2", "node-3", "node-4"]
    listed = {uuid: {"oslist": answer} for uuid, answer in zip(uuids, answers)}
    os_definitions.judge(findings.report, of, of.nodes.values(), listed)
    return [line.removeprefix("ERROR:ENODEOS:node:") for line in findings.lines]


def test_definitions_that_are_alike(findings: Findings) -> None:
    assert oses(findings, *[[definition(), definition("debian")]] * 3) == []
    assert oses(findings, [definition()], None, None) == []
    described = [definition(parameters=[["disk", "Which disk"]])]
    assert oses(findings, described, [definition(parameters=[["disk", "Other words"]])]) == []


def test_a_definition_that_is_missing(findings: Findings) -> None:
    assert oses(findings, [definition()], [definition()], []) == [
        "node3.example.com:OS noop is missing, but node1.example.com, node2.example.com have it"
    ]


def test_a_definition_that_only_one_node_has(findings: Findings) -> None:
    assert oses(findings, [], [definition()]) == [
        "node1.example.com:OS noop is missing, but node2.example.com has it"
    ]


def test_a_definition_that_cannot_be_used(findings: Findings) -> None:
    broken = definition(valid=False, diagnose="no create script", variants=["x"])
    assert oses(findings, [broken], [definition()]) == [
        "node1.example.com:OS noop in /os/noop cannot be used: no create script"
    ]


def test_a_definition_that_no_node_can_use(findings: Findings) -> None:
    broken = definition(valid=False, diagnose="x")
    other = definition(valid=False, diagnose="y", variants=["x"])
    assert oses(findings, [broken], [other]) == [
        "node1.example.com:OS noop in /os/noop cannot be used: x",
        "node2.example.com:OS noop in /os/noop cannot be used: y",
    ]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"api_versions": [15, 20]}, "API versions of OS noop are 15, 20 here, but 20 on node"),
        ({"variants": ["b", "a"]}, "variants of OS noop are a, b here, but none on node"),
        ({"parameters": [["disk", "x"]]}, "parameters of OS noop are disk here, but none on node"),
    ],
)
def test_a_definition_that_differs(findings: Findings, more: dict[str, Any], text: str) -> None:
    assert oses(findings, [definition()], [definition(**more)]) == [
        f"node2.example.com:{text} node1.example.com"
    ]


def test_definitions_that_nobody_sees(findings: Findings) -> None:
    """A blacklisted one, a second one of a name, and those of a node without instances."""
    of = config(node(2), node(3, vm_capable=False))
    of = with_cluster(of, blacklisted_os=("old",))
    second = [definition(), definition(variants=["x"])]
    assert oses(findings, [definition(), definition("old")], second, "no answer", of=of) == []


def test_a_node_that_cannot_tell_its_definitions(findings: Findings) -> None:
    assert oses(findings, [definition()], "no directory") == [
        "node2.example.com:OS definitions: no directory"
    ]


# files --------------------------------------------------------------------------------------------


def sums(findings: Findings, of: Config, *answers: Any) -> list[str]:
    uuids = [of.cluster.master_node, "node-2", "node-3"]
    listed = {uuid: {"filelist": answer} for uuid, answer in zip(uuids, answers)}
    shared.judge(findings.report, of, PATHS, of.nodes.values(), listed)
    return findings.lines


def test_files_are_compared_with_those_of_the_master(findings: Findings) -> None:
    of = config(node(2, master_candidate=True), node(3))
    key, users = PATHS.common(PATHS.hmac_key), PATHS.common(PATHS.rapi_users)
    assert {key, users} <= set(shared.names(PATHS))
    files = {key: "1", users: "2"}
    assert sums(findings, of, files, files, {key: "1"}) == []
    assert sums(findings, of, None, {key: "9"}) == []  # nothing to compare with
    prefix = "ERROR:ECLUSTERFILECHECK:cluster:cluster.example.com:file"
    send = "gnt-cluster redist-conf sends the file of the master again"
    assert sums(findings, of, files, {key: "9"}, {users: "2"}) == [
        f"{prefix} {key} is missing on node3.example.com; {send}",
        f"{prefix} {key} of node2.example.com differs from that of the master; {send}",
        f"{prefix} {users} is missing on node2.example.com; {send}",
        f"{prefix} {users} is on node3.example.com, but only master candidates may have it; remove"
        " it there",
    ]


def test_a_file_that_the_master_does_not_have(findings: Findings) -> None:
    key = PATHS.common(PATHS.hmac_key)
    of = config(node(2), node(3))
    assert sums(findings, of, {}, {key: "1"}, {key: "1"}) == [
        f"ERROR:ECLUSTERFILECHECK:cluster:cluster.example.com:file {key} is missing on the master"
        " node, but node2.example.com, node3.example.com have it"
    ]


def test_a_node_that_cannot_tell_its_files(findings: Findings) -> None:
    assert sums(findings, config(node(2)), {}, "no answer") == [
        "ERROR:ENODEFILECHECK:node:node2.example.com:files are not compared: no answer"
    ]


def ssconf(findings: Findings, **answers: Any) -> list[str]:
    sent = {"cluster_name": "c", "master_node": "n"}
    of = config(node(2), node(3))
    told = {
        uuid: (of.nodes[uuid], answer)
        for uuid, answer in ((key.replace("_", "-"), value) for key, value in answers.items())
    }
    shared.judge_ssconf(findings.report, of, PATHS, sent, told)
    return findings.lines


def test_ssconf_files_are_compared_with_what_was_sent(findings: Findings) -> None:
    name, master = shared.ssconf_names(PATHS, {"cluster_name": "c", "master_node": "n"})
    good = {name: hashlib.sha1(b"c\n").hexdigest(), master: hashlib.sha1(b"n\n").hexdigest()}
    assert ssconf(findings, node_2=good) == []
    where = "ERROR:ECLUSTERFILECHECK:cluster:cluster.example.com"
    again = "gnt-cluster redist-conf sends them again"
    assert ssconf(findings, node_2={**good, master: "0"}, node_3={}) == [
        f"{where}:1 file of node node2.example.com differs from what the master sent:"
        f" ssconf_master_node; {again}",
        f"{where}:2 files of node node3.example.com differ from what the master sent:"
        f" ssconf_cluster_name, ssconf_master_node; {again}",
    ]


def test_a_node_that_cannot_tell_its_ssconf_files(findings: Findings) -> None:
    assert ssconf(findings, node_3="no answer") == [
        "ERROR:ENODEFILECHECK:node:node3.example.com:files are not compared: no answer"
    ]
