"""Tells nodes that are offline who the master is, and that they are not master candidates.

A node that was given up while it was dead still has its copy of the configuration and takes itself
for a candidate when it comes back; several of them could elect a master with old data. So each
offline node is called until it has answered once in the term of this master. A rival that such
nodes have elected meanwhile hears of the newer term and stops.

A job may make the node a candidate again at the same time. So the node is locked while it is
demoted: otherwise it could lose the files that the job has just sent.
"""

from __future__ import annotations

import copy
import logging
import threading

from ganeti import errors
from ganeti.config import ssconf
from ganeti.config.store import Store
from ganeti.locking.levels import BGL, LockLevel
from ganeti.locking.manager import LockManager
from ganeti.model import base
from ganeti.model.node import Node
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)

#: Seconds between two tries.
RETRY_AFTER = 15.0
#: Seconds that a node gets to show that it is there.
PATIENCE = 5.0
#: Owner of the locks.
OWNER = "offline-notice"


class Demotion:
    """A thread that calls those who do not know yet."""

    def __init__(self, store: Store, rpc: NodeRpc, locks: LockManager) -> None:
        self._store = store
        self._rpc = rpc
        self._locks = locks
        self._stopping = threading.Event()
        #: uuids of offline nodes that have answered
        self._informed: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="offline-notice", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a call to a node that hangs is not waited for."""
        self._stopping.set()
        self._thread.join(PATIENCE)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            for node in self._find_uninformed():
                self._inform(node)
            self._stopping.wait(RETRY_AFTER)

    def _find_uninformed(self) -> list[Node]:
        nodes = self._store.current.nodes.values()
        offline = [node for node in nodes if node.offline and not node.master_candidate]
        self._informed &= {node.uuid for node in offline}
        return [node for node in offline if node.uuid not in self._informed]

    def _inform(self, node: Node) -> None:
        config = self._store.current
        reachable = base.replace(node, offline=False)
        rpc = copy.copy(self._rpc)
        rpc.on_deposed = lambda _text: None  # an offline node deposes no master
        looker = rpc.limit_time(PATIENCE)
        looker.epoch = 0  # a call with a term would change what the node knows of it
        try:
            before = looker.call_one(reachable, NodeCalls.master_view)
            rpc.call_one(reachable, NodeCalls.master_claim, rpc.epoch, config.master.name)
            if before.master != config.master.name:
                _LOG.warning(
                    "offline node %s followed %s as the master until now (term %d)",
                    node.name,
                    before.master,
                    before.epoch,
                )
            rpc.call_one(reachable, NodeCalls.node_stop_master)
            if not self._demote(rpc, reachable):
                return
        except errors.DeposedError as err:
            _LOG.error("offline node %s follows a rival: %s", node.name, errors.text(err))
            return
        except errors.GanetiError as err:
            _LOG.debug("offline node %s cannot be informed: %s", node.name, errors.text(err))
            return
        self._informed.add(node.uuid)
        _LOG.info("offline node %s knows that it is not a master candidate", node.name)

    def _demote(self, rpc: NodeRpc, node: Node) -> bool:
        """Whether the node was demoted; not while a job has its lock, nor when it is back."""
        try:
            if not self._lock(node):
                return False
            config = self._store.current
            if not config.nodes[node.uuid].offline:
                return False
            rpc.call_one(node, NodeCalls.write_ssconf_files, ssconf.values(config))
            rpc.call_one(node, NodeCalls.node_demote_from_mc)
            return True
        finally:
            self._locks.release(OWNER)

    def _lock(self, node: Node) -> bool:
        needs = ((LockLevel.CLUSTER, BGL, True), (LockLevel.NODE, node.uuid, False))
        return all(
            self._locks.take_free(OWNER, level, [name], shared=shared)
            for level, name, shared in needs
        )
