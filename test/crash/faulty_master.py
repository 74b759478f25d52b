"""The master daemon with a fault, started as often as asked.

Everything is imported once; then each line on standard input, a JSON object with ``point`` (label,
number, way; or null), ``trace`` (whether labels are wanted) and ``calls`` (whether calls to nodes
about disks and instances count like writes), forks one master daemon. Standard
output tells of it: ``pid N``, ``ready``, ``op LABEL``, ``killed POINT``, ``exit STATUS``.

Usage: faulty_master.py CHECKPOINT_AFTER RUN_LOG
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from disk_faults import DiskFaults, Point

import ganeti.ops
from ganeti import paths
from ganeti.base import daemon as base_daemon
from ganeti.config import store, vote
from ganeti.master import core
from ganeti.master import daemon as master_daemon
from ganeti.ops import runner
from ganeti.rpc import client as rpc_client

_write = os.write
#: Beginnings of the names of node calls that count.
_COUNTED = (
    "backup_",
    "blockdev_",
    "file_storage_",
    "hotplug_",
    "image_",
    "instance_",
    "disk_",
    "crypto_",
    "write_ssconf",
    "upload_file",
)


def say(text: str) -> None:
    """One line to whoever started us; not one of the counted operations."""
    _write(1, f"{text}\n".encode())


def load_operations() -> None:
    """Import every operation now, so that a child does not have to."""
    for module in pkgutil.walk_packages(ganeti.ops.__path__, "ganeti.ops."):
        importlib.import_module(module.name)


def record_runs(run_log: Path) -> None:
    """Let every operation leave a line ``JOB INDEX OPCODE`` when it begins to work."""
    log = os.open(run_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    original = runner.OpExecution.run

    def run(self: Any) -> Any:
        handle = self._ctx.job
        index = handle._job.record.current()
        _write(log, f"{handle.job_id} {index} {self._op.op_id}\n".encode())
        return original(self)

    runner.OpExecution.run = run  # type: ignore[method-assign]


def follow_phases(faults: DiskFaults) -> None:
    """Count operations of start, service and stop separately."""
    ready, stop = base_daemon.Background.report_ready, core.Core.stop

    def on_ready(self: Any) -> None:
        ready(self)
        faults.phase = "serve"
        say("ready")

    def on_stop(self: Any, timeout: float) -> bool:
        faults.phase = "stop"
        return stop(self, timeout)

    base_daemon.Background.report_ready = on_ready  # type: ignore[method-assign]
    core.Core.stop = on_stop  # type: ignore[method-assign]


def count_node_calls(faults: DiskFaults) -> None:
    """Let calls to nodes that change disks or guests count like an operation on a file."""
    original = rpc_client.NodeRpc._fan_out

    def call_counted(self: Any, spec: Any, todo: Any) -> Any:
        if not spec.name.startswith(_COUNTED):
            return original(self, spec, todo)
        return faults.count("call", spec.name, lambda: original(self, spec, todo))

    rpc_client.NodeRpc._fan_out = call_counted  # type: ignore[method-assign]


def serve(order: dict[str, Any]) -> int:
    """Be a master daemon; the exit code, if it comes to that."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    where = paths.current()
    faults = DiskFaults(
        where.root,
        (where.data, where.run),
        Point(*order["point"]) if order["point"] else None,
        trace=(lambda label: say(f"op {label}")) if order["trace"] else None,
        last_words=lambda point: say(f"killed {point}"),
    )
    follow_phases(faults)
    faults.install()
    if order["calls"]:
        count_node_calls(faults)
    for function in ("run_vote", "claim"):
        faults.count_calls(vote, function)
    return master_daemon.main(["-f", "--stop-timeout", "5", "--vote-patience", "5"])


def main() -> None:
    assert hasattr(store, "CHECKPOINT_AFTER")
    store.CHECKPOINT_AFTER = int(sys.argv[1])
    load_operations()
    record_runs(Path(sys.argv[2]))
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                code = serve(json.loads(line))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
                code = 70
            os._exit(code)
        say(f"pid {pid}")
        _pid, status = os.waitpid(pid, 0)
        say(f"exit {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
