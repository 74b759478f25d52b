"""Find objects by their tags."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ganeti import errors
from ganeti.opcodes.tags import OpTagsSearch
from ganeti.ops.operation import PlannedOperation


class TagsSearch(PlannedOperation[OpTagsSearch, re.Pattern[str], list[tuple[str, str]]]):
    """Pairs of the object's path and the tag, for tags that match a regular expression."""

    def decide(self) -> re.Pattern[str]:
        try:
            return re.compile(self.op.pattern)
        except re.error as err:
            raise errors.make_invalid_error(
                f"'{self.op.pattern}' is not a regular expression: {err}"
            ) from err

    def run(self) -> list[tuple[str, str]]:
        return sorted(
            (path, tag)
            for path, tags in self._objects()
            for tag in sorted(tags)
            if self.plan.search(tag)
        )

    def _objects(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        config = self.ctx.config
        yield "/cluster", config.cluster.tags
        for instance in config.instances.values():
            yield f"/instances/{instance.name}", instance.tags
        for node in config.nodes.values():
            yield f"/nodes/{node.name}", node.tags
        for group in config.groups.values():
            yield f"/nodegroup/{group.name}", group.tags
        for disk in config.disks.values():
            yield f"/disks/{disk.uuid}", disk.tags
        for network in config.networks.values():
            yield f"/networks/{network.name}", network.tags
