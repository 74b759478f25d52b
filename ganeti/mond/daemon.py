"""The program ``ganeti-mond``: serves reports of this node over HTTP until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from ganeti import constants, paths
from ganeti.base import daemon
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
    where = paths.current()
    return tcp_daemon.run_small(
        command_line(),
        argv,
        partial(_serve, where),
        needs=where.ssconf("cluster_name"),
        log_file=where.log / LOG_NAME,
    )


def command_line() -> argparse.ArgumentParser:
    return tcp_daemon.make_small_parser(
        constants.MOND,
        "Reports the load of processors, disks and mirrors of this node over HTTP. Everybody who"
        " reaches the port can read the reports.",
        "TCP",
    )


def _serve(where: paths.Paths, options: Serving, background: daemon.Background) -> None:
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
        daemon.serve(stop, background, lambda: tcp_daemon.ask_self(options), "Monitoring stops")


if __name__ == "__main__":
    sys.exit(main())
