"""The node calls of one node as methods of one object, without a daemon and without the wire."""

from __future__ import annotations

from typing import Any

from ganeti.node.context import NodeContext
from ganeti.node.families import Families
from ganeti.rpc.server import find_methods


class LocalNode:
    """``node.blockdev_find(disk)`` is the call of that name, made by this thread."""

    def __init__(self, context: NodeContext) -> None:
        families = Families(context)
        self.families = families.all
        self.lease = families.lease
        self.stop = families.stop
        self._methods = find_methods(families.all)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._methods[name]
        except KeyError:
            raise AttributeError(name) from None
