"""The methods of LUXI, over the parts of the master daemon."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.luxi.calls import METHODS
from ganeti.luxi.reply import Reply
from ganeti.master import (
    consoles,
    events,
    facts,
    health,
    history,
    job_filters,
    job_log,
    measures,
    recovery_status,
    samples,
    watcher_pause,
)
from ganeti.master.client_waits import ClientWaits
from ganeti.master.core import Core
from ganeti.master.events import Events
from ganeti.master.notifier import Notifier
from ganeti.master.submission import Submissions, identify
from ganeti.master.waiting import Waiting
from ganeti.model.config import Config
from ganeti.net.unix_socket import Credentials
from ganeti.ops import locks
from ganeti.ops.targets import tags as tag_target
from ganeti.query import engine, redaction
from ganeti.query.classic import EXPORT_FIELDS, compile_query, strip_statuses

_LOG = logging.getLogger(__name__)


#: Queries that wait for nodes at the same time.
_LIVE = 16
#: Methods that only read, but need the queue.
_OF_JOBS = frozenset(
    {
        "QueryJobs",
        "QueryJobLog",
        "QueryMetrics",
        "QueryHealth",
        "QueryRecovery",
        "WaitForJobChange",
        "WaitForEvents",
        "ExplainJob",
    }
)


@dataclass(frozen=True)
class _Live:
    """An answer that needs calls to nodes."""

    get: Callable[[], object]


class Service:
    """Answers requests; called by the pool threads of the LUXI server.

    Queries that call nodes have threads of their own: when a node hangs, so do they, and nothing
    else. Until :meth:`open` only what needs no queue is answered, the rest is kept.
    """

    def __init__(self, core: Core, waiting: Waiting) -> None:
        self._core = core
        self._waiting = waiting
        self._live = ThreadPoolExecutor(_LIVE, thread_name_prefix="live")
        core.queue.add_listener(waiting.note_change)
        self._events = Events(core.queue, core.clock)
        core.queue.add_listener(self._job_changed)
        core.store.add_listener(self._config_changed)
        self._notifier = Notifier(core, self._condition_changed)
        self._events.on_event = self._notifier.note
        core.survey.on_round = self._notifier.note_round
        self._opened = threading.Event()
        self._kept: list[Callable[[], object]] = []
        self._mutex = threading.Lock()
        self._consoles = consoles.Consoles(core)
        self._submissions = Submissions(core)
        waits = ClientWaits(core, waiting, self._events)
        self._waits: dict[str, Callable[[JsonObject, Reply], None]] = {
            "OpenConsole": self._open_console,
            "WaitForJobChange": waits.wait_for_job,
            "WaitForEvents": waits.wait_for_events,
        }
        self._methods: dict[str, Callable[[JsonObject, Credentials], object]] = {
            "Query": self._query,
            "QueryFields": self._query_fields,
            "QueryNodes": lambda a, _p: self._classic("node", a),
            "QueryGroups": lambda a, _p: self._classic("group", a),
            "QueryNetworks": lambda a, _p: self._classic("network", a),
            "QueryImages": lambda a, _p: self._classic("image", a),
            "QueryInstances": lambda a, _p: self._classic("instance", a),
            "QueryDisks": lambda a, _p: self._classic("disk", a),
            "QueryFilters": lambda a, _p: self._classic("filter", {**a, "names": a["uuids"]}),
            "QueryJobs": lambda a, _p: self._classic("job", {**a, "names": a["ids"]}),
            "QueryExports": self._query_exports,
            "QueryConfigValues": self._config_values,
            "QueryClusterInfo": self._cluster_info,
            "QueryTags": self._query_tags,
            "QueryJobLog": self._query_job_log,
            "QueryMetrics": self._query_metrics,
            "QueryHealth": lambda _a, _p: health.find_health(core),
            "QueryRecovery": lambda _a, _p: recovery_status.describe(core),
            "QueryNotifications": lambda _a, _p: self._notifier.describe(),
            "QuerySamples": self._query_samples,
            "QueryHistory": lambda a, _p: history.query(
                core.store.current, core.store.history, a["filter"]
            ),
            "QueryConfigDiff": lambda a, _p: history.diff(
                core.store.current, core.store.history, a["t1"], a["t2"]
            ),
            "ExplainJob": lambda a, _p: core.queue.explain(
                _job_id(a["job"]), partial(locks.name_objects, core.store.current)
            ),
            "SubmitJob": self._submissions.submit,
            "SubmitJobToDrainedQueue": self._submissions.submit_to_drained,
            "SubmitManyJobs": self._submissions.submit_many,
            "ArchiveJob": lambda a, _p: bool(core.queue.archive([_job_id(a["job"])])),
            "AutoArchiveJobs": self._auto_archive,
            "CancelJob": self._cancel,
            "ChangeJobPriority": self._change_priority,
            "SetDrainFlag": self._set_drain,
            "SetWatcherPause": self._set_watcher_pause,
            "NoteGuestEnd": self._note_guest_end,
            "QueryConsoles": lambda a, _p: _Live(lambda: self._consoles.find(a["instance"])),
            "NoteConsole": self._note_console,
            "ReplaceFilter": self._replace_filter,
            "DeleteFilter": self._delete_filter,
        }

    def __call__(self, method: str, args: JsonObject, peer: Credentials, reply: Reply) -> None:
        """Answer a request, at once or (those that wait for news or for the queue) later."""
        if not self._opened.is_set() and self._keep(method, args, peer, reply):
            return
        if method in METHODS:
            self._core.requests.note(method)
        if method in self._waits:
            self._waits[method](args, reply)
            return
        function = self._methods.get(method)
        if function is None:
            raise errors.GenericError(f"method {method} is internal or not built in this version")
        answer = function(args, peer)
        if isinstance(answer, _Live):
            self._live.submit(reply.run, lambda: reply.ok(answer.get()))
        else:
            reply.ok(answer)

    def _keep(self, method: str, args: JsonObject, peer: Credentials, reply: Reply) -> bool:
        """Put a request aside if it needs the queue, which is still being read."""
        known = METHODS.get(method)
        jobs = method in _OF_JOBS or (method == "Query" and args["what"] == "job")
        if known is None or (known.repeatable and not jobs):
            return False
        with self._mutex:
            if self._opened.is_set():
                return False
            self._kept.append(lambda: reply.run(lambda: self(method, args, peer, reply)))
        return True

    def open(self) -> None:
        """The queue is there: answer everything from now on, and what was kept; send notices."""
        self._notifier.start()
        with self._mutex:
            self._opened.set()
            kept, self._kept = self._kept, []
        for work in kept:
            self._live.submit(work)

    def stop(self) -> None:
        """Begin no more queries of nodes; those in work are not waited for."""
        self._live.shutdown(wait=False, cancel_futures=True)
        self._consoles.stop()
        self._notifier.stop()

    def answer_quickly(self, method: str, args: JsonObject) -> Callable[[], object] | None:
        """The function for a request that is answered faster than a thread wakes; never raises."""
        if method == "QueryConfigValues" and facts.is_quick(args["fields"]):
            return lambda: self._config_values(args, None)
        if method != "Query" or args.get("redacted"):
            return None
        if not engine.is_quick(args["what"], args["fields"], args["qfilter"]):
            return None
        return lambda: self._query(args, None)

    # queries -----------------------------------------------------------------------------

    def _query(self, args: JsonObject, _peer: Credentials | None) -> object:
        what, redacted = str(args["what"]), bool(args.get("redacted"))
        query = engine.Query(what, args["fields"], args["qfilter"], redacted=redacted)
        return self._run(query, lambda answer: answer)

    def _run(self, query: engine.Query, finish: Callable[[engine.QueryAnswer], object]) -> object:
        sources, clock = self._core.sources(), self._core.clock

        def run() -> object:
            begin = clock.monotonic()
            answer = query.run(sources)
            self._core.requests.query_times.observe(clock.monotonic() - begin)
            return finish(answer)

        return _Live(run) if query.asks_nodes else run()

    @staticmethod
    def _query_fields(args: JsonObject, _peer: Credentials) -> object:
        return engine.fields_of(str(args["what"]), args["fields"])

    def _classic(self, what: str, args: JsonObject) -> object:
        lock, redacted = bool(args.get("lock", False)), bool(args.get("redacted"))
        query = compile_query(
            self._core.sources(), what, args["names"], args["fields"], lock, redacted=redacted
        )
        return self._run(query, strip_statuses)

    def _query_exports(self, args: JsonObject, _peer: Credentials) -> object:
        names = {"names": args["nodes"], "fields": EXPORT_FIELDS, "lock": args["lock"]}
        return self._classic("export", names)

    def _cluster_info(self, args: JsonObject, _peer: Credentials) -> JsonObject:
        found = facts.cluster_info(self._core.store.current, self._core.facts)
        return dict(redaction.hide(found)) if args.get("redacted") else found

    def _config_values(self, args: JsonObject, _peer: Credentials | None) -> object:
        core = self._core
        return facts.config_values(
            core.store.current, core.facts, args["fields"], drained=lambda: core.queue.drained
        )

    def _query_tags(self, args: JsonObject, _peer: Credentials) -> object:
        kind, name = str(args["kind"]), args["name"]
        known = ("cluster", "nodegroup", "node", "instance", "network", "disk")
        if kind not in known:
            raise errors.make_invalid_error(f"'{kind}' has no tags; choose from {', '.join(known)}")
        return list(tag_target.find(self._core.store.current, kind, name).tags)

    # jobs --------------------------------------------------------------------------------

    def _auto_archive(self, args: JsonObject, _peer: Credentials) -> list[int]:
        return list(self._core.queue.auto_archive(args["age"], min(args["tmout"], 60.0)))

    def _cancel(self, args: JsonObject, _peer: Credentials) -> list[object]:
        return list(self._core.queue.cancel(_job_id(args["job"])))

    def _change_priority(self, args: JsonObject, _peer: Credentials) -> list[object]:
        return list(self._core.queue.set_priority(_job_id(args["job"]), args["priority"]))

    def _set_drain(self, args: JsonObject, _peer: Credentials) -> bool:
        self._core.queue.set_drained(args["flag"])
        return True

    def _set_watcher_pause(self, args: JsonObject, _peer: Credentials) -> object:
        until, core = args["until"], self._core
        moment = None if until is None else float(until)
        watcher_pause.write(core, moment)

        def inform_nodes() -> object:
            watcher_pause.send(core, moment)
            return until

        return _Live(inform_nodes)

    # logs, figures and consoles ----------------------------------------------------------

    def _query_job_log(self, args: JsonObject, _peer: Credentials) -> object:
        number = _job_id(args["job"])
        return _Live(lambda: job_log.query(self._core, number, args["nodes"]))

    def _query_metrics(self, _args: JsonObject, _peer: Credentials) -> object:
        self._core.survey.note_interest()
        return measures.collect(self._core)

    def _query_samples(self, args: JsonObject, _peer: Credentials) -> object:
        core = self._core
        what = (args["kind"], args["name"], args["range"])
        return _Live(lambda: samples.read(core.store, core.rpc, core.clock, *what))

    def _note_guest_end(self, args: JsonObject, _peer: Credentials) -> None:
        """Make an event of it; what is done about it is up to the watcher."""
        instance = self._core.store.current.instance(args["instance"])
        self._events.guest_ended(instance, args["node"], args["status"])
        self._waiting.note_change(events.KEY)

    def _open_console(self, args: JsonObject, reply: Reply) -> None:
        """Connect the client with a console; the threads that wait for nodes do it."""
        self._live.submit(
            reply.run, lambda: self._consoles.open(args["instance"], args["kind"], reply)
        )

    def _note_console(self, args: JsonObject, peer: Credentials) -> None:
        """Somebody has opened or closed a console: an event, a line in the log, and history."""
        instance = self._core.store.current.instance(args["instance"])
        known = {name: str(value)[:200] for name, value in args["data"].items()}
        _LOG.info("console of instance %s: %s", instance.name, jsonio.dumps(known))
        try:
            if known.get("what") == "opened":
                user = identify(peer, known.pop("author", None)).shown
                consoles.record(self._core.store, instance, known, user)
        finally:
            self._events.console_used(instance, known)
            self._waiting.note_change(events.KEY)

    # job filters -------------------------------------------------------------------------

    def _replace_filter(self, args: JsonObject, peer: Credentials) -> str:
        core, user = self._core, identify(peer, args.get("user")).shown
        return job_filters.replace_rule(
            core.store, core.clock, user, args, last_job=core.queue.last_id
        )

    def _delete_filter(self, args: JsonObject, peer: Credentials) -> None:
        user = identify(peer, args.get("user")).shown
        job_filters.delete_rule(self._core.store, user, args["uuid"])

    # what happens ------------------------------------------------------------------------

    def _job_changed(self, job_id: int) -> None:
        self._events.job_changed(job_id)
        self._waiting.note_change(events.KEY)

    def _condition_changed(self, data: JsonObject) -> None:
        self._events.condition_changed(data)
        self._waiting.note_change(events.KEY)

    def _config_changed(self, before: Config, after: Config) -> None:
        self._events.config_changed(before, after)
        self._waiting.note_change(events.KEY)


def _job_id(value: int | str) -> int:
    """Older clients send the id as a text."""
    return int(value)
