"""Sources of the data of queries: configuration, nodes, queue and locks of this daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ganeti.base.json_types import JsonObject
from ganeti.jobs.queue import JobQueue
from ganeti.locking.manager import LockManager
from ganeti.master.facts import Facts
from ganeti.model import job as job_model
from ganeti.model.backup import Manifest
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.query.live import (
    NO_ANSWER,
    Answers,
    ClusterFacts,
    JobView,
    LockView,
    NodeAnswer,
    NodeInfo,
    NodeRequest,
    NodeState,
)
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer, NodeRpc
from ganeti.rpc.objects import Console, ExtStorageInfo, InstanceInfo, OsInfo

T = TypeVar("T")

#: Seconds for calls that only show something: nobody wants to wait for a dead node longer.
QUERY_TIMEOUT = 10.0


class MasterSources:
    """One for each query: the configuration does not change meanwhile."""

    def __init__(
        self, config: Config, rpc: NodeRpc, queue: JobQueue, locks: LockManager, facts: Facts
    ) -> None:
        self._config = config
        self._calls = rpc
        self._queue = queue
        self._locks = locks
        self._facts = facts

    @property
    def config(self) -> Config:
        return self._config

    @property
    def _rpc(self) -> NodeRpc:
        """Node calls for queries; most queries make none."""
        return self._calls.limit_time(QUERY_TIMEOUT).share_calls()

    def _hvparams(self, names: Sequence[str]) -> dict[str, JsonObject]:
        return {name: self._config.cluster.hvparams.get(name, {}) for name in names}

    def node_info(self, requests: Mapping[NodeUuid, NodeRequest]) -> Answers[NodeInfo]:
        arguments: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {
            uuid: (
                self._config.nodes[uuid],
                (list(request.units), list(self._hvparams(request.hypervisors).items())),
            )
            for uuid, request in requests.items()
        }
        return _states(self._rpc.call_each(NodeCalls.node_info, arguments))

    def instances_info(
        self, nodes: Sequence[Node], hypervisors: Sequence[str]
    ) -> Answers[Mapping[str, InstanceInfo]]:
        names = list(hypervisors)
        return _states(
            self._rpc.call_many(nodes, NodeCalls.all_instances_info, names, self._hvparams(names))
        )

    def consoles(self, instances: Sequence[Instance]) -> Mapping[str, NodeAnswer[Console]]:
        by_node: dict[NodeUuid, list[Instance]] = {}
        for instance in instances:
            by_node.setdefault(instance.primary_node, []).append(instance)
        arguments: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {}
        for uuid, group in by_node.items():
            node = self._config.nodes[uuid]
            params = {i.name: (annotate.instance(self._config, i), node.name) for i in group}
            arguments[uuid] = (node, (params,))
        answers = self._rpc.call_each(NodeCalls.instance_console_info, arguments)
        return {
            instance.uuid: _console(answers[instance.primary_node], instance)
            for instance in instances
        }

    def exports(self, nodes: Sequence[Node]) -> Answers[Sequence[str]]:
        return _states(self._rpc.call_many(nodes, NodeCalls.export_list))

    def backups(self, repositories: Sequence[str]) -> Mapping[str, NodeAnswer[Sequence[Manifest]]]:
        master = self._config.master
        return {
            repository: _state(
                self._rpc.call_many([master], NodeCalls.backup_list, repository, None)[master.uuid]
            )
            for repository in repositories
        }

    def os_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[OsInfo]]:
        return _states(self._rpc.call_many(nodes, NodeCalls.os_diagnose))

    def extstorage_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[ExtStorageInfo]]:
        return _states(self._rpc.call_many(nodes, NodeCalls.extstorage_diagnose))

    def job_ids(self, archived: bool) -> Sequence[int]:
        live = self._queue.read_all(lambda record: record.id)
        return [*self._queue.list_archived_ids(), *live] if archived else live

    def jobs(self, ids: Sequence[int]) -> Mapping[int, JobView]:
        views: dict[int, JobView] = {
            record.id: JobView(record) for record in self._queue.read_all(job_model.copy, ids)
        }
        for job_id in ids:
            if job_id not in views:
                record = self._queue.read_archived(job_id)
                if record is not None:
                    views[job_id] = JobView(record, archived=True)
        return views

    def locks(self) -> Sequence[LockView]:
        return [
            LockView(
                view.name,
                view.mode,
                view.owners,
                [(mode, [owner]) for mode, owner in view.pending],
            )
            for view in self._locks.snapshot()
        ]

    def cluster_facts(self) -> ClusterFacts:
        return ClusterFacts(
            drained=self._queue.drained,
            watcher_pause=self._facts.watcher_pause(),
            architecture=self._facts.architecture,
            vcs_version=self._facts.vcs_version,
        )


def _states(answers: Mapping[NodeUuid, Answer[object]]) -> dict[NodeUuid, NodeAnswer[Any]]:
    return {uuid: _state(answer) for uuid, answer in answers.items()}


def _state(answer: Answer[Any]) -> NodeAnswer[Any]:
    if answer.offline:
        return NodeAnswer(NodeState.OFFLINE)
    return NodeAnswer.ok(answer.value) if answer.ok else NO_ANSWER


def _console(answer: Answer[dict[str, Console]], instance: Instance) -> NodeAnswer[Console]:
    state = _state(answer)
    if state.state is not NodeState.OK:
        return state
    console = answer.get().get(instance.name)
    return NO_ANSWER if console is None else NodeAnswer.ok(console)
