"""The copies of the configuration on the other candidates."""

from __future__ import annotations

from pathlib import Path

from ganeti import constants
from ganeti.base.copies import NoCopies, Round
from ganeti.config.changes import Author
from ganeti.config.store import Store, write_checkpoint
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.node import Node
from ganeti.paths import Paths


class Watching(NoCopies):
    """Looks whether this node has what the copies are sent."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.sent: list[bool] = []

    def change(self, base: int, serial: int, lines: bytes) -> Round:
        self.sent.append(self._paths.journal_file.read_bytes().endswith(lines))
        return self


def test_copies_are_never_newer_than_this_node(tmp_path: Path) -> None:
    """A master that crashed in between would be refused as outdated."""
    paths = Paths(tmp_path)
    paths.data.mkdir(parents=True)
    node = Node(
        uuid="n",
        name="node1",
        primary_ip="192.0.2.1",
        secondary_ip="192.0.2.1",
        group="g",
        master_candidate=True,
    )
    cluster = Cluster(
        uuid="c",
        cluster_name="c",
        master_node="n",
        master_ip="192.0.2.9",
        master_netdev="eth0",
        master_netmask=24,
    )
    data = ConfigData(
        version=constants.CONFIG_VERSION,
        cluster=cluster,
        nodes={"n": node},
        nodegroups={"g": NodeGroup(uuid="g", name="default")},
    )
    write_checkpoint(Config(data), paths)
    copies = Watching(paths)
    store = Store(paths, copies=copies)
    for tag in ("a", "b"):
        store.change("tag", Author(), lambda draft, tag=tag: draft.update_cluster(tags=(tag,)))
    store.close()
    assert copies.sent == [True, True]
