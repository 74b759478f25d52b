"""The thread that measures the node and its guests every ten seconds.

It writes rates into the files of ``node/rings.py`` and keeps the newest counters for the master.
Averages of five minutes are made of the fine ones, so a restart of this daemon loses none of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

import msgspec

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.abilities import BelowHost, Counting
from ganeti.hypervisor.interface import Hypervisor, NodeInfo
from ganeti.model import ssconf_keys
from ganeti.model.enums import RunState
from ganeti.node import host_counters, rings
from ganeti.node.context import NodeContext, check_name
from ganeti.node.rings import DAY, MONTH, SERIES, Row
from ganeti.rpc.samples import GuestCounters, HostCounters, LatestSamples

log = logging.getLogger(__name__)

#: Name of the node's own files; no instance can have it.
NODE = ".node"
#: Seconds from one look for old files to the next, and after which a file belongs to nothing.
_SWEEP = 3600.0
_KEEP = 31 * 86400.0
_STOP_WAIT = 5.0
_MIB = 1024 * 1024


def rates(before: GuestCounters | None, now: GuestCounters, seconds: float) -> Row:
    """Values of all series: the memory as it is, of all others how much per second. Pure.

    Without a measurement before, or after a restart of what is counted, there are no rates.
    """
    row: list[float | None] = []
    for key in SERIES:
        new = getattr(now, key)
        if key == "memory":
            row.append(new)
            continue
        old = None if before is None else getattr(before, key)
        known = new is not None and old is not None and new >= old and seconds > 0
        row.append((new - old) / seconds if known else None)
    return row


class Sampler:
    """Measures; :attr:`latest` may be read by any thread."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._directory = context.paths.samples
        self.latest = LatestSamples()
        #: what was measured last, and when by the clock that only grows
        self._before: dict[str, GuestCounters] = {}
        self._moment = 0.0
        #: the last interval of five minutes that is in the file, by name
        self._closed: dict[str, int] = {}
        self._swept = float("-inf")
        #: problems that the log has already
        self._reported: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a hypervisor that hangs is not waited for. Idempotent."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_WAIT)

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                self.take()
            except errors.GanetiError as err:
                self._say("host", f"nothing is measured: {errors.text(err)}")
            except Exception:  # a bug in one measurement must not end all later ones
                log.exception("nothing was measured, by a bug")
            self._stopped.wait(DAY.step - self._context.clock.now() % DAY.step)

    def take(self) -> None:
        """Measure once. What cannot be measured is left out, and told to the log once."""
        spent = time.thread_time()
        now, moment = self._context.clock.now(), self._context.clock.monotonic()
        host = self._count_host()
        guests = self._count_guests()
        found: dict[str, GuestCounters] = {NODE: host, **guests}
        passed = moment - self._moment
        rows = {name: rates(self._before.get(name), item, passed) for name, item in found.items()}
        self._before, self._moment = found, moment
        self._keep(rows, now)
        self.latest = LatestSamples(
            time=now,
            host=host,
            guests=guests,
            mirrors=host_counters.read_mirrors(self._context.paths),
            certificates=host_counters.read_certificates(self._context.paths),
            cost=self.latest.cost + time.thread_time() - spent,
        )

    def _count_host(self) -> HostCounters:
        """Counters of the node; memory and processors of the machine, also below a hypervisor."""
        host = host_counters.read(self._context.paths)
        for name in self._list_hypervisors():
            try:
                driver = self._context.hypervisor(name)
                if isinstance(driver, BelowHost):
                    return _widen(host, driver.machine())
            except errors.GanetiError:
                continue  # told to the log with its guests; the kernel may have all
        return host

    def _list_hypervisors(self) -> list[str]:
        return (self._context.ssconf(ssconf_keys.HYPERVISOR_LIST) or "").split()

    def _count_guests(self) -> dict[str, GuestCounters]:
        found: dict[str, GuestCounters] = {}
        for hypervisor in self._list_hypervisors():
            try:
                counted = _count(self._context.hypervisor(hypervisor))
            except errors.GanetiError as err:
                self._say(hypervisor, f"guests of {hypervisor} are not measured: {err}")
                continue
            self._reported.discard(hypervisor)
            found |= {name: item for name, item in counted.items() if _is_name(name)}
        return found

    def _say(self, what: str, text: str) -> None:
        if what not in self._reported:
            self._reported.add(what)
            log.warning("%s", text)

    # files

    def _keep(self, rows: Mapping[str, Row], now: float) -> None:
        try:
            files.ensure_dir(self._directory)
            for name, row in rows.items():
                rings.write(rings.path_of(self._directory, name, DAY), DAY, DAY.slot(now), row)
                self._close_month(name, MONTH.slot(now) - 1)
            self._sweep(now)
        except OSError as err:
            self._say("files", f"measurements are not kept: {errors.text(files.failure(err))}")
        else:
            self._reported.discard("files")

    def _close_month(self, name: str, slot: int) -> None:
        """Average the last five minutes that are over, unless that was done."""
        if self._closed.get(name) == slot:
            return
        path = rings.path_of(self._directory, name, MONTH)
        if rings.read(path, MONTH, slot, slot) == [None]:
            each = MONTH.step // DAY.step
            fine = rings.path_of(self._directory, name, DAY)
            mean = rings.average(rings.read(fine, DAY, slot * each, slot * each + each - 1))
            if mean is not None:
                rings.write(path, MONTH, slot, mean)
        self._closed[name] = slot

    def _sweep(self, now: float) -> None:
        """Remove files that nobody has written for a month."""
        moment = self._context.clock.monotonic()
        if moment - self._swept < _SWEEP:
            return
        self._swept = moment
        for path in self._directory.iterdir():
            if now - path.stat().st_mtime > _KEEP:
                log.info("removing %s, which is older than what is kept", path)
                files.remove(path)
        self._closed = {name: slot for name, slot in self._closed.items() if name in self._before}


def _count(driver: Hypervisor) -> dict[str, GuestCounters]:
    """Counters of all guests of a hypervisor; time and memory only if it has no counters."""
    if isinstance(driver, Counting):
        return driver.counters()
    return {
        name: GuestCounters(cpu=info.time, memory=info.memory * _MIB)
        for name, info in driver.info_all().items()
        if info.state == RunState.RUNNING
    }


def _widen(host: HostCounters, machine: NodeInfo) -> HostCounters:
    return msgspec.structs.replace(
        host,
        memory=(machine.memory_total - machine.memory_free) * _MIB,
        memory_total=machine.memory_total * _MIB,
        cpus=machine.cpu_total,
    )


def _is_name(name: str) -> bool:
    try:
        return bool(check_name(name))
    except errors.ParameterError:
        return False
