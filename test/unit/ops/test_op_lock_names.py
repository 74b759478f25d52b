"""Locks of nodes and groups have UUIDs as names; people are shown the names of the objects."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ganeti.ops import locks

CONFIG = SimpleNamespace(
    nodes={"n-uuid": SimpleNamespace(name="node1.example.com")},
    groups={"g-uuid": SimpleNamespace(name="default")},
    networks={},
    disks={"d-uuid": SimpleNamespace(name=None)},
)


@pytest.mark.parametrize(
    ("lock", "shown"),
    [
        ("node/n-uuid", "node/node1.example.com"),
        ("node-res/n-uuid", "node-res/node1.example.com"),
        ("nodegroup/g-uuid", "nodegroup/default"),
        ("disk/d-uuid", "disk/d-uuid"),
        ("instance/web1.example.com", "instance/web1.example.com"),
        ("node/[lockset]", "node/[lockset]"),
    ],
)
def test_objects_have_their_names(lock: str, shown: str) -> None:
    assert locks.name_objects(CONFIG, lock) == shown  # type: ignore[arg-type]
