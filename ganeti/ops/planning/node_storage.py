"""Common parts of operations on the storage of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ganeti import errors
from ganeti.base.text import natural_key, nearest
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.opcodes.enums import StorageType
from ganeti.ops.operation import Context
from ganeti.storage import units
from ganeti.storage.registry import TEMPLATES, traits_of


def check_fields(asked: Iterable[str], known: Sequence[str]) -> None:
    """Refuse fields that do not exist; OpPrereqError."""
    for name in asked:
        if name not in known:
            raise errors.make_invalid_error(
                f"unknown field '{name}'{nearest(name, known)}; choose from {', '.join(known)}"
            )


def choose_nodes(ctx: Context, names: Sequence[str]) -> list[Node]:
    """The nodes with these names, or all, by name; offline ones are left out."""
    config = ctx.config
    found = [config.node(name) for name in names] if names else list(config.nodes.values())
    if not names:
        found = [node for node in found if node.vm_capable]
    unique = {node.uuid: node for node in found if not node.offline}
    return sorted(unique.values(), key=lambda node: natural_key(node.name))


def check_online(node: Node) -> None:
    """Refuse a node whose storage cannot be changed because it is offline; OpPrereqError."""
    if node.offline:
        raise errors.make_state_error(f"node {node.name} is offline: its storage cannot be changed")


def default_type(config: Config) -> StorageType:
    """Type of the storage that the first enabled template with units uses; OpPrereqError."""
    for template in config.cluster.enabled_disk_templates:
        if template in TEMPLATES:
            kind = traits_of(template).space_checked_as
            if kind in units.LISTED:
                return StorageType(kind)
    raise errors.make_invalid_error(
        "no enabled disk template has storage that could be listed; give --storage-type"
    )


def unit_args(config: Config, kind: StorageType) -> list[object]:
    """Arguments by which a node finds the units of a type."""
    cluster = config.cluster
    setting = traits_of(kind).directory if kind in TEMPLATES else ""
    if not setting:
        return []
    directory = getattr(cluster, setting)
    return [[directory] if directory else []]
