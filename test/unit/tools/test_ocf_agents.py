"""The frame of the resource agents of Pacemaker; test/cluster has what they do."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ganeti import constants
from ganeti.base import daemon
from ganeti.base.clock import Deadline
from ganeti.config.pacemaker_role import Grant
from ganeti.paths import Paths
from ganeti.recovery.role import Claim
from ganeti.tools import ocf_agent, ocf_master_role, ocf_nodes
from ganeti.tools.ocf_agent import Agent, Code

AGENTS = [ocf_master_role.AGENT, ocf_nodes.AGENT]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_meta_data_have_the_form_of_the_api(
    agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ocf_agent.run(agent, ["meta-data"]) == Code.SUCCESS
    text = capsys.readouterr().out
    assert '<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">' in text
    root = ElementTree.fromstring(text)
    assert (root.tag, root.get("name")) == ("resource-agent", agent.name)
    assert [item.tag for item in root] == [
        "version",
        "longdesc",
        "shortdesc",
        "parameters",
        "actions",
    ]
    timeouts = {item.get("name"): item.get("timeout") for item in root.findall("actions/action")}
    assert timeouts.keys() == {"start", "stop", "monitor", "meta-data", "validate-all"}
    assert timeouts["stop"] == f"{agent.timeouts['stop']}s"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_only_root_runs_them(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GANETI_ROOTDIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ocf_agent.run(agent, ["monitor"]) == Code.PERMISSION
    assert capsys.readouterr().err == f"ocf-exit-reason:{agent.name} needs root\n"


def test_a_daemon_gets_less_time_to_stop_than_the_action_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[float] = []

    def stop(request: ocf_agent.Request) -> Code:
        found.append(request.count_stop_time())
        return Code.SUCCESS

    agent = Agent("a", "", "", stop, stop, stop, lambda _request: None, {"stop": 300}, 10)
    monkeypatch.setenv("GANETI_ROOTDIR", "/nonexistent")
    for timeout in ("20000", "300000"):
        monkeypatch.setenv("OCF_RESKEY_CRM_meta_timeout", timeout)
        assert ocf_agent.run(agent, ["stop"]) == Code.SUCCESS
    monkeypatch.delenv("OCF_RESKEY_CRM_meta_timeout")
    assert ocf_agent.run(agent, ["stop"]) == Code.SUCCESS
    assert 8 < found[0] <= 9
    assert found[1:] == [90, 90]


# the stop of the role ----------------------------------------------------------------------------


CLAIM = Claim(7, "node1.example.com")


def test_a_daemon_that_claims_the_role_during_the_stop_is_stopped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths(tmp_path)
    grant = Grant(paths)
    grant.give()
    assert grant.change(lambda _record: True, CLAIM, 60)
    stopped: list[bool] = []

    def stop_master(_paths: Paths, _timeout: float) -> None:
        stopped.append(paths.master_grant.exists())

    monkeypatch.setattr(ocf_master_role.services, "stop_master", stop_master)
    request = ocf_agent.Request(Deadline(60.0), paths)
    assert ocf_master_role.stop(request) == Code.SUCCESS
    assert stopped == [True, False], "again when nobody can claim it any more"
    assert grant.read() is None


def test_a_stop_that_leaves_a_master_daemon_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths(tmp_path)
    Grant(paths).give()
    Grant(paths).change(lambda _record: True, CLAIM, 60)
    monkeypatch.setattr(ocf_master_role.services, "stop_master", lambda _paths, _timeout: None)
    pid_file = daemon.PidFile(paths.pid_file(constants.MASTERD))
    pid_file.acquire()
    try:
        with pytest.raises(ocf_agent.Refusal, match="does not end"):
            ocf_master_role.stop(ocf_agent.Request(Deadline(60.0), paths))
    finally:
        pid_file.release()
    assert not paths.master_grant.exists()
