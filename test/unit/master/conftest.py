"""A master in a directory, without any node that could answer, served over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ganeti import constants
from ganeti.config import store
from ganeti.locking.levels import BGL, LockLevel
from ganeti.luxi.client import Client
from ganeti.luxi.server import LuxiServer
from ganeti.master.core import Core
from ganeti.master.service import Service
from ganeti.master.waiting import Waiting
from ganeti.model import ipolicy
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.node import Node
from ganeti.net import certs
from ganeti.paths import Paths


def first_state() -> Config:
    """One node, which is offline, so that nobody is called."""
    node = Node(
        uuid="node-1",
        name="node1.example.com",
        primary_ip="127.0.2.1",
        secondary_ip="127.0.2.1",
        group="group-1",
        offline=True,
    )
    cluster = Cluster(
        uuid="cluster-1",
        cluster_name="cluster.example.com",
        master_node="node-1",
        master_ip="192.0.2.9",
        master_netdev="lo",
        master_netmask=32,
        enabled_hypervisors=("fake",),
        hvparams={"fake": {"migration_mode": "live"}},
        enabled_disk_templates=("file",),
        tags=("prod",),
        ipolicy=ipolicy.defaults(),
    )
    groups = {"group-1": NodeGroup(uuid="group-1", name="default")}
    return Config(
        ConfigData(
            version=constants.CONFIG_VERSION,
            cluster=cluster,
            nodes={"node-1": node},
            nodegroups=groups,
        )
    )


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Certificates of the master, made once."""
    directory = tmp_path_factory.mktemp("identity")
    ca = certs.create_ca("cluster.example.com")
    certs.write_authority(ca, directory / "ca.key", directory / "ca.pem")
    certs.write(directory / "client.pem", certs.issue_client(ca, "node1.example.com", []))
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture
def root(tmp_path: Path, identity: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path / "root")
    monkeypatch.setenv("GANETI_ROOTDIR", str(paths.root))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    for directory in (paths.data, paths.socket_dir, paths.log, paths.hooks):
        directory.mkdir(parents=True)
    for name, content in identity.items():
        (paths.data / name).write_bytes(content)
    store.write_checkpoint(first_state(), paths)
    return paths


@dataclass
class Master:
    core: Core
    waiting: Waiting
    paths: Paths

    def hold_everything(self) -> None:
        """Let every job wait for the global lock."""
        held: list[Any] = []
        self.core.locks.request("test", LockLevel.CLUSTER, [BGL], shared=False, on_done=held.append)

    def let_go(self) -> None:
        self.core.locks.release("test")

    def client(self) -> Client:
        return Client(self.paths.luxi_socket, io_timeout=20)


@pytest.fixture
def master(root: Paths) -> Iterator[Master]:
    core = Core(root)
    core.replication.alone = True
    waiting = Waiting()
    service = Service(core, waiting)
    server = LuxiServer(root.luxi_socket, service)
    core.prepare()
    server.start()
    core.start()
    service.open()
    made = Master(core, waiting, root)
    yield made
    made.let_go()
    server.stop()
    service.stop()
    waiting.stop()
    assert core.stop(20)


@pytest.fixture
def client(master: Master) -> Iterator[Client]:
    with master.client() as made:
        yield made
