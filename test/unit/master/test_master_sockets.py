"""Who may connect to the master: the group of the sockets."""

from __future__ import annotations

import grp
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from needs import needs_root

from ganeti.master import daemon
from ganeti.net import unix_socket
from ganeti.paths import Paths

NOBODY = 65534
#: A group that no process of this test is in.
FOREIGN = 64_103


@contextmanager
def drop_privileges(directory: Path) -> Iterator[None]:
    """Without the rights of root, as the owner of a directory."""
    if os.geteuid() != 0:
        yield
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.fixture
def paths() -> Iterator[Paths]:
    # not below tmp_path, which only root can reach
    with tempfile.TemporaryDirectory(prefix="ganeti-sockets-") as directory:
        Path(directory).chmod(0o755)
        made = Paths(Path(directory))
        made.socket_dir.mkdir(parents=True)
        made.socket_dir.chmod(0o770)
        yield made


def test_who_may_not_give_the_sockets_away_keeps_them(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _name: SimpleNamespace(gr_gid=FOREIGN))
    caplog.set_level(logging.INFO)
    with drop_privileges(paths.root):
        before = paths.socket_dir.stat()
        gid = daemon._share_sockets(paths)
        sock = unix_socket.listen(paths.luxi_socket, 0o660, gid)
        sock.close()
        after, made = paths.socket_dir.stat(), paths.luxi_socket.stat()
        own = os.getegid()
    assert gid is None
    assert (after.st_mode, after.st_gid) == (before.st_mode, before.st_gid)
    assert (made.st_mode & 0o777, made.st_gid) == (0o660, own)
    assert "gnt-daemons (Operation not permitted)" in caplog.text


@pytest.mark.root
@needs_root("to give files to any group")
def test_root_gives_them_to_the_group(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _name: SimpleNamespace(gr_gid=FOREIGN))
    assert daemon._share_sockets(paths) == FOREIGN
    assert paths.socket_dir.stat().st_gid == FOREIGN
