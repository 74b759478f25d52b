"""The program ``ganeti-mond``: serves reports of this node over HTTP until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from ganeti import constants, errors, paths
from ganeti.base import daemon, files
from ganeti.base import log as base_log
from ganeti.base.clock import SYSTEM
from ganeti.mond import registry
from ganeti.mond.app import MonitorApp
from ganeti.mond.cluster import ClusterFacts
from ganeti.mond.collector import Node
from ganeti.mond.sampler import Sampler
from ganeti.net import tcp_daemon
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tcp_daemon import Serving

log = logging.getLogger(__name__)

LOG_NAME: Final = "monitoring-daemon.log"
#: Requests that are worked on at the same time, connections, and seconds for one to come in.
WORKERS, CONNECTIONS, ARRIVAL = 4, 64, 10.0
_STOP_WAIT = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot run) or 5 (no cluster)."""
    parser = command_line()
    arguments = parser.parse_args(argv)
    where = paths.current()
    if not where.ssconf("cluster_name").exists():
        text = "this node is in no cluster"
        daemon.explain_end(text, constants.EXIT_NOTCLUSTER)
        parser.exit(constants.EXIT_NOTCLUSTER, f"{parser.prog}: {text}\n")
    try:
        options = tcp_daemon.read_options(constants.MOND, arguments)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    return tcp_daemon.run(
        options,
        lambda: _prepare(options, where),
        lambda background: _serve(options, where, background),
    )


def command_line() -> argparse.ArgumentParser:
    return tcp_daemon.make_small_parser(
        constants.MOND,
        "Reports the load of processors, disks and mirrors of this node over HTTP. Everybody who"
        " reaches the port can read the reports.",
        "TCP",
    )


def _prepare(options: Serving, where: paths.Paths) -> None:
    os.umask(0o027)
    for directory, mode in ((where.log, 0o770), (where.run, 0o775)):
        files.ensure_dir(directory, mode)
    tcp_daemon.setup_log(options, where.log / LOG_NAME)


def _serve(options: Serving, where: paths.Paths, background: daemon.Background) -> None:
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    facts = ClusterFacts(where, paths.hostname())
    collectors = registry.create(Node(where, facts))
    server = HttpServer(
        (options.address, options.port),
        MonitorApp(collectors, facts),
        threads=WORKERS,
        max_body=0,
        request_timeout=ARRIVAL,
        max_connections=CONNECTIONS,
        name="mond",
        server_header=f"Ganeti {constants.RELEASE_VERSION}",
    )
    with contextlib.ExitStack() as stack:
        port = server.start()
        stack.callback(server.stop, _STOP_WAIT)
        sampler = Sampler(collectors, facts, SYSTEM)
        sampler.start()
        stack.callback(sampler.stop)
        log.info("Monitoring of %s serves %s:%d", paths.hostname(), options.address, port)
        daemon.tune_collector()
        background.report_ready()
        with daemon.watchdog(lambda: tcp_daemon.ask_self(options)):
            stop.wait()
        log.info("Monitoring stops")


if __name__ == "__main__":
    sys.exit(main())
