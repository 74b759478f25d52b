"""The program ``ganeti-confd``: answers signed questions about the configuration over UDP."""

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
from ganeti.confd import client, server
from ganeti.confd.follow import Follower
from ganeti.confd.messages import Kind
from ganeti.net import tcp_daemon
from ganeti.net.tcp_daemon import Serving

log = logging.getLogger(__name__)

LOG_NAME: Final = "conf-daemon.log"
#: Seconds in which the daemon must answer itself.
_PATIENCE = 20.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot run) or 5 (no cluster)."""
    parser = command_line()
    arguments = parser.parse_args(argv)
    where = paths.current()
    if not where.hmac_key.exists():
        text = f"this node is in no cluster, or {where.hmac_key} is missing"
        daemon.explain_end(text, constants.EXIT_NOTCLUSTER)
        parser.exit(constants.EXIT_NOTCLUSTER, f"{parser.prog}: {text}\n")
    try:
        options = tcp_daemon.read_options(constants.CONFD, arguments)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    return tcp_daemon.run(
        options,
        lambda: _prepare(options, where),
        lambda background: _serve(options, where, background),
    )


def command_line() -> argparse.ArgumentParser:
    return tcp_daemon.make_small_parser(
        constants.CONFD,
        "Answers signed questions about the configuration. It runs on all nodes; only master"
        " candidates have the configuration and can answer.",
        "UDP",
    )


def _prepare(options: Serving, where: paths.Paths) -> None:
    os.umask(0o027)
    for directory, mode in ((where.log, 0o770), (where.run, 0o775)):
        files.ensure_dir(directory, mode)
    tcp_daemon.setup_log(options, where.log / LOG_NAME)


def _serve(options: Serving, where: paths.Paths, background: daemon.Background) -> None:
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    made = server.make((options.address, options.port), where.hmac_key, Follower(where).view)
    with contextlib.ExitStack() as stack:
        made.start()
        stack.callback(made.stop)
        log.info(
            "Configuration daemon of %s serves %s:%d",
            paths.hostname(),
            options.address,
            made.port,
        )
        daemon.tune_collector()
        background.report_ready()
        with daemon.watchdog(lambda: _ask_self(options, where)):
            stop.wait()
        log.info("Configuration daemon stops")


def _ask_self(options: Serving, where: paths.Paths) -> None:
    """Raises RpcError when the daemon does not answer."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.address, options.address)
    key = where.hmac_key.read_bytes()
    client.ask([address], options.port, key, Kind.PING, timeout=_PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
