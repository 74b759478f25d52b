"""The program ``ganeti-watcher``, started by cron or a timer on each node.

Exit codes: 0 done, paused, or another watcher is at work; 1 a task failed; 11 this node is not
the master, and what concerns the node itself is done; 5 it belongs to no cluster.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ganeti import constants, errors, paths
from ganeti.base import files, log
from ganeti.base.clock import SYSTEM, Clock
from ganeti.luxi.absence import master_name
from ganeti.luxi.client import Client
from ganeti.upkeep import instances
from ganeti.upkeep.round import Here, Options, Round, add_options, read_pause
from ganeti.watcher.tasks import NODE_TASKS, TASKS

_LOG = logging.getLogger(__name__)
#: Seconds between two looks after a boot.
_PAUSE = 15.0
#: Tasks after a boot until all runs that should; the other tasks follow.
_FIRST = ("daemons", "status", "instances")
_OLD = "accepted for old cron tables; without effect, as one process does all groups"

T = TypeVar("T")


def main(argv: Sequence[str] | None = None) -> int:
    """Run all tasks once; the exit code."""
    options = command_line().parse_args(argv)
    where = paths.current()
    if master_name(where) is None:
        return _report("this node belongs to no cluster", constants.EXIT_NOTCLUSTER)
    try:
        files.ensure_dir(where.log, 0o770)
        log.setup(
            constants.WATCHER,
            file=where.log / "watcher.log",
            debug=options.debug,
            console=options.debug,
            form=options.log_format,
        )
    except OSError as err:
        return _report(f"cannot write the log: {files.failure(err)}", constants.EXIT_FAILURE)
    lock = files.FileLock(where.watcher_lock)
    try:
        lock.acquire()
    except errors.LockError:
        _LOG.debug("Another watcher is at work")
        return constants.EXIT_SUCCESS
    except OSError as err:
        return _report(f"cannot lock {where.watcher_lock}: {err.strerror}", constants.EXIT_FAILURE)
    try:
        return _watch(options, where, SYSTEM)
    finally:
        lock.release()


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=constants.WATCHER,
        description="Start daemons and instances that died, then end. A timer or cron starts it"
        " every five minutes on all nodes; tasks for the whole cluster run on the master only.",
        epilog="gnt-cluster watcher pause 1h keeps it from acting for a while.",
    )
    parser.add_argument(
        "-d", "--debug", action="store_true", help="log more, and to this terminal too"
    )
    parser.add_argument(
        "-A",
        "--job-age",
        type=int,
        default=Options.job_age,
        metavar="SECONDS",
        help="archive jobs that ended longer ago than this (default: %(default)s)",
    )
    for name in ("--wait-children", "--no-wait-children"):
        parser.add_argument(name, action="store_true", help=_OLD)
    parser.add_argument("--no-verify-disks", action="store_true", help="do not verify disks")
    parser.add_argument(
        "--no-strict",
        action="store_true",
        help="ignore nodes that do not answer when verifying disks",
    )
    parser.add_argument(
        "--rapi-ip",
        metavar="ADDRESS",
        help="ask the remote API at this address whether it answers (default: its own)",
    )
    parser.add_argument(
        "--after-boot",
        type=int,
        default=0,
        metavar="SECONDS",
        help="until this time after the boot of the node, check every 15 seconds until the "
        "master answers and all instances run that should (default: check once)",
    )
    parser.add_argument(
        "--node-group", metavar="GROUP", help="handle one node group only (name or UUID)"
    )
    add_options(parser)
    log.add_option(parser)
    return parser


def _options(given: argparse.Namespace) -> Options:
    return Options(
        job_age=given.job_age,
        parallel=given.start_parallel,
        ignore_pause=given.ignore_pause,
        group=given.node_group,
        verify_disks=not given.no_verify_disks,
        strict=not given.no_strict,
        rapi_address=given.rapi_ip,
    )


def _watch(given: argparse.Namespace, where: paths.Paths, clock: Clock) -> int:
    here = Here(where, clock, _options(given))
    # The clock counts from the boot of the machine.
    booting = clock.monotonic() < given.after_boot
    while True:
        until = read_pause(where, clock)
        if until is not None and not given.ignore_pause:
            _LOG.info("Paused until %s by gnt-cluster watcher pause", int(until))
            return constants.EXIT_SUCCESS
        if not booting:
            return _run_once(here, NODE_TASKS, TASKS)[0]
        _code, finished = _run_once(here, _select_first(NODE_TASKS), _select_first(TASKS))
        booting = not finished and clock.monotonic() < given.after_boot
        if booting:
            clock.sleep(_PAUSE)  # nodes that come up tell; this is for those that cannot


def _select_first(tasks: Mapping[str, Callable[[T], None]]) -> Mapping[str, Callable[[T], None]]:
    return {name: tasks[name] for name in _FIRST if name in tasks}


def _run_once(
    here: Here,
    node_tasks: Mapping[str, Callable[[Here], None]],
    tasks: Mapping[str, Callable[[Round], None]],
) -> tuple[int, bool]:
    """Do the tasks once. Returns the exit code, and whether they found everything in order."""
    group = here.options.group
    code = run(here, node_tasks) if group is None else constants.EXIT_SUCCESS
    client = Client()
    try:
        client.query_config_values(["cluster_name"])
        now = Round(client, here.clock, here.paths, here.options)
        if group is not None:
            assert now.groups  # an unknown one is refused before anything is done
        code = run(now, tasks) or code
        return code, code == constants.EXIT_SUCCESS and instances.all_run(now.groups)
    except errors.NoMasterError as err:
        if err.exit_code == constants.EXIT_NOTMASTER:
            _LOG.debug("%s", errors.text(err))
            return code or err.exit_code, True
        return _report(errors.text(err), err.exit_code), False
    except errors.GanetiError as err:
        return _report(errors.text(err), err.exit_code), False
    finally:
        client.close()


def run(now: T, tasks: Mapping[str, Callable[[T], None]]) -> int:
    """Do all tasks, whatever becomes of the others; the exit code.

    Raises:
        NoMasterError: the master is gone; the rest cannot be done.
    """
    code = constants.EXIT_SUCCESS
    for name, task in tasks.items():
        try:
            task(now)
        except errors.NoMasterError:
            raise
        except errors.GanetiError as err:
            code = _report(f"task {name} failed: {errors.text(err)}", constants.EXIT_FAILURE)
        except OSError as err:
            text = errors.text(files.failure(err))
            code = _report(f"task {name} failed: {text}", constants.EXIT_FAILURE)
        except Exception:  # noqa: BLE001 - the other tasks are done whatever it was
            _LOG.exception("task %s failed", name)
            code = constants.EXIT_FAILURE
    return code


def _report(text: str, code: int) -> int:
    """Cron mails what is written to stderr."""
    _LOG.error("%s", text)
    sys.stderr.write(f"{constants.WATCHER}: {text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
