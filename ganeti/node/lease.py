"""The lease of this node, which the calls of the master renew.

Without it nothing is started here, guests that may be started elsewhere are ended, and the watchdog
of the host is not fed. :mod:`ganeti.recovery.node` decides; here are the thread, the clock, the
guests and the device.

The newest lease is in a file of ``/run``, so that a daemon that is killed and started again ends
guests when it has to. The file is up to a second old, so that lease only ends earlier.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ganeti import errors
from ganeti.base import boot, files, typed
from ganeti.base.clock import Deadline
from ganeti.base.waiting_thread import WaitingThread
from ganeti.model import ssconf_keys
from ganeti.node.context import NodeContext
from ganeti.node.occupation import find_running
from ganeti.node.watchdog import Watchdog, WatchdogError, WatchdogMissing, check_device
from ganeti.recovery import bounds
from ganeti.recovery.lease import Grant, Kept, Stamp
from ganeti.recovery.node import Called, Effect, GuestBegan, GuestsEnded, NodeMachine, Tick

log = logging.getLogger(__name__)

#: Longest pause between two looks at the clock while a lease counts: waiting threads do not notice
#: that the machine slept. The watchdog is fed as often.
_TICK = 1.0
#: Seconds that the file with the lease may be behind.
_WRITE_PAUSE = 1.0
#: Guests that are ended at a time.
_PARALLEL = 16
#: Seconds at the end of the daemon for the master to notice that the watchdog is to be off.
_NOTICE = 15.0
#: Seconds until a watchdog that could not be opened is tried again.
_TRY_AGAIN = 60.0


class NodeLease(WaitingThread):
    """Implements :class:`ganeti.rpc.leases.Holding`. Thread-safe."""

    _STOP_WAIT = 5.0

    def __init__(self, context: NodeContext, watchdog: Watchdog | None = None) -> None:
        super().__init__("lease")
        self._context = context
        self._clock = context.clock
        self._watchdog = watchdog or Watchdog()
        self._machine = NodeMachine(
            boot.read_id(), self._clock.monotonic(), random.random, candidate=False
        )
        self._file = context.paths.node_lease
        self._restore()
        self._kept = self._machine.holder.keep()
        self._retiring = False
        #: the device and the lease that did not fit; they are tried again when one has changed
        self._refused = ("", 0.0)
        #: why they did not fit, and when they are tried again although none has changed
        self._flaw = ""
        self._retry_at: float | None = None
        self._ending: threading.Thread | None = None

    def _restore(self) -> None:
        try:
            kept = typed.decode(files.read_text(self._file), Kept)
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError, msgspec.DecodeError) as err:
            log.error("%s is not used, so this node has no lease: %s", self._file, err)
            return
        self._machine.restore(kept, self._clock.monotonic())

    def _keep(self) -> None:
        """Write the lease, if it is long enough after the one in the file."""
        newest, old = self._machine.holder.keep(), self._kept
        if newest.seconds == old.seconds and newest.begin - old.begin < _WRITE_PAUSE:
            return
        self._kept = newest
        try:
            files.ensure_dir(self._file.parent, 0o775)
            files.write_atomic(self._file, msgspec.json.encode(newest), fsync=False)
        except OSError as err:
            log.error("the lease is not kept for a restart of this daemon: %s", err)

    def retire(self) -> None:
        """Switch the watchdog off before this daemon ends, once the master does not count on it.

        Blocks for some seconds if a watchdog is on; calls must still be answered meanwhile.
        """
        end = Deadline(_NOTICE, self._clock)
        with self._changed:
            self._retiring = True
            self._machine.wants_watchdog = False
            while self._machine.armed and not end.has_passed:
                self._changed.wait(_TICK)
            if self._machine.armed:
                log.error(
                    "the watchdog stays on, as the master may count on it: it resets this host"
                    " unless the node daemon is started again"
                )

    def stop(self) -> None:
        """Idempotent."""
        super().stop()
        self._watchdog.leave()

    # calls of the master -----------------------------------------------------------------------

    def take(self, grant: Grant) -> None:
        with self._changed:
            before = self._machine.holder.needed
            self._perform(self._machine.feed(Called(self._clock.monotonic(), grant)))
            holder = self._machine.holder
            self._keep()
            self._machine.wants_watchdog = (
                bool(holder.watchdog)
                and self._has_place_for(holder.watchdog)
                and not self._retiring
                and not self._refuses(holder.watchdog, holder.seconds)
            )
            if holder.needed != before:
                log.info("nodes need leases now: %s", "yes" if holder.needed else "no")
                self._changed.notify_all()

    def _refuses(self, device: str, seconds: float) -> bool:
        """Whether a device has failed and is not to be tried again now."""
        if self._refused != (device, seconds):
            return False
        return self._retry_at is None or self._clock.monotonic() < self._retry_at

    def find_watchdog_flaw(self, device: str) -> str:
        """Why a device would not reset this host; empty when nothing is known against it."""
        with self._changed:
            if self._machine.armed and self._watchdog.device == device:
                return ""
            if self._refused[0] == device:
                return self._flaw
        try:
            check_device(device)
        except WatchdogError as err:
            return str(err)
        return ""

    def make_stamp(self) -> Stamp:
        with self._changed:
            return self._machine.make_stamp(self._clock.monotonic())

    def explain_refusal(self) -> str:
        """Why no guest may begin to run here now; empty when it may."""
        with self._changed:
            if self._machine.may_start(self._clock.monotonic()):
                return ""
        return (
            "this node has no lease of the master, which may start its instances elsewhere; it"
            " gets one as soon as the master reaches it"
        )

    def note_begin(self) -> None:
        """A guest has begun to run; it is ended again if the lease has ended meanwhile."""
        with self._changed:
            self._machine.feed(GuestBegan(self._clock.monotonic()))
            self._changed.notify_all()

    # the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        with self._changed:
            while not self._stopped:
                self._perform(self._machine.feed(Tick(self._clock.monotonic())))
                self._changed.wait(self._find_pause())

    def _find_pause(self) -> float | None:
        machine = self._machine
        if not (machine.holder.needed or machine.armed):
            return None
        wake = machine.find_wake()
        left = _TICK if wake is None else wake - self._clock.monotonic()
        return min(max(left, 0.0), _TICK)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if effect is Effect.END_GUESTS and self._ending is None:
                self._ending = threading.Thread(
                    target=self._end_guests, name="end-guests", daemon=True
                )
                self._ending.start()
            elif effect is Effect.FEED:
                self._feed()
            elif effect is Effect.DISARM:
                self._watchdog.switch_off()
                self._changed.notify_all()

    def _has_place_for(self, device: str) -> bool:
        """Another device waits until the master counts on the one that is on no longer."""
        return self._watchdog.device in ("", device)

    def _feed(self) -> None:
        holder = self._machine.holder
        wanted = holder.watchdog and self._machine.wants_watchdog
        if not (wanted and self._has_place_for(holder.watchdog)):
            self._watchdog.keep()
            return
        try:
            self._watchdog.feed(holder.watchdog, bounds.count_watchdog(holder.seconds))
            self._refused, self._flaw = ("", 0.0), ""
        except WatchdogError as err:
            # What is on stays on until the master does not count on it any more.
            again = isinstance(err, WatchdogMissing)
            self._retry_at = self._clock.monotonic() + _TRY_AGAIN if again else None
            self._refused = (holder.watchdog, holder.seconds)
            self._machine.wants_watchdog = False
            self._machine.armed = self._watchdog.is_on
            if self._flaw != str(err):
                log.error("this host has no watchdog: %s", err)
            self._flaw = str(err)

    # guests ------------------------------------------------------------------------------------

    def _end_guests(self) -> None:
        """End those that may be started elsewhere; the machine asks again while some are left."""
        try:
            found = self._find_guests()
            with self._changed:
                if self._machine.may_start(self._clock.monotonic()):
                    return
            if found:
                log.error(
                    "this node has no lease any more: instances that may be started elsewhere are"
                    " ended: %s",
                    ", ".join(sorted(found)),
                )
                with ThreadPoolExecutor(_PARALLEL) as pool:
                    list(pool.map(self._end_guest, found, found.values()))
            if not self._find_guests():
                with self._changed:
                    self._machine.feed(GuestsEnded(self._clock.monotonic()))
        except errors.GanetiError as err:
            log.error("guests are not ended: %s", errors.text(err))
        finally:
            with self._changed:
                self._ending = None

    def _find_guests(self) -> Mapping[str, str]:
        """Those that run here and may be started elsewhere, with their hypervisors."""
        listed = set((self._context.ssconf(ssconf_keys.HA_INSTANCES) or "").split())
        if not listed:
            return {}
        running = find_running(self._context)
        return {name: hypervisor for name, hypervisor in running.items() if name in listed}

    def _end_guest(self, name: str, hypervisor: str) -> None:
        try:
            self._context.hypervisor(hypervisor).stop(name, force=True)
        except errors.GanetiError as err:
            log.error("instance %s does not end: %s", name, errors.text(err))
