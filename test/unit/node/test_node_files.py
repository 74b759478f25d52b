"""Files that the master writes on a node, and those it must never be able to write."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from local_node import LocalNode
from needs import needs_root

from ganeti import errors
from ganeti.base.files import FileLock
from ganeti.model import ssconf_keys
from ganeti.node import distributed
from ganeti.node import files as node_files
from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.wire import encode_content

ME = pwd.getpwuid(os.geteuid()).pw_name
MY_GROUP = grp.getgrgid(os.getegid()).gr_name
KNOWN_HOSTS = "/var/lib/ganeti/known_hosts"


def upload(node: LocalNode, name: str, text: str = "new\n", mode: int = 0o644) -> None:
    node.upload_file_single(name, encode_content(text), mode, ME, MY_GROUP, 1000.0, 2000.0)


def read_all(root: Path) -> dict[str, bytes]:
    """Content of all files below a directory."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# upload


@pytest.mark.parametrize(
    "name",
    [
        "/var/lib/ganeti/ca.pem",
        "/var/lib/ganeti/rapi/users",
        "/etc/ganeti/vnc-cluster-password",
    ],
)
def test_a_distributed_file_is_replaced(node: LocalNode, paths: Paths, name: str) -> None:
    upload(node, name, "first\n")
    upload(node, name, "second " * 200)
    file = paths.under(name)
    assert (file.stat().st_atime, file.stat().st_mtime) == (1000.0, 2000.0)
    assert file.read_text() == "second " * 200


@pytest.mark.parametrize(
    "name",
    [
        "/etc/ganeti/file-storage-paths",
        "/etc/ganeti/hooks/instance-start-pre.d/50-mine",
        "/etc/ganeti/restricted-commands/reboot",
        "/etc/ganeti/scripts/master-ip-setup",
        "/etc/ganeti/kvm-vif-bridge",
        "/srv/ganeti/os/debian/create",
        "/srv/ganeti/extstorage/array/attach",
        "/usr/local/lib/ganeti/os/debian/create",
        "/etc/hosts",
        "/var/lib/ganeti/config.data",
    ],
)
def test_files_that_bound_the_master_are_not_its_to_replace(
    node: LocalNode, paths: Paths, name: str
) -> None:
    file = paths.under(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("of the administrator\n")
    before = read_all(paths.root)
    with pytest.raises(errors.FileStoragePathError, match="not one of the files"):
        upload(node, name)
    assert read_all(paths.root) == before


@pytest.mark.parametrize("place", ["/srv/ganeti/os", "/srv/ganeti/extstorage", "/srv/ganeti"])
def test_no_disk_can_be_made_where_programs_are_looked_for(
    node: LocalNode, paths: Paths, place: str
) -> None:
    node.write_ssconf_files({"file_storage_dir": place})
    paths.under("/srv/ganeti/os").mkdir(parents=True)
    with pytest.raises(errors.FileStoragePathError, match="directory"):
        node.file_storage_dir_create(str(paths.under("/srv/ganeti/os/mine")))
    assert not paths.under("/srv/ganeti/os/mine").exists()


def test_owner_and_mode_are_set(node: LocalNode, paths: Paths) -> None:
    upload(node, KNOWN_HOSTS, mode=0o640)
    status = paths.under(KNOWN_HOSTS).stat()
    assert status.st_mode & 0o7777 == 0o640
    assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


def test_secrets_are_never_readable_by_everybody(node: LocalNode, paths: Paths) -> None:
    upload(node, "/var/lib/ganeti/hmac.key", mode=0o644)
    assert paths.hmac_key.stat().st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("mode", [0o4644, 0o2644, 0o1644, 0o646, 0o666])
def test_dangerous_modes_are_refused(node: LocalNode, paths: Paths, mode: int) -> None:
    with pytest.raises(errors.ParameterError, match="mode"):
        upload(node, KNOWN_HOSTS, mode=mode)
    assert not paths.under(KNOWN_HOSTS).exists()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "/var/lib/ganeti/../../../etc/passwd",
        "/var/lib/ganeti/./known_hosts",
        "/var/lib/ganeti//known_hosts",
        "//var/lib/ganeti/known_hosts",
        "/var/lib/ganeti/known_hosts/",
        "/var/lib/ganeti/known_hosts\0",
        "var/lib/ganeti/known_hosts",
        "known_hosts",
        "",
        "/var/lib/ganeti/server.pem",
        "/var/lib/ganeti/client.pem",
        "/var/lib/ganeti/ssconf_master_node",
        "/var/lib/ganeti/queue/job-1",
        "/etc/ganeti/hooks/instance-start-pre.d/x",
    ],
)
def test_all_other_names_are_refused(node: LocalNode, paths: Paths, name: str) -> None:
    before = read_all(paths.root)
    with pytest.raises(errors.FileStoragePathError, match="not one of the files"):
        upload(node, name)
    assert read_all(paths.root) == before


def test_names_with_a_root_are_refused(node: LocalNode, paths: Paths, tmp_path: Path) -> None:
    for root in (paths.root, tmp_path / "other"):
        with pytest.raises(errors.FileStoragePathError):
            upload(node, f"{root}{KNOWN_HOSTS}")


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(
    node: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = paths.under(KNOWN_HOSTS)
    link.symlink_to(victim)
    upload(node, KNOWN_HOSTS)
    assert victim.read_text() == "precious"
    assert link.read_text() == "new\n"
    assert not link.is_symlink()


def test_a_directory_that_leads_elsewhere_is_refused(
    node: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (paths.data / "rapi").symlink_to(elsewhere)
    with pytest.raises(errors.FileStoragePathError, match="symbolic link"):
        upload(node, "/var/lib/ganeti/rapi/users")
    assert list(elsewhere.iterdir()) == []


def test_content_that_cannot_be_decoded_changes_nothing(node: LocalNode, paths: Paths) -> None:
    upload(node, KNOWN_HOSTS)
    for content in ([1, "no base64 of zlib"], [7, "x"], ["x"], []):
        with pytest.raises(errors.ParseError):
            node.upload_file_single(KNOWN_HOSTS, content, 0o644, ME, MY_GROUP, 1.0, 1.0)
    assert paths.under(KNOWN_HOSTS).read_text() == "new\n"


@needs_root("to give files to another user")
@pytest.mark.parametrize(("owner", "group"), [("nobody-here", MY_GROUP), (ME, "nobody-here")])
def test_unknown_owners_are_named(node: LocalNode, owner: str, group: str) -> None:
    with pytest.raises(errors.ParameterError, match="nobody-here"):
        node.upload_file_single(KNOWN_HOSTS, [0, "x"], 0o644, owner, group, 1.0, 1.0)


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -1.0])
def test_impossible_times_are_refused(node: LocalNode, moment: float) -> None:
    with pytest.raises(errors.ParameterError, match="times"):
        node.upload_file_single(KNOWN_HOSTS, [0, "x"], 0o644, ME, MY_GROUP, 1.0, moment)


def test_checksums_are_those_of_the_content(node: LocalNode, paths: Paths) -> None:
    upload(node, KNOWN_HOSTS, "abc")
    found = distributed.checksums([KNOWN_HOSTS, "/var/lib/ganeti/ca.pem"], paths)
    assert found == {KNOWN_HOSTS: hashlib.sha1(b"abc").hexdigest()}


def test_checksums_of_other_files_are_refused(paths: Paths) -> None:
    with pytest.raises(errors.FileStoragePathError):
        distributed.checksums(["/etc/shadow"], paths)


# ssconf


def test_ssconf_values_become_files_for_everybody(node: LocalNode, paths: Paths) -> None:
    node.write_ssconf_files(
        {"master_node": "node1", "cluster_tags": "", "node_list": "node1\nnode2\n"}
    )
    assert paths.ssconf("master_node").read_bytes() == b"node1\n"
    assert paths.ssconf("cluster_tags").read_bytes() == b""
    assert paths.ssconf("node_list").read_bytes() == b"node1\nnode2\n"
    assert paths.ssconf("master_node").stat().st_mode & 0o777 == 0o444


def test_unchanged_ssconf_files_are_not_written_again(node: LocalNode, paths: Paths) -> None:
    node.write_ssconf_files({"master_node": "node1", "node_list": "node1"})
    before = {key: paths.ssconf(key).stat().st_ino for key in ("master_node", "node_list")}
    node.write_ssconf_files({"master_node": "node2", "node_list": "node1"})
    assert paths.ssconf("node_list").stat().st_ino == before["node_list"]
    assert paths.ssconf("master_node").stat().st_ino != before["master_node"]


def test_it_is_noticed_that_another_node_is_the_master(context: NodeContext) -> None:
    noticed: list[str] = []
    files = node_files.Files(context, lambda: noticed.append(context.read_master()))
    files.write_ssconf_files({"master_node": "node1", "node_list": "node1"})
    files.write_ssconf_files({"master_node": "node1", "node_list": "node1\nnode2"})
    files.write_ssconf_files({"master_node": "node2", "node_list": "node1\nnode2"})
    assert noticed == ["node1", "node2"]


@pytest.mark.parametrize("key", ["nosuch", "", "../config.data", "master_node/x"])
def test_one_unknown_key_keeps_all_from_being_written(
    node: LocalNode, paths: Paths, key: str
) -> None:
    before = read_all(paths.root)
    with pytest.raises(errors.ConfigurationError, match="unknown ssconf file"):
        node.write_ssconf_files({"master_node": "node1", key: "x"})
    assert read_all(paths.root) == before


def test_too_large_a_value_is_refused(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.ConfigurationError, match="131072"):
        node.write_ssconf_files({"master_node": "x" * ssconf_keys.MAX_SIZE})
    assert not paths.ssconf("master_node").exists()


def test_somebody_is_told_when_ssconf_was_written(context: NodeContext, node: LocalNode) -> None:
    told: list[bool] = []
    context.on_ssconf = lambda: told.append(True)
    node.write_ssconf_files({"master_node": "node1"})
    assert told == [True]


def hold_lock(paths: Paths) -> FileLock:
    paths.locks.mkdir(parents=True)
    lock = FileLock(paths.locks / "ganeti-ssconf.lock")
    lock.acquire()
    return lock


def test_ssconf_waits_for_others_that_write(node: LocalNode, paths: Paths) -> None:
    lock = hold_lock(paths)
    writer = threading.Thread(target=node.write_ssconf_files, args=({"master_node": "node1"},))
    writer.start()
    writer.join(0.1)
    assert not paths.ssconf("master_node").exists()
    lock.release()
    writer.join(5)
    assert paths.ssconf("master_node").read_text() == "node1\n"


@pytest.mark.parametrize("stopping", [False, True])
def test_ssconf_gives_up_when_others_never_end(
    context: NodeContext,
    node: LocalNode,
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    stopping: bool,
) -> None:
    monkeypatch.setattr(node_files, "LOCK_WAIT", 30 if stopping else 0.05)
    if stopping:
        context.stopping.set()
    lock = hold_lock(paths)
    with pytest.raises(errors.LockError, match="ganeti-ssconf"):
        node.write_ssconf_files({"master_node": "node1"})
    lock.release()


# the watcher's pause


def test_the_watcher_is_paused_and_released(node: LocalNode, paths: Paths) -> None:
    node.set_watcher_pause(1234567890.7)
    assert paths.watcher_pause.read_text() == "1234567890\n"
    assert paths.watcher_pause.stat().st_mode & 0o777 == 0o644
    node.set_watcher_pause(None)
    node.set_watcher_pause(None)
    assert not paths.watcher_pause.exists()


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -5.0])
def test_an_impossible_pause_is_refused(node: LocalNode, moment: float) -> None:
    with pytest.raises(errors.ParameterError, match="paused"):
        node.set_watcher_pause(moment)


# exports


def test_finished_exports_are_listed(node: LocalNode, paths: Paths) -> None:
    assert node.export_list() == []
    for name in ("web2", "web1", "web3.new", ".hidden"):
        (paths.exports / name).mkdir(parents=True)
    (paths.exports / "notes").write_text("no export")
    assert node.export_list() == ["web1", "web2"]


# a disk that is full or not writable


@pytest.mark.parametrize(
    "attempt",
    [
        lambda node: upload(node, KNOWN_HOSTS),
        lambda node: node.write_ssconf_files({"master_node": "node1"}),
        lambda node: node.set_watcher_pause(1.0),
    ],
)
def test_what_cannot_be_written_is_a_named_error(
    node: LocalNode, paths: Paths, attempt: Callable[[LocalNode], None]
) -> None:
    paths.data.rename(paths.data.with_name("moved"))
    paths.data.write_text("in the way")
    with pytest.raises(errors.GenericError, match="cannot"):
        attempt(node)
