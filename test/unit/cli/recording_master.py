"""A master for tests of the command line: speaks LUXI on a real socket, keeps every job.

Jobs end at once; what they end with can be set. Objects are rows of a table, as in a cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganeti import errors, paths
from ganeti.luxi.reply import Reply
from ganeti.luxi.server import LuxiServer
from ganeti.net.unix_socket import Credentials

Fields = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


class RecordingMaster:
    """Answers like a master daemon whose operations always work, unless told otherwise."""

    def __init__(self, root: Path) -> None:
        self.where = paths.Paths(root)
        self.where.socket_dir.mkdir(parents=True)
        self.where.data.mkdir(parents=True)
        self.where.log.mkdir(parents=True)
        self.where.ssconf("master_node").write_text("node1.example.com\n")
        #: opcodes of each job, in the order in which they came
        self.jobs: list[list[Fields]] = []
        #: every request: method and arguments
        self.requests: list[tuple[str, Fields]] = []
        #: OP_ID -> result of such an opcode (default: null)
        self.results: dict[str, Any] = {}
        #: OP_ID -> why such an opcode fails
        self.failures: dict[str, errors.GanetiError] = {}
        #: OP_ID -> texts in the log of a job with such an opcode
        self.logs: dict[str, list[str]] = {}
        #: number of the job in the batch -> why it is not taken
        self.refused: dict[int, str] = {}
        #: method -> its answer, or what makes it from the arguments, for methods not known here
        self.answers: dict[str, Any] = {}
        self.instances: list[Fields] = []
        self.nodes: list[Fields] = []
        self.query_answer: Fields = {"fields": [], "data": []}
        #: kind -> rows for queries of this kind, in place of ``query_answer``
        self.tables: dict[str, list[Fields]] = {}
        self._lock = threading.Lock()
        self._server = LuxiServer(self.where.luxi_socket, self._serve, workers=2)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @property
    def ops(self) -> list[Fields]:
        """All opcodes of all jobs, without what every opcode has."""
        return [self.strip(op) for job in self.jobs for op in job]

    @property
    def op(self) -> Fields:
        """The only opcode that was submitted."""
        (found,) = self.ops
        return found

    @staticmethod
    def strip(op: Fields) -> Fields:
        """An opcode without reason, and without common parameters that are not set."""
        usual = {"priority": 0, "debug_level": 0, "depends": None, "comment": None}
        return {
            key: value
            for key, value in op.items()
            if key != "reason" and not (key in usual and value == usual[key])
        }

    def add_instance(self, name: str, **fields: Any) -> None:
        self.instances.append({"name": name, "uuid": f"uuid-{name}", "tags": [], **fields})

    def add_node(self, name: str, **fields: Any) -> None:
        empty = {"tags": [], "pinst_list": [], "sinst_list": [], "offline": False}
        self.nodes.append({"name": name, "uuid": f"uuid-{name}", **empty, **fields})

    def _serve(self, method: str, args: Fields, _peer: Credentials, reply: Reply) -> None:
        with self._lock:
            self.requests.append((method, args))
            if method in self.answers:
                prepared = self.answers[method]
                reply.ok(prepared(args) if callable(prepared) else prepared)
                return
            answer = getattr(self, f"_on_{method}", None)
            if answer is None:
                raise errors.ProgrammerError(f"no answer to {method} was prepared")
            reply.ok(answer(args))

    def _on_SubmitJob(self, args: Fields) -> int:
        self.jobs.append(args["ops"])
        return len(self.jobs)

    def _on_SubmitManyJobs(self, args: Fields) -> list[list[Any]]:
        return [
            [False, self.refused[number]]
            if number in self.refused
            else [True, self._on_SubmitJob({"ops": ops})]
            for number, ops in enumerate(args["jobs"])
        ]

    def _job(self, job_id: int) -> list[Fields]:
        if not 1 <= job_id <= len(self.jobs):
            raise errors.JobLost(f"Job with id {job_id} lost")
        return self.jobs[job_id - 1]

    def _status(self, job_id: int) -> str:
        failed = any(op["OP_ID"] in self.failures for op in self._job(job_id))
        return "error" if failed else "success"

    def _on_WaitForJobChange(self, args: Fields) -> list[Any]:
        texts = [text for op in self._job(args["job"]) for text in self.logs.get(op["OP_ID"], [])]
        log = [[number, [1700000000, 0], "message", text] for number, text in enumerate(texts, 1)]
        return [[self._status(args["job"])], log]

    def _on_QueryJobs(self, args: Fields) -> list[list[Any]]:
        return [self._job_row(job_id, args["fields"]) for job_id in args["ids"]]

    def _job_row(self, job_id: int, fields: list[str]) -> list[Any]:
        ops = [op["OP_ID"] for op in self._job(job_id)]
        row = {
            "status": self._status(job_id),
            "opstatus": ["error" if op in self.failures else "success" for op in ops],
            "opresult": [
                errors.encode(self.failures[op]) if op in self.failures else self.results.get(op)
                for op in ops
            ],
            "archived": False,
        }
        return [row[field] for field in fields]

    def _rows(self, objects: list[Fields], args: Fields) -> list[list[Any]]:
        names = args["names"]
        found = [
            item
            for item in objects
            if not names
            or any(item["name"] == n or item["name"].startswith(f"{n}.") for n in names)
        ]
        return [[item.get(field) for field in args["fields"]] for item in found]

    def _on_QueryInstances(self, args: Fields) -> list[list[Any]]:
        return self._rows(self.instances, args)

    def _on_QueryNodes(self, args: Fields) -> list[list[Any]]:
        return self._rows(self.nodes, args)

    def _on_QueryGroups(self, args: Fields) -> list[list[Any]]:
        """Every group exists that somebody names."""
        return self._rows([{"name": name, "uuid": f"uuid-{name}"} for name in args["names"]], args)

    def _on_QueryNetworks(self, args: Fields) -> list[list[Any]]:
        return self._rows([], args)

    def _on_QueryTags(self, args: Fields) -> list[str]:
        (found,) = (item for item in self.instances if item["name"] == args["name"])
        return list(found["tags"])

    def _on_Query(self, args: Fields) -> Fields:
        if args["what"] in self.tables:
            return self._from_table(args["what"], args["fields"], args["qfilter"])
        return self.query_answer

    def _on_QueryFields(self, args: Fields) -> Fields:
        fields = [item for item in self.query_answer["fields"] if item["kind"] != "unknown"]
        return {"fields": fields or [_definition(name) for name in self._columns(args["what"])]}

    def _columns(self, kind: str) -> list[str]:
        return sorted({name for row in self.tables.get(kind, ()) for name in row})

    def _from_table(self, kind: str, fields: list[str], condition: Any) -> Fields:
        """Rows of a table; of filters only ``["|", ["==", field, value], ...]`` is understood."""
        known = self._columns(kind)
        rows = [
            row
            for row in self.tables[kind]
            if condition is None or any(row[name] == value for _, name, value in condition[1:])
        ]
        return {
            "fields": [
                _definition(name, "other" if name in known else "unknown") for name in fields
            ],
            "data": [
                [[0, row[name]] if name in known else [1, None] for name in fields] for row in rows
            ],
        }


def _definition(name: str, kind: str = "other") -> Fields:
    return {"name": name, "title": name.title(), "kind": kind, "doc": ""}
