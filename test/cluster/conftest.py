"""One three-node cluster for each test module that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster, copy_cluster
from storage_nodes import GROUP, StorageNodes

from ganeti.luxi.client import Client
from ganeti.storage.registry import TEMPLATES


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(3) as made:
        yield made


@pytest.fixture
def fresh_cluster() -> Iterator[Cluster]:
    """Three nodes that one test may break."""
    with copy_cluster(3) as made:
        yield made


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    """A client of LUXI, connected to the cluster of the module."""
    with Client(cluster.paths().luxi_socket) as made:
        yield made


@pytest.fixture(scope="module")
def storage_cluster(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Cluster, StorageNodes]]:
    """A cluster with templates plain and drbd enabled, and what stands in for its storage.

    Each node has a volume group ``xenvg`` of 8 GiB and DRBD 8.4 between them. What a test can see
    and break is written at :class:`storage_nodes.StorageNodes`. Give fake instances as usual
    (``-o noop``); write to their disks through ``nodes.path("node1", "drbd0")``.
    """
    with copy_cluster(3) as made:
        roots = {f"node{number}": made.root(f"node{number}") for number in (1, 2, 3)}
        nodes = StorageNodes(tmp_path_factory.mktemp("storage"), roots)
        enabled = [name for name in ("drbd", "plain") if name in TEMPLATES]
        made.ok(
            "cluster modify",
            f"--vg-name={GROUP}",
            "--drbd-usermode-helper=/bin/true",
            "--default-iallocator=",
            "--enabled-disk-templates",
            ",".join([*enabled, "file", "sharedfile", "diskless"]),
        )
        yield made, nodes
