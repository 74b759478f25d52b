"""Consoles of guests for clients of LUXI: bytes between their connection and the guest's node.

The master daemon alone may call nodes, so consoles go through it: one thread carries all of them,
and reads from a side only what the other one takes.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Author
from ganeti.config.store import Store
from ganeti.luxi.reply import Reply
from ganeti.master.core import Core
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.net.relay import Relays, SocketEnd
from ganeti.ops import annotate
from ganeti.rpc.calls import NodeCalls


def record(store: Store, instance: Instance, data: Mapping[str, str], user: str) -> None:
    """Keep in the history who opened a console; blocks until it is durable.

    Raises:
        QuorumError, FileError: it could not be kept.
    """
    kind, mode, address = (data.get(name, "") for name in ("kind", "mode", "address"))
    author = Author(user=user, reason=f"{kind} console, {mode}, from {address}")
    store.change("console-open", author, lambda draft: draft.mention(instance))


class Consoles:
    """Open consoles; the thread begins with the first one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._relays = Relays("consoles")

    def find(self, name: str) -> JsonObject:
        """The consoles that an instance has now; asks its node.

        Raises:
            OpPrereqError: there is no such instance, or it does not run anywhere.
            HypervisorError: it does not run.
        """
        instance, node = self._place(name)
        wire = annotate.instance(self._core.store.current, instance)
        kinds = self._core.rpc.call_one(node, NodeCalls.instance_consoles, wire)
        return {
            "instance": instance.name,
            "uuid": instance.uuid,
            "node": node.name,
            "kinds": kinds,
        }

    def open(self, name: str, kind: str, reply: Reply) -> None:
        """Let the connection of a request be a console; errors as in :meth:`find`."""
        instance, node = self._place(name)
        wire = annotate.instance(self._core.store.current, instance)
        _none, stream = self._core.rpc.open_stream(
            node, NodeCalls.instance_console_open, wire, kind
        )
        loop = self._relays.use_loop()

        def begin(client: socket.socket, answer: bytes) -> None:
            end = SocketEnd(client)
            self._relays.begin(loop, end, stream, to_left=answer, ended=lambda: None)

        def keep(client: socket.socket, answer: bytes) -> None:
            loop.call_soon(lambda: begin(client, answer))

        if not reply.detach(keep):
            stream.close()

    def _place(self, name: str) -> tuple[Instance, Node]:
        config = self._core.store.current
        instance = config.instance(name)
        if instance.forthcoming:
            raise errors.make_state_error(
                f"Instance {instance.name} is forthcoming and has no console",
            )
        node = config.nodes[instance.primary_node]
        if node.offline:
            raise errors.make_state_error(
                f"Instance {instance.name} has no console now: its node {node.name} is offline",
            )
        return instance, node

    def stop(self) -> None:
        """End all consoles. Idempotent."""
        self._relays.stop()
