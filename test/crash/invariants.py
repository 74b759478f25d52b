"""What must hold after a crash: files of the stopped master, and answers of the started one."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load import FINAL, Acknowledged

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.file_journal import FileJournal
from ganeti.config import store, verify
from ganeti.jobs.files import KEYS
from ganeti.luxi.client import Client
from ganeti.model import base
from ganeti.model.config import CONTAINERS, Config
from ganeti.paths import Paths

#: Words of an operation that was running when the master died.
INTERRUPTED = "the master daemon stopped while this operation was running"
#: Number of jobs that are looked at each time: those of some ten rounds.
RECENT = 200
_JOB = re.compile(r"job-([0-9]+)")


@dataclass
class JobFile:
    """What counts of one job file."""

    path: Path
    digest: bytes = field(repr=False)
    raw: dict[str, Any] = field(repr=False)

    @property
    def id(self) -> int:
        return int(self.raw["id"])

    @property
    def marks(self) -> list[str]:
        return [op["input"].get("comment") or "" for op in self.raw["ops"]]

    @property
    def statuses(self) -> list[str]:
        return [op["status"] for op in self.raw["ops"]]

    @property
    def status(self) -> str | None:
        """The status of a job that has ended."""
        statuses = self.statuses
        if not all(status in FINAL for status in statuses):
            return None
        return next((status for status in statuses if status != "success"), "success")


@dataclass
class Checker:
    """Remembers what it saw after each crash, as some things may only grow."""

    paths: Paths
    known: Acknowledged
    run_log: Path
    checks: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    config: Config | None = None
    _archive: dict[int, JobFile] = field(default_factory=dict)
    _final: dict[int, bytes] = field(default_factory=dict)
    _run_at: int = 0
    _runs: Counter[tuple[int, int]] = field(default_factory=Counter)
    _marks: dict[str, int] = field(default_factory=dict)
    _looks: int = 0
    _full: bool = True

    def _check(self, what: str, good: bool, problem: str) -> None:
        self.checks[what] += 1
        if not good:
            self.problems.append(problem)

    def offline(self, *, full: bool = False) -> None:
        """Everything that the files tell while no master runs.

        All jobs are looked at only now and then, or when ``full``; else those of the last rounds.
        """
        self._looks += 1
        self._full = full or self._looks % 25 == 0
        config = store.read_config(self.paths)
        self._configuration(config)
        self._promised(config)
        self._jobs(config)
        self.problems += self.known.unexpected
        self.known.unexpected.clear()

    # configuration -------------------------------------------------------------------------

    def _configuration(self, config: Config) -> None:
        broken = verify.problems(config)
        self._check("sound configurations", not broken, f"half a change: {broken}")
        before = self.config
        self.config = config
        if before is None:
            return
        old, new = before.data.serial_no, config.data.serial_no
        self._check("serials", new >= old, f"the serial went from {old} back to {new}")
        for container in CONTAINERS:
            now = getattr(config.data, container)
            for uuid, obj in getattr(before.data, container).items():
                if uuid in now and hasattr(obj, "serial_no"):
                    self._check(
                        "serials",
                        now[uuid].serial_no >= obj.serial_no,
                        f"{container} {uuid}: serial {obj.serial_no} became {now[uuid].serial_no}",
                    )

    def _promised(self, config: Config) -> None:
        objects = {"cluster": {"": config.cluster}, "node": {}}
        objects["node"] = {node.name: node for node in config.nodes.values()}  # type: ignore[dict-item]
        what = "acknowledged changes"
        for (kind, name, tag), there in self.known.tags.items():
            found = tag in objects[kind][name].tags
            self._check(what, found == there, f"tag {tag} of {kind} {name} is there: {found}")
        names = {i.name: not i.forthcoming for i in config.instances.values()}
        for name, there in self.known.instances.items():
            found = names.get(name, False)
            self._check(what, found == there, f"instance {name} is there: {found}")
        for uuid, there in self.known.filters.items():
            found = uuid in config.data.filters
            self._check(what, found == there, f"filter rule {uuid} is there: {found}")
        drained = (self.paths.queue / "drain").exists()
        if self.known.drained is not None:
            self._check(what, drained == self.known.drained, f"the queue is drained: {drained}")

    # jobs ----------------------------------------------------------------------------------

    def _read(self, path: Path, data: bytes) -> JobFile:
        try:
            raw = jsonio.loads(data)
        except errors.ParseError:
            self._check("queues without damage", False, f"{path} is damaged: {data[:80]!r}")
            raw = {"id": int(path.name[4:]), "ops": []}
        return JobFile(path, hashlib.sha256(data).digest(), raw)

    def _collect(self) -> dict[int, JobFile]:
        queue = self.paths.queue
        damaged = [path.name for path in queue.iterdir() if path.name.endswith(".corrupted")]
        self._check("queues without damage", not damaged, f"damaged: {damaged}")
        live = {}
        for path in queue.glob("job-*"):
            match = _JOB.fullmatch(path.name)
            if match:
                live[int(match[1])] = self._read(path, path.read_bytes())
        for name, data in FileJournal(queue).read_pending().items():
            match = _JOB.fullmatch(name)
            if match:
                live[int(match[1])] = self._read(queue / name, data)
        archived: dict[int, JobFile] = {}
        for path in (queue / "archive").glob("*/job-*"):
            number = int(path.name[4:])
            archived[number] = self._archive.get(number) or self._read(path, path.read_bytes())
        lost = set(self._archive) - set(archived)
        self._check("archives", not lost, f"jobs {sorted(lost)} left the archive")
        twice = set(archived) & set(live)
        self._check("archives", not twice, f"jobs {sorted(twice)} are live and archived")
        self._archive = archived
        return {**archived, **live}

    def _jobs(self, config: Config) -> None:
        known, jobs = self.known, self._collect()
        first = 0 if self._full else max(known.jobs, default=0) - RECENT
        for job_id, mark in known.jobs.items():
            if job_id < first:
                continue
            job = jobs.get(job_id)
            good = job is not None and job.marks[:1] == [mark]
            self._check("acknowledged jobs", good, f"job {job_id} ({mark}) is {job}")
        for job_id, status in known.ended.items():
            if job_id < first:
                continue
            job = jobs.get(job_id)
            found = job.status if job else "gone"
            self._check("ends", found == status, f"job {job_id} was {status} and is {found}")
        for job_id in known.canceled:
            good = job_id in jobs and jobs[job_id].status == "canceled"
            self._check("ends", good, f"job {job_id} is not canceled")
        for job_id in known.archived:
            self._check("archives", job_id in self._archive, f"job {job_id} is not archived")
        for job_id, priority in known.priorities.items():
            ops = jobs[job_id].raw["ops"] if job_id in jobs else []
            good = [op["priority"] for op in ops] == [priority]
            self._check("priorities", good, f"job {job_id} has not priority {priority}")
        self._read_runs()
        jobs = {job_id: job for job_id, job in jobs.items() if job_id >= first}
        for job in jobs.values():
            self._job(job)
        self._effects(config, jobs)
        if self._full:
            self._keys()

    def _job(self, job: JobFile) -> None:
        mark = job.marks[0] if job.marks else ""
        if mark:
            first = self._marks.setdefault(mark, job.id)
            self._check("single jobs", first == job.id, f"{mark} is job {first} and {job.id}")
        if job.status is None:
            return
        old = self._final.setdefault(job.id, job.digest)
        self._check("ended jobs", old == job.digest, f"job {job.id} changed after its end")
        for index, status in enumerate(job.statuses):
            runs = self._runs[job.id, index]
            good = runs <= 1 and (runs == 1 or status != "success" or not mark)
            self._check("single runs", good, f"opcode {index} of job {job.id} ran {runs} times")

    def _read_runs(self) -> None:
        if not self.run_log.exists():
            return
        with self.run_log.open() as stream:
            stream.seek(self._run_at)
            for line in iter(stream.readline, ""):
                job_id, index, _name = line.split()
                self._runs[int(job_id), int(index)] += 1
                if self._runs[int(job_id), int(index)] > 1:
                    self._check("single runs", False, f"opcode {index} of job {job_id} ran again")
            self._run_at = stream.tell()

    def _effects(self, config: Config, jobs: dict[int, JobFile]) -> None:
        """What the files call a success has its effect in the configuration."""
        gone = {
            tag
            for job in jobs.values()
            for op in job.raw["ops"]
            if op["input"]["OP_ID"] == "OP_TAGS_DEL"
            for tag in op["input"]["tags"]
        }
        for job in jobs.values():
            for op in job.raw["ops"]:
                given = op["input"]
                if given["OP_ID"] == "OP_TAGS_SET" and op["status"] == "success":
                    tags = set(given["tags"]) - gone
                    cluster = given["kind"] == "cluster"
                    holder = config.cluster if cluster else config.node(given["name"])
                    good = tags <= set(holder.tags)
                    self._check("effects", good, f"job {job.id} is a success without {tags}")

    def _keys(self) -> None:
        for path in (self.paths.queue / KEYS).iterdir():
            if not path.name.startswith("."):
                text = path.read_text().strip()
                self._check("keys", text.isdigit(), f"key {path.name} holds {text!r}")

    # the running master --------------------------------------------------------------------

    def online(self) -> None:
        """A started master answers what its files hold. OSError, NoMasterError if it dies."""
        with Client(self.paths.luxi_socket, io_timeout=15.0, reconnect_limit=0.0) as client:
            rows = client.query_jobs(None, ["id", "status"])
            ids = [row[0] for row in rows]
            self._check("answers", len(ids) == len(set(ids)), "a job is listed twice")
            missing = set(self.known.jobs) - set(ids) - set(self._archive)
            self._check("answers", not missing, f"jobs {sorted(missing)} are not listed")
            told = client.query_tags("cluster")
            promised = {
                t for (kind, _, t), there in self.known.tags.items() if there and kind == "cluster"
            }
            lost = promised - set(told)
            self._check("answers", not lost, f"tags {sorted(lost)} are not listed")
            self._submit_again(client)

    def _submit_again(self, client: Client) -> None:
        """Clients that got no answer ask again with their key."""
        if self.known.drained is not False:
            client.set_drain_flag(False)
            self.known.drained = False
        for key, ops in list(self.known.open_keys.items()):
            job_id = client.submit_job(ops, key)
            self.known.job(job_id, key)
            self.known.keys[key] = job_id
            del self.known.open_keys[key]
            before = self._marks.get(key, job_id)
            self._check("keys", before == job_id, f"key {key}: jobs {before} and {job_id}")
        for key in list(self.known.keys)[-3:]:
            job_id = client.submit_job([{"OP_ID": "OP_TEST_DELAY", "duration": 0}], key)
            right = self.known.keys[key]
            self._check("keys", job_id == right, f"key {key}: {job_id}, not {right}")

    # rests ---------------------------------------------------------------------------------

    def leftovers(self) -> list[str]:
        """Instances that interrupted jobs left, to be removed."""
        assert self.config is not None
        return sorted(i.name for i in self.config.instances.values() if i.name)

    def same_copy(self, other: Paths) -> str:
        """How a candidate's copy differs from the master's files; empty when it does not."""
        self.checks["copies"] += 1
        try:
            mine, theirs = store.read_config(self.paths), store.read_config(other)
        except errors.ConfigurationError as err:  # one is being written
            return errors.text(err)
        if base.to_wire(mine.data) != base.to_wire(theirs.data):
            return f"configuration {mine.data.serial_no} and {theirs.data.serial_no}"
        own, copied = (
            {path.name: path.read_bytes() for path in paths.queue.glob("job-*")}
            | FileJournal(paths.queue).read_pending()
            for paths in (self.paths, other)
        )
        names = {name for name in own.keys() | copied.keys() if own.get(name) != copied.get(name)}
        return f"different: {sorted(names)}" if names else ""
