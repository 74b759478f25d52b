"""Copying a disk between two nodes: only the right sender, only whole, only what was announced."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk

from ganeti import errors
from ganeti.net import certs
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSSocket
from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.objects import CopyStatus

HERE, ADDRESS = "node1.example.com", "127.0.0.1"


@pytest.fixture
def ready_node(node: LocalNode, paths: Paths) -> LocalNode:
    """A node with certificates and a disk of 4 MiB."""
    authority = certs.create_ca("test cluster")
    certs.write_authority(authority, paths.ca_key, paths.ca_cert)
    certs.write(paths.server_cert, certs.issue_server(authority, HERE, [ADDRESS]))
    certs.write(paths.client_cert, certs.issue_client(authority, HERE))
    node.blockdev_create(disk(paths), 4, INSTANCE, True, "", False)
    return node


@pytest.fixture
def source(tmp_path: Path, ready_node: LocalNode, paths: Paths) -> LocalNode:
    """Another node with certificates of the same cluster and a disk that holds something."""
    where = Paths(tmp_path / "other")
    for directory in (where.data, where.run, where.log, where.conf, where.file_storage):
        directory.mkdir(parents=True, mode=0o750)
    where.ssconf("file_storage_dir").write_text(f"{where.file_storage}\n")
    for name in ("ca_cert", "client_cert"):
        getattr(where, name).write_bytes(getattr(paths, name).read_bytes())
    made = LocalNode(NodeContext(where, "node2.example.com"))
    item = disk(where)
    made.blockdev_create(item, 4, INSTANCE, True, "", False)
    with open(item.logical_id[1], "r+b") as stream:
        stream.seek(100_000)
        stream.write(os.urandom(1_500_000))
    return made


def there(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "other")


def copy_disk(source: LocalNode, *arguments: Any) -> CopyStatus:
    """Send a disk, to the end."""
    copy = source.disk_transfer(*arguments)
    while not (found := source.copy_status(copy)).ended:
        pass
    return found


def content(paths: Paths) -> bytes:
    return Path(disk(paths).logical_id[1]).read_bytes()


def parts(path: str) -> list[tuple[int, int]]:
    """Begin and end of what a file holds between its holes."""
    found, place = [], 0
    with open(path, "rb") as stream, contextlib.suppress(OSError):  # only a hole is left
        while True:
            begin = os.lseek(stream.fileno(), place, os.SEEK_DATA)
            place = os.lseek(stream.fileno(), begin, os.SEEK_HOLE)
            found.append((begin, place))
    return found


def is_same(one: str, other: str) -> bool:
    """Compare two files without reading what is a hole in both."""
    with open(one, "rb") as first, open(other, "rb") as second:
        return os.path.getsize(one) == os.path.getsize(other) and all(
            os.pread(first.fileno(), end - begin, begin)
            == os.pread(second.fileno(), end - begin, begin)
            for begin, end in parts(one) + parts(other)
        )


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_a_disk_arrives(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path, compress: str
) -> None:
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, compress)
    sent = copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, compress)
    assert (sent.size, sent.done) == (4 << 20, 4 << 20)
    assert 2 << 20 < sent.zeros < 3 << 20
    assert content(paths) == content(there(tmp_path))


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_the_target_keeps_nothing_of_what_it_held(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path, compress: str
) -> None:
    Path(disk(paths).logical_id[1]).write_bytes(b"\xff" * (4 << 20))
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, compress)
    copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, compress)
    assert content(paths) == content(there(tmp_path))


def test_long_holes_are_not_sent(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    for where in (paths, there(tmp_path)):
        os.truncate(disk(where).logical_id[1], 600 << 20)
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    sent = copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, "none")
    assert sent.size - sent.zeros < 2 << 20
    assert is_same(disk(paths).logical_id[1], disk(there(tmp_path)).logical_id[1])
    assert os.stat(disk(paths).logical_id[1]).st_blocks * 512 < 2 << 20


def test_what_the_target_says_reaches_the_sender(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    os.truncate(disk(paths).logical_id[1], 1 << 20)
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    with pytest.raises(errors.BlockDeviceError, match="the disk here has less than 4194304 bytes"):
        copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, "none")


def test_a_copy_that_nobody_knows(ready_node: LocalNode) -> None:
    with pytest.raises(errors.BlockDeviceError, match="the node daemon was restarted"):
        ready_node.copy_status("0123456789abcdef")


def test_a_wrong_token_writes_nothing(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    port, _token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    with pytest.raises(errors.BlockDeviceError):
        copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), "0" * 64, "none")
    assert not any(content(paths))


def test_only_one_sender_is_let_in(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, "none")
    with pytest.raises(errors.BlockDeviceError, match="was not copied"):
        copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, "none")


def test_a_receiver_of_another_name_gets_nothing(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    with pytest.raises(errors.BlockDeviceError, match=r"there, not node9\.example\.com"):
        copy_disk(
            source, disk(there(tmp_path)), "node9.example.com", (ADDRESS, port), token, "none"
        )
    assert not any(content(paths))


def test_a_sender_that_hangs_up_is_no_success(ready_node: LocalNode, paths: Paths) -> None:
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    context = Identity(paths.client_cert, paths.ca_cert).client_context()
    with socket.create_connection((ADDRESS, port), timeout=5) as raw:
        sock = TLSSocket(raw, context, server_side=False)
        sock.settimeout(5)
        sock.handshake()
        sock.sendall(token.encode() + (4 << 20).to_bytes(8, "big"))
        sock.sendall(b"\1" + (3).to_bytes(8, "big") + b"abc" + bytes(9) + bytes(32))
        assert sock.recv(200) == b"the bytes that arrived are not those that were sent\n"
        sock.close()
    assert content(paths)[3:].count(0) == (4 << 20) - 3


def test_a_stranger_is_not_let_in(ready_node: LocalNode, paths: Paths, tmp_path: Path) -> None:
    port, _token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    stranger = certs.create_ca("another cluster")
    own = tmp_path / "own.pem"
    certs.write(own, certs.issue_client(stranger, "node9.example.com"))
    context = Identity(own, paths.ca_cert).client_context()
    with socket.create_connection((ADDRESS, port), timeout=5) as raw:
        sock = TLSSocket(raw, context, server_side=False)
        sock.settimeout(5)
        answer = b""
        # Whether the refusal is seen in the handshake or after it depends on the TLS version.
        with contextlib.suppress(OSError):
            sock.handshake()
            sock.sendall(b"0" * 72)
            answer = sock.recv(10)
        sock.close()
    assert answer == b""
    assert not any(content(paths))


def test_what_cannot_be_sent(ready_node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.ParameterError, match="choose from none, gzip"):
        ready_node.disk_expect(disk(paths), ADDRESS, "lzop")
    with pytest.raises(errors.BlockDeviceError):
        ready_node.disk_expect(disk(paths, 7), ADDRESS, "none")


def test_a_target_that_is_gone_is_named(
    ready_node: LocalNode, source: LocalNode, paths: Paths, tmp_path: Path
) -> None:
    """Somebody removes the disk after the target began to wait for its content."""
    port, token = ready_node.disk_expect(disk(paths), ADDRESS, "none")
    Path(disk(paths).logical_id[1]).unlink()
    with pytest.raises(errors.BlockDeviceError, match=r"cannot measure"):
        copy_disk(source, disk(there(tmp_path)), HERE, (ADDRESS, port), token, "none")
