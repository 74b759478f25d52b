"""The nodes in the hosts file of a host: between marks, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.net import hosts_file
from ganeti.net.hosts_file import BEGIN, END
from ganeti.paths import Paths

OWN = "127.0.0.1\tlocalhost\n# servers\n192.0.2.9 nfs.example.com nfs\n"


@pytest.fixture
def here(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    paths.hosts.parent.mkdir(parents=True)
    paths.hosts.write_text(OWN)
    paths.data.mkdir(parents=True)
    paths.hosts_managed.touch()
    return paths


def test_nodes_come_and_go_and_the_rest_stays() -> None:
    one = hosts_file.add(OWN, "node1.example.com", "192.0.2.1")
    assert one == f"{OWN}{BEGIN}\n192.0.2.1\tnode1.example.com\tnode1\n{END}\n"
    two = hosts_file.add(one, "node2.example.com", "2001:db8::2")
    assert hosts_file.add(two, "node2.example.com", "2001:db8::2") == two
    moved = hosts_file.add(two, "node1.example.com", "192.0.2.77")
    assert "192.0.2.77\tnode1.example.com\tnode1" in moved
    assert "192.0.2.1\t" not in moved
    assert hosts_file.remove(two, "node2.example.com") == one
    assert hosts_file.remove(one, "node1.example.com") == OWN
    assert hosts_file.remove(OWN, "node1.example.com") == OWN
    assert hosts_file.remove_all(two) == OWN


def test_lines_of_the_administrator_count() -> None:
    assert hosts_file.add(OWN, "nfs.example.com", "192.0.2.1") == OWN
    # the short name is taken
    text = hosts_file.add(OWN, "nfs.other.example", "192.0.2.1")
    assert f"{BEGIN}\n192.0.2.1\tnfs.other.example\n{END}\n" in text
    # who adds a line later wins, too
    later = f"{text}192.0.2.8 nfs.other.example\n"
    assert (
        hosts_file.add(later, "nfs.other.example", "192.0.2.1")
        == f"{OWN}192.0.2.8 nfs.other.example\n"
    )
    # what is behind the marks stays behind them
    assert hosts_file.add(f"{text}# end\n", "n1.example.com", "192.0.2.3").endswith("# end\n")


@pytest.mark.parametrize(
    ("name", "ip"),
    [
        ("localhost", "192.0.2.1"),
        ("a b", "192.0.2.1"),
        ("x\n192.0.2.1 deb.debian.org", "192.0.2.1"),
        ("Node1", "192.0.2.1"),
        ("", "192.0.2.1"),
        ("-x.example.com", "192.0.2.1"),
        ("node1.example.com", "192.0.2"),
        ("node1.example.com", "0.0.0.0"),
        ("node1.example.com", "224.0.0.1"),
        ("node1.example.com", "192.0.2.1 other"),
    ],
)
def test_what_is_no_node_is_refused(name: str, ip: str) -> None:
    with pytest.raises(errors.ParameterError):
        hosts_file.add(OWN, name, ip)


@pytest.mark.parametrize(
    "text", [f"{BEGIN}\n", f"{END}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"]
)
def test_damaged_marks_are_named_and_nothing_is_changed(here: Paths, text: str) -> None:
    here.hosts.write_text(text)
    with pytest.raises(errors.ParseError, match="must both be there once"):
        hosts_file.change(here, "add", "node1.example.com", "192.0.2.1")
    hosts_file.leave(here)
    assert here.hosts.read_text() == text
    assert not here.hosts_managed.exists()


def test_the_file_keeps_its_mode_and_is_never_a_link(here: Paths, tmp_path: Path) -> None:
    here.hosts.chmod(0o640)
    assert hosts_file.change(here, "add", "node1.example.com", "192.0.2.1")
    assert not hosts_file.change(here, "add", "node1.example.com", "192.0.2.1")
    assert here.hosts.stat().st_mode & 0o777 == 0o640
    hosts_file.leave(here)
    assert here.hosts.read_text() == OWN
    here.hosts.rename(tmp_path / "elsewhere")
    here.hosts.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(errors.GenericError, match="symbolic link"):
        hosts_file.change(here, "add", "node1.example.com", "192.0.2.1")
    assert (tmp_path / "elsewhere").read_text() == OWN
    with pytest.raises(errors.ParameterError, match="neither add nor remove"):
        hosts_file.change(here, "replace", "node1.example.com", "192.0.2.1")
