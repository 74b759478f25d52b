"""ganeti-cleaner removes what is old, nothing else, and writes down what it removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganeti.base.clock import SYSTEM
from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.tools import cleaner

DAY = 86400.0


class At:
    """A clock that is paused."""

    def __init__(self, now: float) -> None:
        self.moment = now

    def now(self) -> float:
        return self.moment

    monotonic = now

    def sleep(self, seconds: float) -> None:
        self.moment += seconds


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    found = Paths(tmp_path)
    found.data.mkdir(parents=True)
    found.log.mkdir(parents=True)
    found.ssconf("master_node").write_text("node1.example.com\n")
    return found


def make_old(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    stamp = SYSTEM.now() - days * DAY
    os.utime(path, (stamp, stamp))
    return path


def test_archived_jobs(paths: Paths) -> None:
    gone = make_old(paths.queue / "archive" / "0" / "job-7", 22)
    kept = [
        make_old(paths.queue / "archive" / "0" / "job-8", 20),
        make_old(paths.queue / "archive" / "0" / "notes", 22),
        make_old(paths.queue / "job-9", 22),
        make_old(paths.data / "watcher.group.data", 22),
    ]
    assert cleaner.main(["master"]) == 0
    assert not gone.exists()
    assert all(path.exists() for path in kept)
    [log] = (paths.log / "master-cleaner").iterdir()
    assert log.read_text() == f"removed {gone}\n"


def test_state_of_the_watcher_and_keys_of_transfers(paths: Paths) -> None:
    gone = [
        make_old(paths.data / "watcher.group.data", 22),
        make_old(paths.data / "watcher.group.instance-status", 22),
        paths.run / "crypto" / "x509-old",
    ]
    kept = [
        make_old(paths.data / "watcher.other.data", 1),
        make_old(paths.data / "watcher.pause", 22),
        make_old(paths.queue / "archive" / "0" / "job-7", 22),
        paths.run / "crypto" / "x509-new",
        paths.run / "crypto" / "no-cert",
    ]
    for name, days in (("x509-old", 0), ("x509-new", 1)):
        directory = paths.run / "crypto" / name
        directory.mkdir(parents=True)
        certs.write(directory / "cert", certs.self_signed("x", days=days))
    (paths.run / "crypto" / "no-cert").mkdir()
    assert cleaner.main(["node"]) == 0
    assert [path for path in gone if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_logs_of_earlier_runs(paths: Paths) -> None:
    now = SYSTEM.now()
    for number in range(cleaner.KEEP_LOGS + 3):
        assert cleaner.clean("node", paths, At(now + number)) == []
    logs = sorted(path.name for path in (paths.log / "cleaner").iterdir())
    assert len(logs) == cleaner.KEEP_LOGS


def test_without_a_cluster_nothing_is_done(paths: Paths) -> None:
    kept = make_old(paths.data / "watcher.group.data", 22)
    paths.ssconf("master_node").unlink()
    assert cleaner.main(["node"]) == 0
    assert kept.exists()
    assert not (paths.log / "cleaner").exists()


def test_what_cannot_be_removed_is_told(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_old(paths.data / "watcher.group.data", 22)

    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cleaner.files, "remove", refuse)
    assert cleaner.main(["node"]) == 1
    assert f"cannot remove {path}: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["queue"], ["node", "master"]])
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cleaner.main(words)
    assert ended.value.code == 2
