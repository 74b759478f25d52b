"""A node below a temporary root, with the fake hypervisor and file disks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_node import LocalNode
from node_samples import empty_root

from ganeti.node.context import NodeContext
from ganeti.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """An empty root with the directories that set-up makes, and one for file disks."""
    return empty_root(tmp_path)


@pytest.fixture
def context(paths: Paths) -> Iterator[NodeContext]:
    made = NodeContext(paths, "node1.example.com")
    yield made
    made.stopping.set()


@pytest.fixture
def node(context: NodeContext) -> LocalNode:
    return LocalNode(context)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]
