"""A whole cluster in one process: for tests that look at every state between two steps.

Configuration store, locks, operations, node handlers, file disks and the fake hypervisor are real,
each node below a root of its own. Only the wire is replaced: a call is encoded, decoded and made at
once, in the caller's thread. On the way a test can end the master, which makes no call and no
change after that; :meth:`OneProcess.new_master` is the next one. Or it can end the daemon of a
node, which answers nothing until :meth:`OneProcess.restart_daemons`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local_node import LocalNode

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.bootstrap import defaults, init
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import ssconf, verify
from ganeti.config.changes import Author, Draft
from ganeti.config.job_claims import JobClaims
from ganeti.config.store import Store, write_checkpoint
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.locking.manager import LockManager
from ganeti.locking.request import State
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.net import certs, pem
from ganeti.node.context import NodeContext
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterVerifyConfig, OpClusterVerifyGroup
from ganeti.ops import locks
from ganeti.ops.board.keeper import Boards
from ganeti.ops.operation import Context
from ganeti.ops.runner import Runner
from ganeti.ops.services import LeaseEnd
from ganeti.paths import Paths
from ganeti.rpc import objects, wire
from ganeti.rpc.client import Answer

#: Directory of the OS definitions that come with the project.
OS_DIR = Path(__file__).parents[2] / "os"
#: More steps than any operation has.
_ENOUGH = 200
#: Of the moments to die at, each second one is tried: the moments after a step and before the next
#: one find the same on all disks. ``CRASH_POINTS=all`` tries all.
STRIDE = 1 if os.environ.get("CRASH_POINTS") == "all" else 2
#: Content of a disk's first bytes, by which it is known again.
MARK = 32


class MasterDied(BaseException):
    """Ends an operation as a kill does: nothing of it happens any more."""


class MovedClock(Clock):
    """The system's clock, set forward by ``ahead`` seconds."""

    ahead = 0.0

    def now(self) -> float:
        return SYSTEM.now() + self.ahead

    def monotonic(self) -> float:
        return SYSTEM.monotonic() + self.ahead


class _Store(Store):
    """The real store; each change is a step at which the master can die."""

    step: Callable[[str], None] = staticmethod(lambda _what: None)

    def change(self, name: str, author: Author, edit: Callable[[Draft], Any]) -> Any:
        self.step(f"before change {name}")
        result = super().change(name, author, edit)
        self.step(f"after change {name}")
        return result


class OneProcess:
    """The cluster ``c.example.com`` with nodes ``node1`` (the master) to ``node<count>``.

    It is made below ``root``, or continues there: the tree of one that was closed may be copied.
    """

    def __init__(self, root: Path, count: int = 3, **settings: Any) -> None:
        self.root = root
        self.steps: list[str] = []
        #: number of the step at which the master dies; None: never
        self.dies_at: int | None = None
        self.dead = False
        self.calls = 0
        #: number of the call at which a node daemon dies; whether it has done its work then
        self.fault: tuple[int, bool] | None = None
        #: nodes whose daemon is dead
        self.silent: set[str] = set()
        self.log: list[str] = []
        #: jobs that operations have submitted
        self.submitted: list[list[OpCode]] = []
        #: jobs that wait or run; those of :meth:`run` are not among them by themselves
        self.unended: Collection[int] = ()
        #: master candidates without the newest state, and why
        self.lagging: dict[str, str] = {}
        self.clock = MovedClock()
        #: the lease of each node, and nodes that got none for a while
        self.lease_end = LeaseEnd(None, watchdog=False)
        self.held_back: list[str] = []
        self._jobs = itertools.count(1)
        self._runs = itertools.count(1)
        #: a master of a tree that was copied comes after the one that was closed
        self.epoch = 2 if root.exists() else 1
        #: by short name
        self.paths = {f"node{n}": Paths(root / f"node{n}") for n in range(1, count + 1)}
        if not root.exists():
            write_checkpoint(self._set_up(settings), self.paths["node1"])
        self._open()
        self.handlers = {uuid: self._handlers(node) for uuid, node in self.config.nodes.items()}

    # making it ---------------------------------------------------------------------------

    def _set_up(self, settings: dict[str, Any]) -> Config:
        authority = certs.create_ca("c.example.com")
        shared = self.root / "shared"
        shared.mkdir(parents=True)
        for number, (short, where) in enumerate(self.paths.items(), 1):
            init.make_directories(where)
            host, address = f"{short}.example.com", f"127.0.0.{number}"
            certs.write_authority(authority, where.ca_key, where.ca_cert)
            certs.write(where.server_cert, certs.issue_server(authority, host, [address]))
            certs.write(where.client_cert, certs.issue_client(authority, host, [address]))
            if number > 1:
                where.ca_key.unlink()  # only master candidates have it
            where.file_storage.mkdir(parents=True)
            where.file_storage.chmod(0o750)
            where.under(defaults.SHARED_FILE_STORAGE_DIR).symlink_to(Path("../../../shared"))
            definitions = where.os_search_path[0]
            definitions.parent.mkdir(parents=True, exist_ok=True)
            definitions.symlink_to(OS_DIR)
        return self._configuration(settings)

    def _configuration(self, settings: dict[str, Any]) -> Config:
        data = defaults.configuration(
            InitSettings(
                cluster_name="c.example.com",
                enabled_hypervisors=["fake"],
                enabled_disk_templates=["file", "sharedfile", "diskless"],
                ipolicy=settings.pop("ipolicy", _small()),
                default_iallocator=settings.pop("default_iallocator", ""),
                modify_etc_hosts=False,
                modify_ssh_setup=settings.pop("modify_ssh_setup", False),
                **settings,
            ),
            host="node1.example.com",
            address="127.0.0.1",
            master_ip="127.0.0.254",
            certificate_digest=pem.digest_of_file(self.paths["node1"].client_cert),
            now=1.0,
        )
        [master] = data.nodes.values()
        nodes = {master.uuid: master}
        for number in range(2, len(self.paths) + 1):
            uuid = f"00000000-0000-4000-8000-{number:012}"
            nodes[uuid] = Node(
                uuid=uuid,
                name=f"node{number}.example.com",
                group=master.group,
                primary_ip=f"127.0.0.{number}",
                secondary_ip=f"127.0.0.{number}",
            )
        config = Config(base.replace(data, nodes=nodes))
        values = ssconf.values(config)
        for where in self.paths.values():
            init.write_ssconf(where, values)
        return config

    def _open(self) -> None:
        self.store = _Store(self.paths["node1"])
        self.store.step = self._step  # type: ignore[method-assign]
        self.locks = LockManager([level.label for level in LockLevel])
        self.claims = JobClaims()
        self.boards = Boards()
        locks.create(self.locks, self.config)
        self.store.add_listener(lambda before, after: locks.follow(self.locks, before, after))

    def new_master(self) -> None:
        """The master daemon begins again from what is on its disk."""
        self.store.close()
        self.dead, self.dies_at = False, None
        self.epoch += 1
        self._open()

    def _handlers(self, node: Node) -> LocalNode:
        return LocalNode(NodeContext(self._at(node), node.name))

    def restart_daemons(self) -> None:
        """Daemons that died begin again from what is on their nodes."""
        for uuid in self.silent:
            self.handlers[uuid].stop()
            self.handlers[uuid] = self._handlers(self.config.nodes[uuid])
        self.silent.clear()

    def close(self) -> None:
        self.store.close()
        for handler in self.handlers.values():
            handler.stop()

    # what operations work with -----------------------------------------------------------

    def _step(self, what: str) -> None:
        """Something that is seen outside of the master; it may not live to do it."""
        if self.dead:
            raise MasterDied
        self.steps.append(what)
        if self.dies_at is not None and len(self.steps) > self.dies_at:
            self.dead = True
            raise MasterDied

    def _context(self, job: Any) -> Context:
        me: Any = self
        return Context(
            job=job,
            store=self.store,
            rpc=me,
            locks=self.locks,
            claims=self.claims,
            clock=self.clock,
            paths=self.paths["node1"],
            services=me,
            boards=self.boards,
        )

    def _submit(self, jobs: list[list[OpCode]]) -> list[int]:
        """Note jobs that an operation submits; nothing runs them."""
        self.submitted += jobs
        return [next(self._jobs) for _job in jobs]

    def run_epoch(self) -> tuple[int, int]:
        return self.epoch, next(self._runs)

    def distribute_ssconf(self) -> list[str]:
        return []

    def note_findings(self, part: str, findings: object) -> None:
        """Nobody reads them."""

    @contextlib.contextmanager
    def hold_sent_ssconf(self) -> Iterator[dict[str, str]]:
        """Nothing is sent again after the cluster was made."""
        yield {}

    @contextlib.contextmanager
    def hold_lease_back(self, node: str) -> Iterator[LeaseEnd]:
        self.held_back.append(node)
        yield self.lease_end

    def change_deciders(self, after: Config) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def has_ended(self, job_id: int) -> bool:
        return job_id not in self.unended

    def replication_failure(self, candidate: str) -> str:
        return self.lagging.get(candidate, "")

    def limit_time(self, _seconds: float) -> OneProcess:
        return self

    def share_calls(self) -> OneProcess:
        return self

    def call_one(self, node: Node, method: Any, *args: Any) -> Any:
        return self.call_many([node], method, *args)[node.uuid].get()

    def call_many(self, nodes: Iterable[Node], method: Any, *args: Any) -> dict[str, Answer[Any]]:
        return {node.uuid: self._ask(node, method, args) for node in nodes}

    def call_each(
        self, method: Any, arguments: Mapping[str, tuple[Node, tuple[Any, ...]]]
    ) -> dict[str, Answer[Any]]:
        return {uuid: self._ask(node, method, args) for uuid, (node, args) in arguments.items()}

    def _ask(self, node: Node, method: Any, args: Sequence[Any]) -> Answer[Any]:
        if node.offline:
            error = errors.RpcError(f"node {node.name} is marked offline")
            return Answer(node, error=error, offline=True)
        spec = wire.specs()[method.__name__]
        self._step(f"before {spec.name}")
        self.calls += 1
        dies, done = (self.calls == self.fault[0], self.fault[1]) if self.fault else (False, False)
        if dies:
            self.silent.add(node.uuid)
        if node.uuid in self.silent and not (dies and done):
            return Answer(node, error=errors.RpcError(f"node {node.name} does not answer"))
        body = jsonio.dumps_bytes(wire.encode(list(objects.localised(tuple(args), node.uuid))))
        try:
            made = getattr(self.handlers[node.uuid], spec.name)(
                *wire.decode_args(spec, jsonio.loads(body))
            )
            answer = jsonio.loads(jsonio.dumps_bytes(wire.encode(made)))
            found = Answer(node, wire.decode_result(spec, answer))
        except errors.GanetiError as err:
            found = Answer(node, error=err)
        if dies:
            found = Answer(node, error=errors.RpcError(f"node {node.name} broke off the call"))
        self._step(f"after {spec.name}")
        return found

    # what tests do -----------------------------------------------------------------------

    def run(self, op: OpCode) -> Any:
        """Run one job to its end; raises what it fails with. All its locks are free then."""
        number = next(self._jobs)
        job = SimpleNamespace(
            job_id=number,
            priority=0,
            submitter=None,
            cancel_asked=threading.Event(),
            log=lambda text, kind="message": self.log.append(str(text)),
            submit=self._submit,
            stop_requested=lambda: False,
        )
        execution = Runner(self._context).start(op, job)  # type: ignore[arg-type]
        try:
            while (need := execution.advance()) is not None:
                self._lock(number, need)
            return execution.run()
        finally:
            execution.close()

    def _lock(self, owner: int, need: Need) -> None:
        if need.opportunistic:
            self.locks.take_free(owner, need.level, need.names, shared=need.shared)
            return
        try:
            request = self.locks.request(
                owner,
                need.level,
                need.names,
                shared=need.shared,
                new=need.new,
                on_done=lambda _request: None,
            )
        except errors.LockError as err:
            code = errors.ErrorCode.NOTUNIQUE if need.new else errors.ErrorCode.NOENT
            raise errors.OpPrereqError(errors.text(err), code) from err
        assert request.state is State.GRANTED, "nobody else holds a lock"

    @classmethod
    def deaths(
        cls, tree: Path, work: Path, make: Callable[[OneProcess], OpCode], stride: int = STRIDE
    ) -> Iterator[tuple[str, OneProcess]]:
        """Let the master die at each ``stride``-th step of an operation, each on a copy of a tree.

        Gives the step and the cluster with its next master, and ends when the operation has come
        through; AssertionError when it never does.
        """
        for number in range(0, _ENOUGH, stride):
            cluster = cls(_copy(tree, work / str(number)))
            cluster.dies_at = len(cluster.steps) + number
            try:
                try:
                    cluster.run(make(cluster))
                except MasterDied:
                    cluster.new_master()
                else:
                    return
                yield f"dead after {cluster.steps[-1]}", cluster
            finally:
                cluster.close()
        raise AssertionError("the operation never ended")

    @classmethod
    def daemon_deaths(
        cls, tree: Path, work: Path, make: Callable[[OneProcess], OpCode], *, done: bool
    ) -> Iterator[tuple[str, OneProcess, errors.GanetiError | None]]:
        """Let the daemon of a node die at the calls of an operation, each on a copy of a tree.

        Before or after it has done its work, at each second call (:data:`STRIDE`). Gives the call,
        the cluster with its daemons running again, and what the job failed with; ends when the
        operation has come through without.
        """
        for number in range(1, _ENOUGH, STRIDE):
            cluster = cls(_copy(tree, work / str(number)))
            cluster.fault = (cluster.calls + number, done)
            failed: errors.GanetiError | None = None
            try:
                try:
                    cluster.run(make(cluster))
                except errors.GanetiError as err:
                    failed = err
                if not cluster.silent:
                    assert failed is None, failed
                    return
                [call] = [
                    step
                    for step in cluster.steps
                    if step.startswith("before ") and not step.startswith("before change")
                ][number - 1 : number]
                cluster.restart_daemons()
                yield call.removeprefix("before "), cluster, failed
            finally:
                cluster.close()
        raise AssertionError("the operation never ended")

    def verify(self) -> list[str]:
        """What ``gnt-cluster verify`` reports as errors, but for ports that nobody serves here."""
        before = len(self.log)
        self.run(OpClusterVerifyConfig())
        for group in self.config.groups.values():
            self.run(OpClusterVerifyGroup(group_name=group.name))
        found = [line.strip() for line in self.log[before:] if "ERROR" in line]
        return [line for line in found if "Connection refused" not in line]

    # what tests look at ------------------------------------------------------------------

    @property
    def config(self) -> Config:
        return self.store.current

    @property
    def problems(self) -> list[str]:
        return verify.problems(self.config)

    def instance(self, name: str) -> Instance:
        return self.config.instance(name)

    def node(self, number: int) -> Node:
        return self.config.node(f"node{number}.example.com")

    def _at(self, node: Node) -> Paths:
        return self.paths[node.name.partition(".")[0]]

    def image(self, disk_uuid: str) -> Path:
        """The file of a disk, on the node that the configuration names."""
        disk = self.config.disks[disk_uuid]
        home = next((self.config.nodes[uuid] for uuid in disk.nodes), self.config.master)
        return self._at(home).under(str(disk.logical_id[1]))

    def mark(self, disk_uuid: str) -> None:
        """Write something onto a disk by which its content is known again."""
        with self.image(disk_uuid).open("r+b") as stream:
            stream.write(disk_uuid.encode()[:MARK])

    def marked(self, disk_uuid: str) -> bool:
        """Whether the content is what :meth:`mark` has written."""
        with self.image(disk_uuid).open("rb") as stream:
            return stream.read(MARK) == disk_uuid.encode()[:MARK]

    def images(self) -> list[Path]:
        """All files of disks on all nodes, each shared one once."""
        roots = [where.file_storage for where in self.paths.values()]
        found = [path for root in [*roots, self.root / "shared"] for path in root.rglob("*")]
        return sorted(path for path in found if path.is_file())

    def running(self, name: str) -> list[str]:
        """Short names of the nodes that run an instance."""
        return [
            short for short, where in self.paths.items() if (where.fake_hypervisor / name).exists()
        ]

    def find_free_disk(self) -> str:
        """UUID of the one disk that belongs to no instance."""
        [free] = [uuid for uuid in self.config.disks if self.config.owner(uuid) is None]
        return free

    def check_quiet(self, when: str) -> None:
        """The configuration agrees with itself, and nobody holds a lock."""
        assert self.problems == [], when
        assert self.held_locks() == [], when

    def held_locks(self) -> list[str]:
        """Names of all locks that somebody holds or waits for."""
        return [view.name for view in self.locks.snapshot() if view.mode or view.pending]


def _copy(tree: Path, target: Path) -> Path:
    """A copy of a tree; links from one place in it to another one lead to the copy's."""
    subprocess.run(["cp", "-a", "--", tree, target], check=True)
    for link, leads in _inner_links(tree):
        (target / link).unlink()
        (target / link).symlink_to(target / leads)
    return target


@functools.cache
def _inner_links(tree: Path) -> list[tuple[Path, Path]]:
    """Links of a tree to other places in it by their full paths, both relative to the tree."""
    return [
        (path.relative_to(tree), path.readlink().relative_to(tree))
        for path in tree.rglob("*")
        if path.is_symlink() and path.readlink().is_relative_to(tree)
    ]


def _small() -> dict[str, Any]:
    """A policy that lets instances be tiny."""
    least = {
        "memory-size": 1,
        "cpu-count": 1,
        "disk-count": 0,
        "disk-size": 1,
        "nic-count": 0,
        "spindle-use": 1,
    }
    most = {
        "memory-size": 32768,
        "cpu-count": 8,
        "disk-count": 16,
        "disk-size": 1048576,
        "nic-count": 8,
        "spindle-use": 12,
    }
    return {"minmax": [{"min": least, "max": most}]}
