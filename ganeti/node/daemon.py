"""The program ``ganeti-noded``: serves node calls over TLS until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ganeti import constants, errors, paths
from ganeti.base import daemon, files
from ganeti.base import log as base_log
from ganeti.base.inotify import ANY_NAME, DirectoryWatcher
from ganeti.model import ssconf_keys
from ganeti.net import listen, resolve
from ganeti.net.http_server import HttpServer
from ganeti.net.tls import Identity, ReloadableContext
from ganeti.node.authorise import Authoriser
from ganeti.node.context import NodeContext
from ganeti.node.handlers import Node
from ganeti.rpc.server import RpcApp

log = logging.getLogger(__name__)

LOG_NAME: Final = "node-daemon.log"
#: Seconds that running calls get when the daemon is told to stop.
STOP_WAIT: Final = 1.0
#: Largest request in bytes; the configuration of a large cluster is some 20 MiB.
MAX_BODY: Final = 256 * 1024 * 1024


@dataclass(frozen=True)
class Options:
    """The command line, with what it leaves out filled in."""

    foreground: bool
    debug: bool
    #: no, yes or only
    syslog: str
    address: str
    port: int
    #: key and certificate in one file
    certificate: Path
    max_clients: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; returns its exit code (5: this node is not part of a cluster)."""
    parser = _parser()
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
        options = _options(arguments, where, certificate)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    background = daemon.Background()
    if not options.foreground:
        background.fork()
    return _run(options, where, background)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=constants.NODED, description="Node daemon: does on this host what the master asks."
    )
    add = parser.add_argument
    add("-f", "--foreground", action="store_true", help="stay attached to the terminal")
    add("-d", "--debug", action="store_true", help="log more")
    add("--syslog", choices=("no", "yes", "only"), default="no", help="log to syslog (too)")
    add("-p", "--port", type=int, help="TCP port (default: that of the service ganeti-noded)")
    add("-b", "--bind", metavar="ADDRESS", help="own address to listen on (default: all)")
    add("-i", "--interface", metavar="NAME", help="network interface to listen on")
    add("-K", "--ssl-key", type=Path, metavar="FILE", help="private key; the same file as -C")
    add("-C", "--ssl-cert", type=Path, metavar="FILE", help="certificate and private key")
    add("--no-ssl", action="store_true", help="refused: TLS is what authorises callers")
    add("--no-mlock", action="store_true", help="accepted; memory is never locked")
    add("--max-clients", type=int, default=20, metavar="N", help="calls served at a time")
    return parser


def _certificate(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, where: paths.Paths
) -> Path:
    if arguments.no_ssl:
        parser.error("--no-ssl is refused: only TLS tells a node daemon who is calling")
    certificate: Path = (arguments.ssl_cert or where.server_cert).absolute()
    if (arguments.ssl_key or certificate).absolute() != certificate:
        parser.error("-K must name the same file as -C: key and certificate are kept in one file")
    if arguments.max_clients < 1:
        parser.error("--max-clients must be at least 1")
    return certificate


def _options(
    arguments: argparse.Namespace, where: paths.Paths, certificate: Path
) -> Options:
    port = arguments.port
    return Options(
        foreground=arguments.foreground,
        debug=arguments.debug,
        syslog=arguments.syslog,
        address=listen.address(arguments.bind, arguments.interface, where),
        port=resolve.port(constants.NODED) if port is None else port,
        certificate=certificate,
        max_clients=arguments.max_clients,
    )


def _run(options: Options, where: paths.Paths, background: daemon.Background) -> int:
    pid_file = daemon.PidFile(where.pid_file(constants.NODED))
    try:
        _prepare(options, where)
        pid_file.acquire()
        _serve(options, where, background)
    except (errors.GanetiError, OSError) as err:
        reason = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
        log.error("Cannot run: %s", reason)
        background.failed(f"{constants.NODED}: {reason}", constants.EXIT_FAILURE)
        return constants.EXIT_FAILURE
    except Exception:  # last frame: in the background nobody else would see it
        log.exception("A bug ended the node daemon")
        background.failed(f"{constants.NODED}: internal error, see its log")
        return constants.EXIT_FAILURE
    finally:
        pid_file.release()
    return constants.EXIT_SUCCESS


def _prepare(options: Options, where: paths.Paths) -> None:
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
    base_log.setup(
        constants.NODED,
        file=None if options.syslog == "only" else where.log / LOG_NAME,
        debug=options.debug,
        console=options.foreground,
    )
    if options.syslog != "no":
        base_log.add_syslog(constants.NODED)


def _serve(options: Options, where: paths.Paths, background: daemon.Background) -> None:
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    context = NodeContext(where, paths.hostname(), stopping=stop.event)
    authoriser = Authoriser(where)
    context.on_ssconf = authoriser.reload
    context.on_leave = stop.ask
    tls = Identity(options.certificate, where.ca_cert).server_context()
    node = Node(context)
    app = RpcApp(node, authoriser, check_term=context.term.check)
    server = HttpServer(
        (options.address, options.port),
        app,
        tls,
        threads=options.max_clients,
        max_body=MAX_BODY,
        name="rpc",
    )
    with contextlib.ExitStack() as stack:
        for directory in {where.data, options.certificate.parent}:
            watcher = DirectoryWatcher(
                directory, _on_change(tls, authoriser, (options.certificate, where.ca_cert), where)
            )
            watcher.start()
            stack.callback(watcher.stop)
        port = server.start()
        log.info("Node daemon of %s serves %s:%d", context.name, options.address, port)
        background.ready()
        stop.wait()
        log.info("Node daemon stops")
        calls = app.running()
        if not server.stop(STOP_WAIT):
            log.warning("These calls did not end and are cut off: %s", ", ".join(calls))
    node.stop()


def _on_change(
    tls: ReloadableContext,
    authoriser: Authoriser,
    tls_files: tuple[Path, ...],
    where: paths.Paths,
) -> Callable[[str], None]:
    """What to do when a file in the data directory was written or replaced."""
    tls_names = {path.name for path in tls_files}
    trust_names = {
        where.ssconf(ssconf_keys.MASTER_CANDIDATES_CERTS).name,
        where.client_cert.name,
        where.server_cert.name,
    }

    def changed(name: str) -> None:
        unknown = name == ANY_NAME
        # While a file is missing (the node leaves, a careless copy) the old one stays in force.
        if (unknown or name in tls_names) and all(path.exists() for path in tls_files):
            try:
                if tls.reload_if_changed():
                    log.info("TLS certificate read anew")
            except errors.X509CertError as err:
                log.error("TLS certificate not read: %s", errors.text(err))
        if unknown or name in trust_names:
            authoriser.reload()

    return changed


if __name__ == "__main__":
    sys.exit(main())
