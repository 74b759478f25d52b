"""The program ``ganeti-guests``: empties this node before the server is shut down.

The master stops or moves the guests by jobs, in their order. What is left then, or all when the
master does not answer, is stopped here, several at a time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ganeti import constants, errors, paths
from ganeti.base import files
from ganeti.base.clock import SYSTEM, Deadline
from ganeti.hypervisor.interface import Hypervisor
from ganeti.node import end_watch
from ganeti.node.context import NodeContext
from ganeti.node.master_calls import call_master
from ganeti.node.occupation import end_guest, find_running
from ganeti.rpc.calls import NodeCalls

PROGRAM = "ganeti-guests"
#: Seconds for the answer of the master, and for all guests.
_ANSWER = 60.0
_TIMEOUT = 600
#: Guests that are stopped here at a time; seconds between two looks.
_PARALLEL = 4
_PAUSE = 1.0


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Stop the guests of this node in their order, or move them, before the "
        "server is shut down. systemd runs it; it does nothing while the server is not being shut "
        "down.",
    )
    parser.add_argument(
        "action", choices=("start", "stop"), help="start: guests may run here again"
    )
    parser.add_argument(
        "--migrate",
        action="store_true",
        help="migrate guests with mirrored or shared disks; stop the others",
    )
    parser.add_argument(
        "--timeout",
        type=int,
        default=_TIMEOUT,
        metavar="SECONDS",
        help="seconds to wait for the jobs of the master (default: %(default)s)",
    )
    parser.add_argument(
        "--always", action="store_true", help="stop them although the server is not being shut down"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; exit code 1 when a guest still runs."""
    options = command_line().parse_args(argv)
    where = paths.current()
    try:
        if options.action == "start":
            files.remove(where.host_stops)
            return constants.EXIT_SUCCESS
        context = NodeContext(where, paths.hostname())
        if not where.server_cert.exists():
            return constants.EXIT_SUCCESS
        if not options.always and not end_watch.is_host_stopping(context):
            print(f"{PROGRAM}: this server is not being shut down; nothing to do (see --always)")
            return constants.EXIT_SUCCESS
        return _empty(context, migrate=options.migrate, timeout=options.timeout)
    except (errors.GanetiError, OSError) as err:
        text = errors.text(files.failure(err) if isinstance(err, OSError) else err)
        print(f"{PROGRAM}: {text}", file=sys.stderr)
        return constants.EXIT_FAILURE


def _empty(context: NodeContext, *, migrate: bool, timeout: float) -> int:
    # From now on nothing starts here, and no end of a guest is an accident.
    files.write_atomic(context.paths.host_stops, "", fsync=False)
    try:
        names = call_master(context, _ANSWER, NodeCalls.host_stops, migrate)
        print(f"{PROGRAM}: the master stops or moves: {', '.join(names) or 'none'}")
        end = Deadline(timeout)
        while set(find_running(context)) & set(names) and not end.has_passed:
            SYSTEM.sleep(_PAUSE)  # jobs of the master work; nothing tells this program of an end
    except errors.GanetiError as err:
        print(f"{PROGRAM}: the master does not help: {errors.text(err)}", file=sys.stderr)
    left = find_running(context)
    if left:
        print(f"{PROGRAM}: stopping here: {', '.join(sorted(left))}")
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for name, hypervisor in sorted(left.items()):
                pool.submit(_stop, context.hypervisor(hypervisor), name)
    left = find_running(context)
    for name in left:
        print(f"{PROGRAM}: {name} still runs", file=sys.stderr)
    return constants.EXIT_FAILURE if left else constants.EXIT_SUCCESS


def _stop(driver: Hypervisor, name: str) -> None:
    """Ask a guest to end, then end it; the caller reports what still runs afterwards."""
    try:
        end_guest(driver, name)
    except errors.HypervisorError as err:
        print(f"{PROGRAM}: {name}: {errors.text(err)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
