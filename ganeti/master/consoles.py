"""Consoles of guests for clients of LUXI: bytes between their connection and the guest's node.

The master daemon alone may call nodes, so consoles go through it: one thread carries all of them,
and reads from a side only what the other one takes.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.config.changes import Author
from ganeti.config.store import Store
from ganeti.luxi.reply import Reply
from ganeti.master.core import Core
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.net.loop import Loop
from ganeti.net.relay import Relay, SocketEnd
from ganeti.net.tls.stream import TLSSocket
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
        self._mutex = threading.Lock()
        self._loop: Loop | None = None
        self._relays: set[Relay] = set()

    def find(self, name: str) -> dict[str, Any]:
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
        loop = self._start_loop()

        def keep(client: socket.socket, answer: bytes) -> None:
            loop.call_soon(lambda: self._relay(loop, SocketEnd(client), stream, answer))

        if not reply.detach(keep):
            stream.close()

    def _relay(self, loop: Loop, client: SocketEnd, stream: TLSSocket, answer: bytes) -> None:
        made = Relay(loop, client, stream, lambda: self._relays.discard(made), to_left=answer)
        self._relays.add(made)
        made.start()

    def _start_loop(self) -> Loop:
        with self._mutex:
            if self._loop is None:
                self._loop = Loop("consoles")
                self._loop.start()
            return self._loop

    def _place(self, name: str) -> tuple[Instance, Node]:
        config = self._core.store.current
        instance = config.instance(name)
        if instance.forthcoming:
            raise errors.OpPrereqError(
                f"Instance {instance.name} is forthcoming and has no console",
                errors.ErrorCode.STATE,
            )
        node = config.nodes[instance.primary_node]
        if node.offline:
            raise errors.OpPrereqError(
                f"Instance {instance.name} has no console now: its node {node.name} is offline",
                errors.ErrorCode.STATE,
            )
        return instance, node

    def stop(self) -> None:
        """End all consoles. Idempotent."""
        with self._mutex:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon(self._close)
            loop.stop()

    def _close(self) -> None:
        for relay in [*self._relays]:
            relay.close()
