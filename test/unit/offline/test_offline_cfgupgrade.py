"""cfgupgrade: files before and after, and what it refuses."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path

import old_configs
import pytest

from ganeti import constants
from ganeti.base import daemon, files, jsonio
from ganeti.config import store
from ganeti.net import pem
from ganeti.offline import cfgupgrade
from ganeti.paths import Paths

RECORDED = Path(__file__).parents[2] / "recorded" / "config_3_0_2.json"
MASTER = "node1.example.com"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """The master node of a cluster of 3.0.2."""
    where = Paths(tmp_path / "root")
    where.queue.mkdir(parents=True)
    where.run.mkdir(parents=True)
    monkeypatch.setenv("GANETI_ROOTDIR", str(where.root))
    monkeypatch.setenv("GANETI_HOSTNAME", MASTER)
    shutil.copy(RECORDED, where.config_file)
    where.config_file.chmod(0o640)
    return where


def run(*words: str) -> int:
    return cfgupgrade.main(list(words))


def read_all(where: Paths) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in where.root.rglob("*") if p.is_file()}


def backups(where: Paths) -> list[Path]:
    return sorted(where.data.glob("config.data.backup-*"))


def put(where: Paths, **changes: object) -> None:
    raw = jsonio.loads(where.config_file.read_bytes())
    where.config_file.write_text(jsonio.dumps(raw | changes))


def test_an_upgrade_keeps_the_old_file_and_makes_a_node_that_can_start(
    node: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    before = node.config_file.read_bytes()
    (node.data / "server.pem").write_text("theirs")
    assert run("--force") == 0
    out = capsys.readouterr().out
    assert "was of version 3.0 and is of 3.2 now" in out
    (kept,) = backups(node)
    assert kept.read_bytes() == before
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(node.config_file.stat().st_mode) == 0o640
    config = store.read_config(node)
    assert config.cluster.candidate_certs[config.master.uuid] == pem.digest_of_file(
        node.client_cert
    )
    assert [path.read_text() for path in node.data.glob("server.pem.backup-*")] == ["theirs"]
    assert files.read_text(node.ssconf("master_node")) == f"{MASTER}\n"
    assert files.read_text(node.queue / "version") == "1\n"
    assert run("--force") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert backups(node) == [kept]


def test_a_dry_run_lists_all_and_changes_nothing(
    node: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    (node.data / "rapi_users").write_text("admin secret write\n")
    before = read_all(node)
    assert run("--dry-run") == 0
    assert read_all(node) == before
    out = capsys.readouterr().out.splitlines()
    assert "changed version: 3.0 becomes 3.2" in out
    assert f"{node.data / 'rapi_users'} becomes {node.rapi_users}" in out
    assert out[-1] == "Nothing was changed (--dry-run)."


def test_users_of_the_remote_api_and_state_of_the_watcher_move(node: Paths) -> None:
    old = node.data / "rapi_users"
    old.write_text("admin secret write\n")
    (node.data / "watcher.data").write_text("{}")
    assert run("--force") == 0
    assert node.rapi_users.read_text() == "admin secret write\n"
    assert stat.S_IMODE(node.rapi_users.stat().st_mode) == 0o640
    assert old.is_symlink()
    assert old.read_text() == "admin secret write\n"
    assert not (node.data / "watcher.data").exists()
    assert len(list(node.data.glob("watcher.data.backup-*"))) == 1


def check_refused(node: Paths, capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """What is said when nothing is done."""
    before = read_all(node)
    assert run(*(words or ("--force",))) == code
    assert read_all(node) == before
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.err


def test_two_files_of_users_are_not_merged(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    node.rapi.mkdir()
    for path in (node.data / "rapi_users", node.rapi_users):
        path.write_text("x\n")
    assert "put all of them into the second file" in check_refused(node, capsys, 1)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "damaged, or was only half written"),
        (RECORDED.read_bytes()[:2000], "half written"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1, 2]", "not a cluster configuration"),
        (b'{"version": 2060000}', "upgrades begin at 2.7"),
        (b'{"version": 9010000}', "newer than this software"),
        (b'{"version": 3000000}', "has no cluster"),
        (b'{"version": 3000000, "cluster": {"a": 1, "a": 2}}', "key cluster/a is there twice"),
    ],
)
def test_what_is_no_good_configuration_is_refused(
    node: Paths, capsys: pytest.CaptureFixture[str], content: bytes, wanted: str
) -> None:
    node.config_file.write_bytes(content)
    assert wanted in check_refused(node, capsys, 1)


def test_a_file_that_may_not_be_read(
    node: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as other_user:
        other_user.setattr(Path, "read_bytes", forbidden)
        assert run("--force") == 1
    said = capsys.readouterr().err
    assert f"cannot read {node.config_file}: Permission denied" in said
    assert "Nothing was changed" in said
    assert backups(node) == []


def test_a_cluster_that_is_not_there(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    node.config_file.unlink()
    assert "not a master candidate" in check_refused(node, capsys, constants.EXIT_NOTCLUSTER)


def test_another_node_is_the_master(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    node.ssconf("master_node").write_text("node2.example.com\n")
    said = check_refused(node, capsys, constants.EXIT_NOTMASTER)
    assert "node2.example.com is the master" in said
    assert run("--force", "--ignore-hostname") == 0


def test_nobody_confirms(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    said = check_refused(node, capsys, constants.EXIT_CONFIRMATION, "--verbose")
    assert "add --force" in said


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 13), ("", 13)])
def test_a_person_is_asked(
    node: Paths, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    before = node.config_file.read_bytes()
    assert run() == code
    assert asked == [f"Upgrade {node.config_file} from 3.0 to 3.2? [y/N] "]
    assert (node.config_file.read_bytes() == before) == (code != 0)


def test_the_master_daemon_runs(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    pid_file = daemon.PidFile(node.pid_file(constants.MASTERD))
    pid_file.acquire()
    try:
        said = check_refused(node, capsys, 1)
    finally:
        pid_file.release()
    assert f"ganeti-masterd runs (pid {os.getpid()})" in said


def test_somebody_answers_on_the_socket(
    node: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node.socket_dir.mkdir()
    monkeypatch.chdir(node.socket_dir)  # a full path may be too long for an address
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(node.luxi_socket.name)
        server.listen(1)
        assert "a daemon answers on" in check_refused(node, capsys, 1)


def test_jobs_that_have_not_ended(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    for job_id, status in ((3, "success"), (4, "running"), (12, "queued")):
        ops = [{"status": "success", "input": {}}, {"status": status, "input": {}}]
        (node.queue / f"job-{job_id}").write_text(jsonio.dumps({"id": job_id, "ops": ops}))
    assert "have not ended: 4, 12." in check_refused(node, capsys, 1)


def test_a_queue_of_another_format(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    (node.queue / "version").write_text("2\n")
    assert "says 2" in check_refused(node, capsys, 1)


def test_unknown_keys_need_a_word(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    put(node, shiny={"a": 1})
    assert "  shiny\n" in check_refused(node, capsys, 1)
    assert run("--force", "--drop-unknown") == 0


def test_defects_are_listed_and_can_be_lived_with(
    node: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    put(node, disks={})
    said = check_refused(node, capsys, 1)
    assert "problem: instance inst1.example.com has the missing disk" in said
    assert "2 defects" in said
    assert run("--force", "--no-verify") == 0


def test_a_disk_that_is_full_leaves_the_old_file(
    node: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.config_file.read_bytes()

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ganeti.offline.cfgupgrade.files.write_atomic", full)
    assert run("--force") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert node.config_file.read_bytes() == before


def test_a_second_try_after_a_crash_finds_the_certificates(
    node: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crash:
        crash.setattr(cfgupgrade._Run, "_write", lambda *_: (_ for _ in ()).throw(OSError(5, "x")))
        assert run("--force") == 1
    assert node.ca_cert.exists()
    assert run("--force") == 0
    config = store.read_config(node)
    digest = pem.digest_of_file(node.client_cert)
    assert config.cluster.candidate_certs[config.master.uuid] == digest
    assert len(backups(node)) == 2


def test_down_and_up_again(node: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--force") == 0
    config = store.read_config(node)
    (node.journal_file).write_bytes(b"")
    assert run("--downgrade", "--to", "3.0", "--force") == 0
    assert jsonio.loads(node.config_file.read_bytes())["version"] == 3_000_000
    assert not node.journal_file.exists()
    assert "only one of 3.2 can be taken back" in check_refused(
        node, capsys, 1, "--downgrade", "-f"
    )
    assert run("--force") == 0
    assert store.read_config(node).data == config.data


def test_the_words_for_going_back_are_checked(
    node: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--force") == 0
    assert "choose from 3.1, 3.0, 2.13" in check_refused(
        node, capsys, 1, "--downgrade", "--to", "2.9", "--force"
    )
    with pytest.raises(SystemExit) as ended:
        run("--to", "3.0")
    assert ended.value.code == constants.EXIT_USAGE


def test_a_copy_elsewhere_gets_no_certificates(tmp_path: Path) -> None:
    raw = old_configs.render(old_configs.facts(11), 2_070_000)
    (tmp_path / "config.data").write_text(jsonio.dumps(raw))
    assert run("--path", str(tmp_path), "--force") == 0
    assert jsonio.loads((tmp_path / "config.data").read_bytes())["version"] == 3_020_000
    assert not list(tmp_path.rglob("*.pem"))


def test_other_nodes_are_named_with_what_they_need(
    node: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = old_configs.facts(11)
    monkeypatch.setenv("GANETI_HOSTNAME", "node0.example.com")
    node.config_file.write_text(jsonio.dumps(old_configs.render(known, 2_090_000)))
    assert run("--force") == 0
    out = capsys.readouterr().out
    names = sorted(entry["name"] for entry in known.nodes.values())
    assert [f"  gnt-node add --readd {name}" for name in names[1:]] == [
        line for line in out.splitlines() if "--readd" in line
    ]
