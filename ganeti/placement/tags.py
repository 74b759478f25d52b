"""Meaning of tags: which instances stay apart, where nodes stand, who may migrate where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EXCLUSION = "htools:iextags:"
STANDBY = "htools:standby:"
MIGRATION = "htools:migration:"
ALLOW_MIGRATION = "htools:allowmigration:"
LOCATION = "htools:nlocation:"
DESIRED_LOCATION = "htools:desiredlocation:"


def strip_prefix(tags: Iterable[str], prefix: str) -> list[str]:
    """Return the tags that begin with ``prefix``, without it."""
    return [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]


def select_kinds(tags: Iterable[str], kinds: Sequence[str]) -> frozenset[str]:
    """The tags of one of the kinds; a tag ``rack:a`` is of the kind ``rack``."""
    heads = tuple(f"{kind}:" for kind in kinds)
    return frozenset(tag for tag in tags if heads and tag.startswith(heads))


def migration_rights(
    cluster: Iterable[str], nodes: Sequence[Iterable[str]]
) -> list[tuple[frozenset[str], frozenset[str]]]:
    """For each node its migration tags, and the tags it accepts on the node a guest comes from.

    A guest migrates only to a node that accepts all migration tags of its own node. A node
    accepts its own tags and what ``htools:allowmigration:FROM::TO`` adds.
    """
    cluster = list(cluster)
    kinds = strip_prefix(cluster, MIGRATION)
    also = [
        (source, target)
        for source, found, target in (
            text.partition("::") for text in strip_prefix(cluster, ALLOW_MIGRATION)
        )
        if found
    ]
    rights = []
    for tags in nodes:
        own = select_kinds(tags, kinds)
        rights.append((own, own | {source for source, target in also if target in own}))
    return rights
