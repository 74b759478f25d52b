"""``GET /metrics``, measurements for graphs, and how the cluster stands.

While somebody scrapes, a thread renews the text every ten seconds, so a scrape costs the copying
of bytes, however large the cluster is and however many scrape at once.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import daemon
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.histogram import Histogram
from ganeti.base.json_types import JsonObject
from ganeti.luxi.client import Client
from ganeti.model.metrics import CALL, Report
from ganeti.rapi import compression, schemas
from ganeti.rapi.route import ANYBODY, Arg, ArgKind, Call, Ready, Route

log = logging.getLogger(__name__)

#: Key of the environment of a request for the desk of the daemon.
DESK = "ganeti.metrics_desk"
#: Seconds between two texts; the age of one that is still served; without scrapes nobody makes any.
PERIOD = 10.0
OLDEST = 30.0
INTEREST = 300.0
_STOP_WAIT = 5.0
#: How hard the text is packed: higher levels cost more than they save.
_LEVEL = 1


class Requests:
    """Counts what this daemon answered. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._times: dict[str, Histogram] = {}

    def note(self, method: str, path: str, status: str, seconds: float) -> None:
        """``path`` is that of the table of routes, so there are not many."""
        with self._mutex:
            self._counts[method, path, status] += 1
            times = self._times.setdefault(method, Histogram(CALL))
        times.observe(seconds)

    def report(self) -> Report:
        with self._mutex:
            counts, times = dict(self._counts), dict(self._times)
        durations = [[[method], *histogram.read()] for method, histogram in times.items()]
        return {
            "ganeti_api_requests": [[list(labels), count] for labels, count in counts.items()],
            "ganeti_api_request_duration_seconds": durations,
        }


REQUESTS = Requests()


def render(client: Client) -> bytes:
    """Ask the master, and write the text; GanetiError when it does not answer."""
    from ganeti.rapi import exposition

    rows = msgspec.json.decode(client.fetch("QueryMetrics"), type=dict[str, msgspec.Raw])
    found = ((name, msgspec.json.decode(text)) for name, text in rows.items())
    return exposition.write(chain(found, REQUESTS.report().items()))


@dataclass(frozen=True)
class Text:
    """Answer to scrapes; packed once, so that each of many scrapers costs nothing more."""

    #: without the new line at its end, which answers get
    plain: bytes
    packed: bytes

    @classmethod
    def make(cls, plain: bytes) -> Text:
        return cls(plain.removesuffix(b"\n"), compression.pack(plain, _LEVEL))


class Desk:
    """Keeps the text. Thread-safe."""

    def __init__(self, make: Callable[[], bytes], clock: Clock = SYSTEM) -> None:
        self._make = make
        self._clock = clock
        self._changed = threading.Condition()
        self._making = threading.Lock()
        self._text: Text | None = None
        self._made = float("-inf")
        self._asked = float("-inf")
        self._stopped = False
        self._thread: threading.Thread | None = None

    @classmethod
    def on_socket(cls, path: Path) -> Desk:
        """One with a connection of its own."""
        client = Client(path, connect_timeout=2.0, io_timeout=60.0, reconnect_limit=2.0)
        return cls(lambda: render(client))

    def text(self) -> Text:
        """The newest text; blocks only when there is none, or it is too old.

        Raises:
            GanetiError: the master does not answer.
        """
        with self._changed:
            self._asked = self._clock.monotonic()
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._loop, name="metrics", daemon=True)
                self._thread.start()
            found = self._find_fresh()
        if found is not None:
            return found
        with self._making:  # ten who come at once need one text
            with self._changed:
                found = self._find_fresh()
            return self._renew() if found is None else found

    def _find_fresh(self) -> Text | None:
        """The text, unless it is too old."""
        return self._text if self._clock.monotonic() - self._made < OLDEST else None

    def _renew(self) -> Text:
        text = Text.make(self._make())
        with self._changed:
            self._text, self._made = text, self._clock.monotonic()
        daemon.give_back_memory()
        return text

    def _loop(self) -> None:
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped, PERIOD):
                    return
                if self._clock.monotonic() - self._asked > INTEREST:
                    self._thread = None
                    self._text = None
                    return
            try:
                with self._making:
                    self._renew()
            except errors.GanetiError as err:
                log.info("metrics are not renewed: %s", errors.text(err))

    def stop(self) -> None:
        """End the thread. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(_STOP_WAIT)


def _metrics(call: Call) -> Ready:
    # A limited client may not ask; one that may shares the text with all others.
    desk: Desk | None = call.environ.get(DESK)
    if desk is None or call.identity.limited:
        return Ready(render(call.luxi).removesuffix(b"\n"))
    text = desk.text()
    return Ready(text.plain, packed=text.packed)


def _health(call: Call) -> JsonObject:
    return call.luxi.query_health()


def _recovery(call: Call) -> JsonObject:
    return call.luxi.query_recovery()


def _samples(kind: str) -> Callable[[Call], JsonObject]:
    def read(call: Call) -> JsonObject:
        return call.luxi.query_samples(kind, call.name(), str(call.query.get("range") or "hour"))

    return read


_RANGE = Arg("range", ArgKind.TEXT, "How long before now", choices=("hour", "day", "month"))
_NUMBERS = {"type": "array", "items": {"type": ["number", "null"]}}
_SAMPLES = {
    "type": "object",
    "required": ["start", "step", "series", "units"],
    "properties": {
        "start": {"type": "integer", "description": "Unix time of the first value"},
        "step": {"type": "integer", "description": "Seconds from one value to the next"},
        "series": {"type": "object", "additionalProperties": _NUMBERS},
        "units": {"type": "object", "additionalProperties": schemas.TEXT},
    },
}
#: The text format that every scraper reads.
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HEALTH_KEYS = (
    "time",
    "findings",
    "verified",
    "watcher_run",
    "watcher_paused_until",
    "queue_drained",
    "capacity",
    "certificates",
    "unreachable_nodes",
    "offline_nodes",
    "degraded_mirrors",
)
_RECOVERY_KEYS = (
    "time",
    "paused_until",
    "watcher_paused_until",
    "fence_after",
    "failover_after",
    "nodes",
    "instances",
)

ROUTES = (
    Route(
        "GET",
        "/metrics",
        "Metrics of the whole cluster, for Prometheus",
        _metrics,
        access=("read",),
        answer=schemas.TEXT,
        content_type=TEXT,
    ),
    Route(
        "GET",
        "/2/health",
        "Findings, unreachable nodes, degraded mirrors, room, certificates",
        _health,
        access=ANYBODY,
        answer=schemas.record(_HEALTH_KEYS),
    ),
    Route(
        "GET",
        "/2/recovery",
        "What the cluster does about dead nodes, and what became of their instances",
        _recovery,
        access=("read",),
        answer=schemas.record(_RECOVERY_KEYS),
    ),
    *(
        Route(
            "GET",
            f"/2/{kind}s/{{{kind}_name}}/samples",
            f"Measurements of one {kind}",
            _samples(kind),
            access=ANYBODY,
            query=(_RANGE,),
            answer=_SAMPLES,
            statuses=(404,),
        )
        for kind in ("node", "instance")
    ),
)
