"""The checks of a node, asked for together."""

from __future__ import annotations

import hashlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, instance, misbehave

from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.net import certs
from ganeti.node.context import NodeContext
from ganeti.paths import Paths

ALL = {
    "allowed-file-storage-paths",
    "bridges",
    "certificates",
    "client-cert",
    "drbd-helper",
    "drbd-list",
    "drbd-version",
    "exclusive-pvs",
    "file-storage-bounds",
    "file-storage-path",
    "filelist",
    "gluster-storage-path",
    "hvinfo",
    "hvparms",
    "hypervisor",
    "instancelist",
    "lvlist",
    "master-ip",
    "node-net-test",
    "nodelist",
    "nodesetup",
    "nonvmnodes",
    "oob-paths",
    "oslist",
    "pvlist",
    "shared-file-storage-path",
    "ssh-clutter",
    "ssh-setup",
    "time",
    "user-scripts",
    "version",
    "vglist",
    "watchdogs",
}


class SetClock(Clock):
    """A clock that shows one moment."""

    def __init__(self, moment: float) -> None:
        self.moment = moment

    def now(self) -> float:
        return self.moment

    def monotonic(self) -> float:
        return SYSTEM.monotonic()


def check(node: LocalNode, name: str, argument: Any, **hvparams: Any) -> Any:
    answer = node.node_verify({name: argument}, "cluster", hvparams)
    assert list(answer) == [name]
    return answer[name]


def test_every_check_has_an_answer_that_is_json_whatever_is_asked(node: LocalNode) -> None:
    for argument in (None, 5, "x", ["x"], [["x", "y", {}]], {"a": 1}):
        answer = node.node_verify(dict.fromkeys(ALL, argument), "cluster", {})
        assert set(answer) == ALL
        jsonio.dumps(answer)


@pytest.mark.parametrize("name", ["nosuch", ""])
def test_what_is_not_checked_is_answered_with_a_text(node: LocalNode, name: str) -> None:
    assert str(check(node, name, None)).startswith("not checked:")


def test_version_and_time(node: LocalNode) -> None:
    assert check(node, "version", None) == [3020000, "3.2.0"]
    seconds, micros = check(node, "time", None)
    assert abs(seconds + micros / 1e6 - time.time()) < 60


def test_checksums_of_distributed_files_only(node: LocalNode, paths: Paths) -> None:
    (paths.data / "known_hosts").write_text("abc")
    names = ["/var/lib/ganeti/known_hosts", "/var/lib/ganeti/ca.pem"]
    assert check(node, "filelist", names) == {names[0]: hashlib.sha1(b"abc").hexdigest()}
    refused = check(node, "filelist", ["/etc/shadow"])
    assert "not one of the files" in refused


# hypervisors


def test_hypervisors_tell_what_is_missing(node: LocalNode, paths: Paths) -> None:
    assert check(node, "hypervisor", ["fake"]) == {"fake": None}
    misbehave(paths, verify={"*": {"lie": "no fake device"}})
    answer = check(node, "hypervisor", ["fake", "nosuch"])
    assert answer["fake"] == "no fake device"
    assert "nosuch" in answer["nosuch"]


def test_only_bad_parameter_sets_are_told(node: LocalNode) -> None:
    sets = [
        ["cluster", "fake", {"migration_mode": "live"}],
        ["instance web1", "fake", {"migration_mode": "sideways"}],
    ]
    [[source, name, text]] = check(node, "hvparms", sets)
    assert (source, name) == ("instance web1", "fake")
    assert "sideways" in text


def test_what_runs_is_listed(node: LocalNode) -> None:
    assert check(node, "instancelist", ["fake"]) == []
    node.instance_start(instance(), False, [])
    assert check(node, "instancelist", ["fake"]) == [INSTANCE]
    assert check(node, "hvinfo", "fake")["memory_total"] > 0


# storage


def test_a_storage_directory_is_good_or_the_reason_is_told(node: LocalNode, paths: Paths) -> None:
    good = str(paths.file_storage)
    assert check(node, "file-storage-path", good) is None
    assert check(node, "shared-file-storage-path", good) is None
    assert "outside" in check(node, "file-storage-path", str(paths.root / "srv" / "other"))
    assert check(node, "file-storage-path", f"{good}/missing") is None, "it is made on use"
    assert "does not exist" in check(node, "shared-file-storage-path", f"{good}/missing")
    (paths.file_storage / "link").symlink_to("missing")
    assert check(node, "file-storage-path", f"{good}/link") is None
    (paths.file_storage / "file").write_text("")
    assert "not a directory" in check(node, "file-storage-path", f"{good}/file")


def test_forbidden_directories_in_the_list_are_found(node: LocalNode, paths: Paths) -> None:
    assert check(node, "allowed-file-storage-paths", None) == []
    paths.file_storage_paths.write_text(f"{paths.file_storage}\n/usr/lib\n")
    assert check(node, "allowed-file-storage-paths", None) == ["/usr/lib"]


# programs and OS definitions


def test_programs_that_cannot_be_run_are_found(node: LocalNode, paths: Paths) -> None:
    good, bad = paths.root / "good", paths.root / "bad"
    for file, mode in ((good, 0o755), (bad, 0o644)):
        file.write_text("#!/bin/sh\n")
        file.chmod(mode)
    names = [str(good), str(bad), str(paths.root / "missing"), "relative"]
    assert check(node, "user-scripts", names) == names[1:]
    fine, *problems = check(node, "oob-paths", names)
    assert fine is None
    assert [text.split()[0] for text in problems] == names[1:]
    assert check(node, "user-scripts", ["/good", "/bad"]) == ["/bad"], "below the root of the node"


def test_only_the_watchdog_of_this_node_is_checked(node: LocalNode) -> None:
    own = node.families[2]._context.name  # type: ignore[attr-defined]
    pairs = [["/dev/no-such-1", "other.example.com"], ["/dev/no-such-2", own]]
    assert check(node, "watchdogs", pairs) == "/dev/no-such-2: No such file or directory"
    assert check(node, "watchdogs", pairs[:1]) == ""
    assert check(node, "watchdogs", [["/dev/null", own]]) == ""


def test_os_definitions_are_listed(node: LocalNode, paths: Paths) -> None:
    (paths.os_search_path[0] / "broken").mkdir(parents=True)
    [found] = check(node, "oslist", None)
    assert (found["name"], found["valid"]) == ("broken", False)


# network


@pytest.fixture
def port(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> int:
    """The port of node daemons in this cluster, which nobody listens on by itself."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        number = int(sock.getsockname()[1])
    paths.services.write_text(f"ganeti-noded {number}/tcp\n")
    monkeypatch.setenv("GANETI_ROOTDIR", str(paths.root))
    return number


def test_unreachable_nodes_are_named(node: LocalNode, port: int) -> None:
    nodes = [
        ["node1.example.com", "127.0.0.1", "127.0.0.1"],
        ["node2.example.com", "127.0.0.2", "127.0.0.3"],
    ]
    with (
        socket.create_server(("127.0.0.1", port)),
        socket.create_server(("127.0.0.2", port)),
    ):
        answer = check(node, "node-net-test", nodes)
    assert list(answer) == ["node2.example.com"]
    assert answer["node2.example.com"].startswith(f"secondary address 127.0.0.3:{port}")


def test_only_the_wanted_nodes_are_tried(node: LocalNode, port: int) -> None:
    nodes = [
        ["node1.example.com", "127.0.0.1", "127.0.0.1"],
        ["node2.example.com", "127.0.0.2", "127.0.0.2"],
        ["node3.example.com", "127.0.0.3", "127.0.0.3"],
    ]
    answer = check(node, "node-net-test", [nodes, ["node2.example.com"]])
    assert list(answer) == ["node2.example.com"]
    assert check(node, "node-net-test", [nodes, []]) == {}
    assert "node9" in check(node, "node-net-test", [nodes, ["node9"]])


def test_a_node_must_find_itself_in_the_list(node: LocalNode, port: int) -> None:
    answer = check(node, "node-net-test", [["node2.example.com", "127.0.0.1", "127.0.0.1"]])
    assert list(answer) == ["node1.example.com"]


def test_the_master_address_answers_even_without_a_daemon(node: LocalNode, port: int) -> None:
    assert check(node, "master-ip", ["node1.example.com", "127.0.0.1"]) is True
    with socket.create_server(("127.0.0.1", port)):
        assert check(node, "master-ip", ["node1.example.com", "127.0.0.1"]) is True


def test_missing_bridges_are_listed(node: LocalNode) -> None:
    assert check(node, "bridges", ["nosuch-br0"]) == ["nosuch-br0"]


def test_the_bounds_of_a_node(node: LocalNode, paths: Paths) -> None:
    assert check(node, "file-storage-bounds", None) is None
    paths.file_storage_paths.write_text("/mnt/new\n/usr/lib\n")
    assert check(node, "file-storage-bounds", None) == ["/mnt/new", "/usr/lib"]
    paths.file_storage_paths.write_text("relative\n")
    assert "file-storage-paths line 1" in check(node, "file-storage-bounds", None)


# certificates

NAME = "node1.example.com"
OTHER = "node2.example.com"
DAY = 86400
END = b"-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def authority() -> certs.Credential:
    return certs.create_ca("cluster.example.com")


@pytest.fixture
def own_certificates(paths: Paths, authority: certs.Credential) -> None:
    certs.write_authority(authority, paths.ca_key, paths.ca_cert)
    certs.write(paths.server_cert, certs.issue_server(authority, NAME))
    certs.write(paths.client_cert, certs.issue_client(authority, NAME))
    certs.write(paths.rapi_cert, certs.self_signed("cluster.example.com"))


def replace(path: Path, content: bytes | None) -> None:
    path.unlink()
    if content is not None:
        path.write_bytes(content)


def join(credential: certs.Credential) -> bytes:
    return credential.key + credential.cert


def test_good_certificates(
    node: LocalNode, authority: certs.Credential, paths: Paths, own_certificates: None
) -> None:
    assert check(node, "certificates", authority.cert.decode()) == []
    assert check(node, "client-cert", None) is None
    # The other order of key and certificate is as good; others need no remote API.
    made = certs.self_signed("cluster.example.com")
    replace(paths.rapi_cert, made.cert + made.key)
    assert check(node, "certificates", authority.cert.decode()) == []
    replace(paths.rapi_cert, None)
    assert check(node, "certificates", authority.cert.decode()) == []


@pytest.mark.parametrize("name", ["server.pem", "client.pem", "rapi.pem", "ca.pem"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("missing", "cannot be read: No such file"),
        ("garbage", "holds no certificate in PEM form"),
        ("damaged", "is not a good certificate"),
        ("without key", "is not a good private key"),
        ("two halves", "do not belong together"),
        ("of another node", "is that of node2.example.com"),
        ("of another authority", "not by the cluster's authority"),
    ],
)
def test_each_fault_of_a_certificate_is_told_with_its_remedy(
    node: LocalNode,
    authority: certs.Credential,
    paths: Paths,
    own_certificates: None,
    name: str,
    fault: str,
    said: str,
) -> None:
    good, twin = certs.issue_server(authority, NAME), certs.issue_server(authority, OTHER)
    foreign = certs.issue_server(certs.create_ca("cluster.example.com"), NAME)
    content = {
        "missing": None,
        "garbage": b"garbage",
        "damaged": good.key + b"".join(good.cert.splitlines(keepends=True)[::2]) + END,
        "without key": good.cert,
        "two halves": good.key + twin.cert,
        "of another node": join(twin),
        "of another authority": join(foreign),
    }[fault]
    path = paths.data / name
    if name == "ca.pem" and fault not in ("missing", "garbage", "damaged"):
        said = "differs from that of the master"
    if name == "rapi.pem" and fault in ("missing", "of another node", "of another authority"):
        return  # only candidates have one, with any name, of any authority
    replace(path, content)
    [[file, level, text]] = check(node, "certificates", authority.cert.decode())
    assert (file, level) == (name, "error")
    assert text.startswith(f"{path} ")
    assert said in text
    remedy = {
        "rapi.pem": "gnt-cluster renew-crypto",
        "ca.pem": "gnt-cluster redist-conf sends that of the master",
    }.get(name, "gnt-node add --readd node1.example.com makes new ones")
    assert remedy in text


@pytest.mark.parametrize("name", ["server.pem", "client.pem", "rapi.pem"])
@pytest.mark.parametrize(
    ("left", "level", "said"),
    [
        (31, None, ""),
        (20, "warning", "19 days left"),
        (6, "error", "5 days left"),
        (-1, "error", "expired on "),
    ],
)
def test_a_certificate_that_ends_is_told(
    node: LocalNode,
    context: NodeContext,
    authority: certs.Credential,
    paths: Paths,
    own_certificates: None,
    name: str,
    left: int,
    level: str | None,
    said: str,
) -> None:
    made = {
        "server.pem": lambda: certs.issue_server(authority, NAME, days=100),
        "client.pem": lambda: certs.issue_client(authority, NAME, days=100),
        "rapi.pem": lambda: certs.self_signed("cluster.example.com", days=100),
    }[name]()
    replace(paths.data / name, join(made))
    context.clock = SetClock(time.time() + (100 - left) * DAY)
    answer = check(node, "certificates", authority.cert.decode())
    if level is None:
        assert answer == []
        return
    [[file, found, text]] = answer
    assert (file, found) == (name, level)
    assert said in text
    if name == "client.pem":
        assert check(node, "client-cert", None) == [level, text]


def test_the_master_is_not_told_to_add_itself_again(
    node: LocalNode, authority: certs.Credential, paths: Paths, own_certificates: None
) -> None:
    paths.ssconf("master_node").write_text(f"{NAME}\n")
    replace(paths.server_cert, None)
    [[_file, _level, text]] = check(node, "certificates", authority.cert.decode())
    assert "make another node the master (gnt-cluster master-failover), then" in text
