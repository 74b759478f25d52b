"""Which daemons of its node the watcher starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import constants, errors
from ganeti.base import files, services
from ganeti.base.clock import SYSTEM
from ganeti.paths import Paths
from ganeti.upkeep.round import Here, Options
from ganeti.watcher import daemons


class Started:
    """A node on which nothing runs, and the daemons that were started there."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, master: bool) -> None:
        self.here = Here(Paths(root), SYSTEM, Options(job_age=0))
        self.names: list[str] = []
        where = self.here.paths
        files.ensure_dir(where.data)
        files.ensure_dir(where.version_lock.parent)
        for needed in (where.server_cert, where.config_file):
            needed.touch()
        monkeypatch.setattr(services, "is_running", lambda _name, _paths: False)
        monkeypatch.setattr(services, "start", lambda name, _paths: self.names.append(name))
        monkeypatch.setattr(services, "stop", lambda name, *_rest: self.names.append(name))
        name = "node1" if master else "node2"
        monkeypatch.setattr(daemons, "master_name", lambda _paths: "node1")
        monkeypatch.setattr("ganeti.paths.hostname", lambda: name)


def test_the_daemon_of_a_node_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Started(tmp_path, monkeypatch, master=False)
    daemons.run(node.here)
    assert node.names == [constants.NODED]


def test_none_is_started_while_the_node_goes_over_to_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(_here: Here) -> None:
        raise errors.NoMasterError("nothing listens")

    node = Started(tmp_path, monkeypatch, master=True)
    for probe in ("_ask_master", "_ask_rapi"):
        monkeypatch.setattr(daemons, probe, no_answer)
    with files.FileLock(node.here.paths.version_lock).hold():
        daemons.run(node.here)
    assert node.names == []
    with pytest.raises(errors.OpExecError, match="does not answer after a new start"):
        daemons.run(node.here)
    assert constants.MASTERD in node.names
