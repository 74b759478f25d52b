"""The program ``ganeti-confd``: answers signed questions about the configuration over UDP."""

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
from ganeti.confd import client, server
from ganeti.confd.follow import Follower
from ganeti.confd.messages import Kind
from ganeti.net import listen, tcp_daemon
from ganeti.net.tcp_daemon import Serving

log = logging.getLogger(__name__)

LOG_NAME: Final = "conf-daemon.log"
#: Seconds in which the daemon must answer itself.
_PATIENCE = 20.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot run) or 5 (no cluster)."""
    where = paths.current()
    return tcp_daemon.run_small(
        command_line(),
        argv,
        partial(_serve, where),
        needs=where.hmac_key,
        log_file=where.log / LOG_NAME,
    )


def command_line() -> argparse.ArgumentParser:
    return tcp_daemon.make_small_parser(
        constants.CONFD,
        "Answers signed questions about the configuration. It runs on all nodes; only master"
        " candidates have the configuration and can answer.",
        "UDP",
    )


def _serve(where: paths.Paths, options: Serving, background: daemon.Background) -> None:
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
        daemon.serve(
            stop, background, lambda: _ask_self(options, where), "Configuration daemon stops"
        )


def _ask_self(options: Serving, where: paths.Paths) -> None:
    """Raises RpcError when the daemon does not answer."""
    address = listen.find_reachable(options.address)
    key = where.hmac_key.read_bytes()
    client.ask([address], options.port, key, Kind.PING, timeout=_PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
