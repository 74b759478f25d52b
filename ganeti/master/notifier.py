"""Sends notices of events to the receivers that the configuration names.

One thread makes notices of events, compares what is wrong from round to round, and decides when a
message is due; a few others send. What was told and what waits is in a file of this node, so that a
restart repeats and loses nothing. A new master starts with an empty file: it sends that it is the
master, and all current problems. What the old master had not sent is lost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject
from ganeti.base.waiting_thread import WaitingThread
from ganeti.config.changes import Author, Draft
from ganeti.master.conditions import find_conditions
from ganeti.model.ids import NodeUuid
from ganeti.model.notification import Notification
from ganeti.notify import conditions, notices, sending
from ganeti.notify.conditions import Condition
from ganeti.notify.notices import JobStory, Notice
from ganeti.notify.outbox import LAST_RETRY, Message, Outbox

if TYPE_CHECKING:
    from ganeti.master.core import Core

_LOG = logging.getLogger(__name__)

#: Events that wait to become notices; more are dropped, the oldest first.
_MOST_EVENTS = 10_000
#: Messages that are sent at the same time.
_SENDERS = 4
#: Least seconds between two writes of the file.
_WRITE_PAUSE = 1.0


class State(msgspec.Struct):
    """Content of the file."""

    #: conditions that were told, by key
    known: dict[str, Condition] = {}
    boxes: dict[str, Outbox] = {}


class Notifier(WaitingThread):
    """Started after the events are there; :meth:`note` and :meth:`note_round` never block."""

    def __init__(self, core: Core, tell: Callable[[JsonObject], None]) -> None:
        """``tell`` makes an event of a condition that began or ended."""
        super().__init__("notifier")
        self._core = core
        self._tell = tell
        self._inbox: deque[JsonObject] = deque(maxlen=_MOST_EVENTS)
        #: name, outbox, pause and problem of what was sent
        self._outcomes: deque[tuple[str, Outbox, float, str]] = deque()
        self._busy: set[str] = set()
        self._round = False
        #: whether it is certain that what this node knew before is up to date, or forgotten
        self._announced = False
        self._state = State()
        self._unsaved = False
        self._saved_at = float("-inf")
        self._watch = conditions.Watch()
        self._tests: dict[str, tuple[Notification, Callable[[Notice], bool]]] = {}
        self._senders = ThreadPoolExecutor(_SENDERS, thread_name_prefix="notify")

    # from other threads --------------------------------------------------------------------

    def note(self, event: JsonObject) -> None:
        """Something happened (called by the events)."""
        if not self._core.store.current.cluster.notifications:
            return  # nobody wants to know
        with self._changed:
            self._inbox.append(event)
            self._changed.notify_all()

    def note_round(self) -> None:
        """The nodes were asked again, so something may be wrong or right now."""
        with self._changed:
            self._round = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End the threads; a message that is just being sent may be sent again. Idempotent."""
        super().stop()
        self._senders.shutdown(wait=False, cancel_futures=True)

    def describe(self) -> list[JsonObject]:
        """The notifications and how they do, without secrets."""
        found = []
        for name, item in sorted(self._core.store.current.cluster.notifications.items()):
            box = self._state.boxes.get(name) or Outbox()
            pending = 0 if box.message is None else len(box.message.notices)
            found.append(
                {
                    "name": name,
                    "way": str(item.way),
                    "target": item.target,
                    "qfilter": item.qfilter,
                    "interval": item.pause,
                    "server": item.server,
                    "sender": item.sender,
                    "waiting": len(box.waiting) + pending,
                    "sent": box.sent,
                    "failed": box.failed,
                    "lost": box.lost,
                    "last_sent": box.last_sent or None,
                    "problem": box.problem,
                }
            )
        return found

    # the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        self.load()
        while True:
            pause = 0.0
            try:
                self.work()
            except Exception:  # noqa: BLE001 - told to the log; other notices must go on
                _LOG.exception("notices were not sent, by a bug")
                pause = _WRITE_PAUSE
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, pause)
                ready = self._changed.wait_for(self._is_awake, self._find_pause())
                if ready and self._stopped:
                    break
        if self._announced:
            self._take_outcomes()
            self._fill_boxes()
            self._save()

    def load(self) -> None:
        """Read which notices were sent and which wait."""
        self._state = self._read()
        self._watch = conditions.Watch(self._state.known)

    def _is_awake(self) -> bool:
        news = self._announced and bool(self._inbox or self._outcomes)
        return self._stopped or self._round or news

    def _find_pause(self) -> float | None:
        """Seconds until a message is due; None while there is none."""
        if not self._announced:
            return None
        now = self._core.clock.now()
        boxes = self._state.boxes.items()
        due = [box.find_due() for name, box in boxes if name not in self._busy]
        pauses = [max(0.0, moment - now) for moment in due if moment is not None]
        if self._unsaved:
            pauses.append(self._find_write_pause())
        return min(pauses, default=None)

    def _find_write_pause(self) -> float:
        return max(0.0, self._saved_at + _WRITE_PAUSE - self._core.clock.monotonic())

    def work(self) -> None:
        """One pass: outcomes, conditions, notices, and messages that are due."""
        with self._changed:
            look, self._round = self._round, False
        if not self._announced:
            self._announced = look and self._announce()
            if not self._announced:
                return  # what waits may be what another master has sent meanwhile
        self._take_outcomes()
        if look:
            now = self._core.clock.monotonic()
            for data in self._watch.follow(find_conditions(self._core), now):
                self._tell(data)
                self._unsaved = True
        self._follow_config()
        self._fill_boxes()
        self._send_due()
        if self._unsaved and self._find_write_pause() == 0:
            self._save()

    def _announce(self) -> bool:
        """Tell once that the master is another one; what this node knew before is out of date.

        False: the configuration cannot be changed now; the next round tries again.
        """
        cluster = self._core.store.current.cluster
        if not cluster.notifications or cluster.notifying_node == cluster.master_node:
            return True
        config = self._core.store.current
        former = config.nodes.get(cluster.notifying_node or NodeUuid(""))
        old = "a node that is gone" if former is None else former.name
        try:
            self._core.store.change("notify-master", Author(), _note_master)
        except errors.GanetiError as err:
            _LOG.warning("notices are late: %s", errors.text(err))
            return False
        self._state = State()
        self._watch = conditions.Watch()
        text = f"The master is {config.master.name}, no longer {old}"
        condition = Condition("master-changed", "cluster", cluster.cluster_name, text)
        self._tell(conditions.describe(condition, over=False))
        return True

    def _follow_config(self) -> None:
        """An outbox and a filter for each notification."""
        wanted = self._core.store.current.cluster.notifications
        for name in self._state.boxes.keys() - wanted.keys():
            del self._state.boxes[name]
        self._tests = {
            name: self._tests[name]
            if name in self._tests and self._tests[name][0] is item
            else (item, notices.compile_filter(item.qfilter))
            for name, item in wanted.items()
        }
        for name in wanted:
            self._state.boxes.setdefault(name, Outbox())

    def _fill_boxes(self) -> None:
        with self._changed:
            events = list(self._inbox)
            self._inbox.clear()
        if not self._tests:
            return
        now = self._core.clock.now()
        for event in events:
            notice = notices.from_event(event, self._find_story(event))
            for name, (_item, passes) in self._tests.items():
                if passes(notice):
                    self._state.boxes[name].add(notice, now)
                    self._unsaved = True

    def _find_story(self, event: JsonObject) -> JobStory | None:
        """The facts of the job whose end is in an event."""
        if event["kind"] != "job" or event["data"].get("status") not in ("error", "success"):
            return None
        try:
            found: JobStory = self._core.queue.view(notices.read_story, int(event["object"]))
        except errors.JobLost:
            return None
        return found

    def _send_due(self) -> None:
        now = self._core.clock.now()
        for name, (item, _test) in self._tests.items():
            box = self._state.boxes[name]
            # A clock that was ahead must not hold messages back.
            box.next = min(box.next, now + max(item.pause, LAST_RETRY))
            message = None if name in self._busy else box.take(now)
            if message is not None:
                self._busy.add(name)
                self._senders.submit(self._send, name, item, box, message)

    def _send(self, name: str, item: Notification, box: Outbox, message: Message) -> None:
        """Send a message and report how that went; runs in a thread of its own."""
        core, problem = self._core, ""
        cluster = core.store.current.cluster.cluster_name
        try:
            sending.send(core.paths, cluster, name, item, message, core.clock.now())
        except errors.GanetiError as err:
            problem = errors.text(err) or type(err).__name__
        except Exception:  # noqa: BLE001 - told to the log; it is tried again
            _LOG.exception("notification %s was not sent, by a bug", name)
            problem = "an error in this program; see the log of the master daemon"
        with self._changed:
            self._outcomes.append((name, box, item.pause, problem))
            self._changed.notify_all()
        if problem:
            _LOG.warning("notification %s: %s", name, problem)

    def _take_outcomes(self) -> None:
        now = self._core.clock.now()
        while self._outcomes:
            name, box, pause, problem = self._outcomes.popleft()
            self._busy.discard(name)
            self._unsaved = True
            if not problem:
                box.succeed(now, pause)
            elif box.fail(now, problem):
                _LOG.error("a message of a notification was given up: %s", problem)

    # the file --------------------------------------------------------------------------------

    def _read(self) -> State:
        path = self._core.paths.notifications
        try:
            return msgspec.convert(jsonio.loads(path.read_bytes()), State)
        except FileNotFoundError:
            return State()
        except (OSError, errors.ParseError, ValueError) as err:
            _LOG.warning("%s is not used: %s", path, err)
            return State()

    def _save(self) -> None:
        """Write the file; a failure is logged."""
        self._state.known = self._watch.known
        text = jsonio.dumps(msgspec.to_builtins(self._state))
        self._unsaved, self._saved_at = False, self._core.clock.monotonic()
        try:
            files.write_atomic(self._core.paths.notifications, text, mode=0o600)
        except (OSError, errors.GanetiError) as err:
            _LOG.warning("notifications are not kept in a file: %s", err)


def _note_master(draft: Draft) -> None:
    draft.update_cluster(notifying_node=draft.cluster.master_node)
