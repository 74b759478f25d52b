"""Facts of ganeti-confd about this node: which collectors are active, whose its disks are.

Asked once a minute by a thread of its own. Without an answer all collectors are active, and
instances have no names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ganeti import constants, errors
from ganeti.base import files
from ganeti.confd import client
from ganeti.confd.messages import Kind, Status
from ganeti.net import resolve
from ganeti.paths import Paths

log = logging.getLogger(__name__)

#: Seconds from one question to the next, and for an answer.
REFRESH = 60.0
_PATIENCE = 2.0
#: Microseconds between measurements, if nobody says another time; the shortest that is kept.
DEFAULT_INTERVAL = 5_000_000
_SHORTEST = 100_000


class ClusterFacts:
    """The last answers. Read by any thread, renewed by one."""

    def __init__(self, paths: Paths, node: str) -> None:
        self._paths = paths
        self._node = node
        self._settings: Mapping[str, object] = {}
        #: minor of a DRBD disk -> name of its instance
        self.minors: Mapping[int, str] = {}
        #: primary instances of this node, as in the configuration
        self.instances: tuple[Mapping[str, object], ...] = ()

    def is_active(self, collector: str) -> bool:
        """Whether the cluster wants a collector."""
        return bool(self._setting(collector).get("active", True))

    def interval(self, collector: str) -> float:
        """Seconds between two measurements."""
        value = self._setting(collector).get("interval")
        if not isinstance(value, int | float):
            value = DEFAULT_INTERVAL
        return max(float(value), _SHORTEST) / 1_000_000

    def _setting(self, collector: str) -> Mapping[str, object]:
        found = self._settings.get(collector)
        return found if isinstance(found, dict) else {}

    def refresh(self) -> None:
        """Ask; blocks some seconds when nobody answers, and keeps the last answers then."""
        try:
            key = self._paths.hmac_key.read_bytes()
            addresses = files.read_text(self._paths.ssconf("master_candidates_ips")).split()
            port = resolve.port(constants.CONFD)
            if not addresses:
                return
            settings = self._ask(addresses, port, key, Kind.DATA_COLLECTORS)
            if isinstance(settings, dict):
                self._settings = settings
            minors = self._ask(addresses, port, key, Kind.NODE_MINORS, self._node)
            self.minors = {int(row[1]): str(row[2]) for row in minors or ()}
            items = self._ask(addresses, port, key, Kind.NODE_INSTANCES, self._node)
            self.instances = tuple(items[0]) if items else ()
        except (errors.GanetiError, OSError, ValueError, TypeError, LookupError) as err:
            log.debug("ganeti-confd was asked in vain: %s", err)

    @staticmethod
    def _ask(addresses: list[str], port: int, key: bytes, kind: Kind, query: object = None) -> Any:
        reply = client.ask(addresses, port, key, kind, query, timeout=_PATIENCE)
        return reply.answer if reply.status == Status.OK else None
