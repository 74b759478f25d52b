"""Keeps the ssconf files of all nodes up to date, in the background."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping

from ganeti import errors
from ganeti.config import ssconf
from ganeti.config.store import Store
from ganeti.model.config import Config
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)


#: Seconds after which nodes that could not be reached are tried again.
RETRY_AFTER = 15.0


class Distribution:
    """Sends what changed, many changes in one round; nodes that failed are tried again."""

    def __init__(self, store: Store, rpc: NodeRpc) -> None:
        self._store = store
        self._rpc = rpc
        self._wanted = threading.Event()
        self._stopping = False
        self._round = threading.Lock()
        self._config: Config | None = None
        self._last: dict[str, str] = {}
        #: nodes that have what was sent last
        self._nodes: frozenset[str] = frozenset()
        self._thread = threading.Thread(target=self._loop, name="ssconf", daemon=True)

    def start(self) -> None:
        self._store.add_listener(self._follow_change)
        self._wanted.set()
        self._thread.start()

    def _follow_change(self, before: Config, after: Config) -> None:
        if ssconf.affects(before, after):
            self._wanted.set()

    def _loop(self) -> None:
        failures: list[str] = []
        while True:
            self._wanted.wait(RETRY_AFTER if failures else None)
            self._wanted.clear()
            if self._stopping:
                return
            known, failures = failures, self.distribute(force=False)
            for failure in failures:
                if failure not in known:
                    _LOG.warning("%s", failure)

    def distribute(self, *, force: bool = True) -> list[str]:
        """Send the files to all online nodes and wait; returns a text for each failure."""
        with self._round:
            return self._send(force=force)

    def _send(self, *, force: bool) -> list[str]:
        config = self._store.current
        values = ssconf.values(config, self._config, self._last)
        nodes = config.online_nodes()
        changed = {key: text for key, text in values.items() if self._last.get(key) != text}
        sent = {
            node.uuid: (node, (values if force or node.uuid not in self._nodes else changed,))
            for node in nodes
            if force or changed or node.uuid not in self._nodes
        }
        answers = self._rpc.call_each(NodeCalls.write_ssconf_files, sent)
        failed = {uuid for uuid, answer in answers.items() if not answer.ok}
        self._nodes = frozenset(node.uuid for node in nodes) - failed
        self._config, self._last = config, values
        return [errors.text(a.error) for a in answers.values() if a.error is not None]

    @contextlib.contextmanager
    def hold_sent(self) -> Iterator[Mapping[str, str]]:
        """The facts that nodes were sent last, by key; no other round begins while this is held.

        Facts that are still to be sent are sent first: nodes that did not answer last time get
        another chance now, not only after the next wait.
        """
        with self._round:
            self._send(force=False)
            yield self._last

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self._thread.join()
