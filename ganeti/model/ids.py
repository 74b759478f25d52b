"""Identities: texts and numbers that mypy keeps apart."""

from __future__ import annotations

from typing import NewType

NodeUuid = NewType("NodeUuid", str)
GroupUuid = NewType("GroupUuid", str)
InstanceUuid = NewType("InstanceUuid", str)
DiskUuid = NewType("DiskUuid", str)
NetworkUuid = NewType("NetworkUuid", str)
ImageUuid = NewType("ImageUuid", str)
SnapshotUuid = NewType("SnapshotUuid", str)
JobId = NewType("JobId", int)
