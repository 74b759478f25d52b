"""What gnt-cluster verify says of the lists that bound where file disks may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti.opcodes.cluster import OpClusterVerifyGroup

USUAL = "/srv/ganeti/file-storage\n/srv/ganeti/shared-file-storage\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "c")
    for where in made.paths.values():
        where.file_storage_paths.write_text(USUAL)
    yield made
    made.close()


def findings(cluster: OneProcess) -> list[str]:
    before = len(cluster.log)
    cluster.run(OpClusterVerifyGroup(group_name="default", error_codes=True))
    return [line.strip() for line in cluster.log[before:] if "STORAGEPATH" in line]


def test_nodes_that_agree_are_not_named(cluster: OneProcess) -> None:
    assert findings(cluster) == []
    for where in cluster.paths.values():
        where.file_storage_paths.unlink()  # set up before there were lists
    assert findings(cluster) == []


def test_a_node_that_allows_more_is_named(cluster: OneProcess) -> None:
    cluster.paths["node2"].file_storage_paths.write_text(f"{USUAL}/mnt/fast\n")
    [line] = findings(cluster)
    assert line.startswith("- WARNING:ENODEFILESTORAGEPATHS:node:node2.example.com:")
    assert "/mnt/fast" in line
    assert "only the administrator of the node can change it" in line


def test_a_node_without_a_list_is_named(cluster: OneProcess) -> None:
    cluster.paths["node3"].file_storage_paths.unlink()
    [line] = findings(cluster)
    assert "node3.example.com" in line
    assert "(it is missing)" in line


def test_a_node_that_refuses_the_directories_of_the_cluster(cluster: OneProcess) -> None:
    cluster.paths["node2"].file_storage_paths.write_text("/mnt/fast\n/usr/lib\n")
    file, shared, forbidden, _differs = sorted(findings(cluster), key=_order)
    assert "ERROR:ENODEFILESTORAGEPATHUNUSABLE:node:node2.example.com:" in file
    assert "ERROR:ENODESHAREDFILESTORAGEPATHUNUSABLE:node:node2.example.com:" in shared
    assert "allow its directory in" in file
    assert "ERROR:ENODEFILESTORAGEPATHS:node:node2.example.com:" in forbidden
    assert "/usr/lib" in forbidden


def _order(line: str) -> int:
    codes = ("FILESTORAGEPATHUNUSABLE", "SHARED", "ERROR:ENODEFILESTORAGEPATHS", "WARNING")
    return max(number for number, code in enumerate(codes) if code in line)


def test_a_list_that_cannot_be_read_is_named(cluster: OneProcess) -> None:
    cluster.paths["node2"].file_storage_paths.write_text("relative\n")
    found = findings(cluster)
    assert any("ERROR:ENODEFILESTORAGEPATHS:node:node2.example.com:" in line for line in found)
    for line in found:
        assert "node2.example.com" in line
        assert "file-storage-paths line 1" in line
