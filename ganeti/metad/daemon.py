"""The program ``ganeti-metad``: serves the guests of this node their metadata over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from ganeti import constants, paths
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
    where = paths.current()
    return tcp_daemon.run_small(
        command_line(),
        argv,
        partial(_serve, where),
        needs=where.server_cert,
        log_file=where.log / LOG_NAME,
        umask=0o077,
        directories={where.socket_dir: 0o770},
    )


def command_line() -> argparse.ArgumentParser:
    made = tcp_daemon.make_small_parser(
        constants.METAD,
        "Tells guests of this node what they are, with their OS parameters. It identifies a "
        "guest by the interface and the address of the connection; a guest reads only its own "
        "data.",
        "TCP",
    )
    # Not on the addresses of the node: clients on its networks are not guests.
    made.set_defaults(bind=constants.METADATA_ADDRESS)
    return made


def _serve(where: paths.Paths, options: Serving, background: daemon.Background) -> None:
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
        daemon.serve(stop, background, lambda: _ask_self(where), "Metadata daemon stops")


def _ask_self(where: paths.Paths) -> None:
    """Raises GanetiError when the daemon does not answer."""
    with unix_socket.FramedClient(where.metad_socket, io_timeout=_PATIENCE) as client:
        calls.decode_response(client.call(calls.encode_request("Echo", ["alive"])))


if __name__ == "__main__":
    sys.exit(main())
