"""Virtual switches of Open vSwitch on this node."""

from __future__ import annotations

import re

from ganeti import errors
from ganeti.base import process
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.switches import SwitchCalls

#: Names of interfaces that the kernel accepts.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")
_TIMEOUT = 60.0


class Switches(SwitchCalls):
    """Makes the switch that the parameters of the node name."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def node_configure_ovs(self, ovs_name: str, ovs_link: str) -> None:
        """Can be repeated; takes nothing out of a switch.

        Raises:
            ParameterError: a name that no interface can have.
            CommandError: Open vSwitch refused, or is not installed.
        """
        for name in (ovs_name, *([ovs_link] if ovs_link else [])):
            if not _NAME.fullmatch(name):
                raise errors.ParameterError(f"{name[:40]!r} cannot be the name of an interface")
        words = ["ovs-vsctl", "--", "--may-exist", "add-br", ovs_name]
        if ovs_link:
            words += ["--", "--may-exist", "add-port", ovs_name, ovs_link]
        process.run_checked(words, timeout=_TIMEOUT)
