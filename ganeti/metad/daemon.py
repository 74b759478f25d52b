"""The program ``ganeti-metad``: tells guests of this node what is kept for them, over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from ganeti import constants, errors, paths
from ganeti.base import daemon, files
from ganeti.base import log as base_log
from ganeti.luxi import calls
from ganeti.metad import server, service
from ganeti.net import tcp_daemon, unix_socket
from ganeti.net.tcp_daemon import Serving

log = logging.getLogger(__name__)

LOG_NAME: Final = "meta-daemon.log"
#: Seconds in which the daemon must answer itself.
_PATIENCE = 20.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot run) or 5 (no cluster)."""
    parser = command_line()
    arguments = parser.parse_args(argv)
    where = paths.current()
    if not where.server_cert.exists():
        text = "this node is in no cluster"
        daemon.explain_end(text, constants.EXIT_NOTCLUSTER)
        parser.exit(constants.EXIT_NOTCLUSTER, f"{parser.prog}: {text}\n")
    try:
        options = tcp_daemon.read_options(constants.METAD, arguments)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    return tcp_daemon.run(
        options,
        lambda: _prepare(options, where),
        lambda background: _serve(options, where, background),
    )


def command_line() -> argparse.ArgumentParser:
    made = tcp_daemon.make_small_parser(
        constants.METAD,
        "Tells guests of this node what they are, with their OS parameters. A guest is known by the"
        " interface and the address that it asks from, and reads only what is its own.",
        "TCP",
    )
    # Not on the addresses of the node: who is on its networks is not a guest.
    made.set_defaults(bind=constants.METADATA_ADDRESS)
    return made


def _prepare(options: Serving, where: paths.Paths) -> None:
    os.umask(0o077)
    for directory, mode in ((where.log, 0o770), (where.run, 0o775), (where.socket_dir, 0o770)):
        files.ensure_dir(directory, mode)
    tcp_daemon.setup_log(options, where.log / LOG_NAME)


def _serve(options: Serving, where: paths.Paths, background: daemon.Background) -> None:
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    made = server.GuestServer(
        (options.address, options.port),
        partial(service.respond, where),
        control=(
            unix_socket.listen(where.metad_socket, 0o600),
            partial(service.control, where),
        ),
    )
    with contextlib.ExitStack() as stack:
        port = made.start()
        stack.callback(files.remove, where.metad_socket)
        stack.callback(made.stop)
        log.info("Metadata of guests of %s: %s:%d", paths.hostname(), options.address, port)
        daemon.tune_collector()
        background.report_ready()
        with daemon.watchdog(lambda: _ask_self(where)):
            stop.wait()
        log.info("Metadata daemon stops")


def _ask_self(where: paths.Paths) -> None:
    """Raises GanetiError when the daemon does not answer."""
    with unix_socket.FramedClient(where.metad_socket, io_timeout=_PATIENCE) as client:
        calls.decode_response(client.call(calls.encode_request("Echo", ["alive"])))


if __name__ == "__main__":
    sys.exit(main())
