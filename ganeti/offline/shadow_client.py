"""A LUXI client that answers from a configuration in memory: no master, no node, no job."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Never, cast

from ganeti import errors
from ganeti.config.upgrade import versions
from ganeti.luxi.client import Client
from ganeti.master import facts
from ganeti.model.config import Config
from ganeti.opcodes import wire
from ganeti.opcodes.instance import OpInstanceQueryData
from ganeti.ops.instance.query_data import InstanceQueryData
from ganeti.ops.operation import Context as OperationContext
from ganeti.query import classic
from ganeti.query.engine import Query, fields_of, kind_of
from ganeti.query.field import NODATA, Context, Kind
from ganeti.query.live import Sources

_ABSENT = "this is the configuration of a cluster, not a cluster: "


class ConfigSources:
    """The configuration and nothing else; whatever would need more is left out before."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def __getattr__(self, name: str) -> Never:
        raise errors.ProgrammerError(f"a query of a file asked for {name}")


def strip_live_fields(kind: Kind[object]) -> Kind[object]:
    """A kind whose live fields have no data.

    Raises:
        OpPrereqError: things of this kind are not in a configuration at all.
    """
    if kind.base_needs:
        raise errors.make_invalid_error(
            f"{_ABSENT}what there is of kind '{kind.name}', it does not tell",
        )
    result = copy.copy(kind)
    result.fields = {
        name: field if not field.needs else _drop_data(field) for name, field in kind.fields.items()
    }
    return result


def _drop_data(field: Any) -> Any:
    return type(field)(
        field.name,
        field.title,
        field.kind,
        field.doc,
        _make_empty_column,
        hostname=field.hostname,
        seconds=field.seconds,
        numeric_text=field.numeric_text,
    )


def _make_empty_column(_ctx: Context) -> Callable[[object], tuple[int, object]]:
    return lambda _row: NODATA


class ShadowClient(Client):
    """Answers what can be read from a configuration; everything else is refused."""

    def __init__(self, config: Config, version: int) -> None:
        """``version`` is that of the file, which ``info cluster`` tells."""
        super().__init__()
        self._config = config
        self._version = version
        self._sources = cast(Sources, ConfigSources(config))
        self._results: dict[int, object] = {}

    def call(self, name: str, *args: object) -> object:
        """The answer to a request; OpPrereqError for one that a file cannot answer."""
        answer = getattr(self, f"_answer_{name}", None)
        if answer is None:
            raise errors.make_state_error(f"{_ABSENT}nothing can be done here")
        return answer(*args)

    def _answer_Query(self, what: str, fields: Sequence[str], qfilter: object) -> object:  # noqa: N802
        return Query(strip_live_fields(kind_of(what)), fields, qfilter).run(self._sources)

    def _answer_QueryFields(self, what: str, fields: Sequence[str] | None) -> object:  # noqa: N802
        return fields_of(strip_live_fields(kind_of(what)), fields)

    def _answer_QueryNodes(self, names: Any, fields: Any, _lock: bool) -> object:  # noqa: N802
        return self._classic_lines("node", names, fields)

    def _answer_QueryGroups(self, names: Any, fields: Any, _lock: bool) -> object:  # noqa: N802
        return self._classic_lines("group", names, fields)

    def _answer_QueryNetworks(self, names: Any, fields: Any, _lock: bool) -> Any:  # noqa: N802
        return self._classic_lines("network", names, fields)

    def _answer_QueryInstances(self, names: Any, fields: Any, _lock: bool) -> object:  # noqa: N802
        return self._classic_lines("instance", names, fields)

    def _classic_lines(self, what: str, names: Sequence[str], fields: Sequence[str]) -> object:
        kind = strip_live_fields(kind_of(what))
        qfilter = classic.name_filter(kind, list(names)) if names else None
        return classic.strip_statuses(
            Query(kind, fields, qfilter, look_up=False).run(self._sources)
        )

    def _answer_QueryClusterInfo(self) -> Mapping[str, object]:  # noqa: N802
        if self._config.cluster.master_node not in self._config.nodes:
            raise errors.ConfigurationError("the master node is not among the nodes of the cluster")
        unknown = SimpleNamespace(vcs_version="", architecture=("", ""))
        found = facts.cluster_info(self._config, cast(facts.Facts, unknown))
        return {
            **found,
            "software_version": versions.text(self._version),
            "config_version": self._version,
        }

    # a job that only reads -----------------------------------------------------------------

    def _answer_SubmitJob(self, ops: Sequence[Mapping[str, object]]) -> int:  # noqa: N802
        op = wire.from_wire(dict(ops[0]))
        if len(ops) != 1 or not isinstance(op, OpInstanceQueryData) or not op.static:
            raise errors.make_state_error(f"{_ABSENT}there is no daemon that runs jobs")
        context = cast(OperationContext, SimpleNamespace(config=self._config))
        operation = InstanceQueryData(op, context)
        operation.check()
        job_id = len(self._results) + 1
        self._results[job_id] = operation.run()
        return job_id

    def _answer_WaitForJobChange(self, *_args: object) -> object:  # noqa: N802
        return [["success"], []]

    def _answer_QueryJobs(self, ids: Sequence[int], fields: Sequence[str]) -> object:  # noqa: N802
        known = {"status": "success", "opstatus": ["success"], "archived": False}
        return [
            [({**known, "opresult": [self._results[job_id]]}).get(name) for name in fields]
            for job_id in ids
        ]
