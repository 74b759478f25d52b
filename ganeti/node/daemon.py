"""The program ``ganeti-noded``: serves node calls over TLS until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ganeti import constants, errors, paths
from ganeti.base import daemon, files
from ganeti.base import log as base_log
from ganeti.base.inotify import ANY_NAME, DirectoryWatcher
from ganeti.model import ssconf_keys
from ganeti.net import tcp_daemon
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tcp_daemon import Serving
from ganeti.net.tls.contexts import Identity, ReloadableContext
from ganeti.node.authorise import Authoriser
from ganeti.node.context import NodeContext
from ganeti.node.families import Families
from ganeti.rpc.server import RpcApp

log = logging.getLogger(__name__)

LOG_NAME: Final = "node-daemon.log"
#: Seconds that running calls get when the daemon is told to stop.
STOP_WAIT: Final = 1.0
#: Largest request in bytes; the configuration of a large cluster is some 20 MiB.
MAX_BODY: Final = 256 * 1024 * 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; returns its exit code (5: this node is not part of a cluster)."""
    parser = command_line()
    arguments = parser.parse_args(argv)
    where = paths.current()
    certificate = _certificate(parser, arguments, where)
    if not certificate.exists():
        parser.exit(
            constants.EXIT_NOTCLUSTER,
            f"{parser.prog}: this node is not part of a cluster ({certificate} is missing);"
            " add it with 'gnt-node add' or make a cluster with 'gnt-cluster init'\n",
        )
    try:
        options = tcp_daemon.read_options(constants.NODED, arguments)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    return tcp_daemon.run(
        options,
        lambda: _prepare(options, where),
        lambda background: _serve(
            options, certificate, where, background, tell_master=arguments.tell_master
        ),
    )


def command_line() -> argparse.ArgumentParser:
    parser = tcp_daemon.parser(
        constants.NODED, "Node daemon: does on this node what the master requests."
    )
    add = parser.add_argument
    add("-K", "--ssl-key", type=Path, metavar="FILE", help="private key; the same file as -C")
    add("-C", "--ssl-cert", type=Path, metavar="FILE", help="certificate and private key")
    add("--no-ssl", action="store_true", help="refused: TLS is what authorises callers")
    add("--no-mlock", action="store_true", help="accepted; memory is never locked")
    add(
        "--tell-master",
        action="store_true",
        help="tell the master that this node is up, so that what should run here starts at once",
    )
    return parser


def _certificate(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, where: paths.Paths
) -> Path:
    if arguments.no_ssl:
        parser.error("--no-ssl is refused: only TLS proves to a node daemon who is calling")
    certificate: Path = (arguments.ssl_cert or where.server_cert).absolute()
    if (arguments.ssl_key or certificate).absolute() != certificate:
        parser.error("-K must name the same file as -C: key and certificate are kept in one file")
    return certificate


def _prepare(options: Serving, where: paths.Paths) -> None:
    """Directories that may be gone after a boot, and the log."""
    os.umask(0o022)
    for directory, mode in (
        (where.log, 0o770),
        (where.os_log, 0o750),
        (where.run, 0o775),
        (where.instance_disks, 0o755),
        (where.instance_reason, 0o755),
    ):
        files.ensure_dir(directory, mode)
    tcp_daemon.setup_log(options, where.log / LOG_NAME)


def _serve(
    options: Serving,
    certificate: Path,
    where: paths.Paths,
    background: daemon.Background,
    *,
    tell_master: bool,
) -> None:
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    context = NodeContext(where, paths.hostname(), stopping=stop.event)
    authoriser = Authoriser(where)
    context.on_ssconf = authoriser.reload
    context.on_leave = stop.ask
    tls = Identity(certificate, where.ca_cert).server_context()
    context.on_certificates = lambda: _renew(tls, authoriser)
    families = Families(context)
    app = RpcApp(
        families.all,
        authoriser,
        authorise_node=authoriser.refuse_stranger,
        check_term=context.term.check,
        lease=families.lease,
    )
    server = HttpServer(
        (options.address, options.port),
        app,
        tls,
        threads=options.max_clients,
        max_body=MAX_BODY,
        name="rpc",
    )
    with contextlib.ExitStack() as stack:
        for directory in {where.data, certificate.parent}:
            watcher = DirectoryWatcher(
                directory,
                _make_change_handler(tls, authoriser, (certificate, where.ca_cert), where),
            )
            watcher.start()
            stack.callback(watcher.stop)
        port = server.start()
        log.info("Node daemon of %s serves %s:%d", context.name, options.address, port)
        families.lease.start()
        families.ends.start()
        families.holds.start()
        families.standby.start()
        families.sampler.start()
        background.report_ready()
        if tell_master:
            families.report.send_start()
        with daemon.watchdog(lambda: tcp_daemon.ask_self(options)):
            stop.wait()
            log.info("Node daemon stops")
            families.lease.retire()
        calls = app.list_running()
        if not server.stop(STOP_WAIT):
            log.warning("These calls did not end and are cut off: %s", ", ".join(calls))
    families.stop()


def _renew(tls: ReloadableContext, authoriser: Authoriser) -> None:
    """Use the certificates that were just written; X509CertError leaves the old ones in use."""
    tls.reload()
    authoriser.reload()


def _make_change_handler(
    tls: ReloadableContext,
    authoriser: Authoriser,
    tls_files: tuple[Path, ...],
    where: paths.Paths,
) -> Callable[[str], None]:
    """Make the function to call when a file in the data directory was written or replaced."""
    tls_names = {path.name for path in tls_files}
    trust_names = {
        where.ssconf(ssconf_keys.MASTER_CANDIDATES_CERTS).name,
        where.client_cert.name,
        where.server_cert.name,
    }

    def handle_change(name: str) -> None:
        unknown = name == ANY_NAME
        # While a file is missing (the node leaves, a careless copy) the old one stays in force.
        if (unknown or name in tls_names) and all(path.exists() for path in tls_files):
            try:
                if tls.reload_if_changed():
                    log.info("TLS certificate read again")
            except errors.X509CertError as err:
                log.error("TLS certificate not read: %s", errors.text(err))
        if unknown or name in trust_names:
            authoriser.reload()

    return handle_change


if __name__ == "__main__":
    sys.exit(main())
