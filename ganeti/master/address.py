"""Puts the address of the cluster on this node when it becomes the master, and takes it off.

Without it only remote clients suffer, so nothing waits for it. A node that has just booted may be
too busy to answer, and its network may be late: it is asked until it succeeds.
"""

from __future__ import annotations

import logging
import threading

from ganeti import errors
from ganeti.config.store import Store
from ganeti.ops.steps.nodes import master_ip
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)

#: Seconds between two tries.
RETRY_AFTER = 15.0
#: Seconds that the end of the master waits for a call.
STOP_PATIENCE = 5.0
#: Seconds for the call that takes the address off; others may act as the master soon.
DROP_TIMEOUT = 2.0


class Address:
    """A thread that ends when the address is there."""

    def __init__(self, store: Store, rpc: NodeRpc, *, retry_after: float = RETRY_AFTER) -> None:
        self._store = store
        self._rpc = rpc
        self._retry_after = retry_after
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._take, name="master-ip", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def drop(self) -> None:
        """Take the address off this node, which is not the master any more.

        Without a term: the node daemon may follow the next master already.
        """
        self._stopping.set()
        config = self._store.current
        caller = self._rpc.limit_time(DROP_TIMEOUT)
        caller.epoch = 0
        try:
            caller.call_one(
                config.master,
                NodeCalls.node_deactivate_master_ip,
                master_ip.network(config),
                config.cluster.use_external_mip_script,
            )
        except errors.GanetiError as err:
            _LOG.error("the address of the cluster stays on this node: %s", errors.text(err))

    def stop(self) -> None:
        """Try no more; a call that hangs is not waited for. Idempotent."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_PATIENCE)

    def _take(self) -> None:
        failed = ""
        while not self._stopping.is_set():
            config = self._store.current
            try:
                self._rpc.call_one(
                    config.master,
                    NodeCalls.node_activate_master_ip,
                    master_ip.network(config),
                    config.cluster.use_external_mip_script,
                )
            except errors.GanetiError as err:
                text = errors.text(err)
                if text != failed:
                    _LOG.warning(
                        "the address of the cluster is not on this node yet, which is tried again"
                        " every %g s: %s",
                        self._retry_after,
                        text,
                    )
                failed = text
                self._stopping.wait(self._retry_after)
                continue
            if failed:
                _LOG.info("the address of the cluster is on this node now")
            return
