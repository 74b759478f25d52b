"""The program ``ganeti-rapi``: serves the remote API over HTTPS until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import logging
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ganeti import constants, errors, paths
from ganeti.base import daemon, files, inotify
from ganeti.base import log as base_log
from ganeti.luxi.absence import master_name
from ganeti.net import certs, expiry, resolve, tcp_daemon
from ganeti.net.expiry import Expiry
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tcp_daemon import Serving
from ganeti.net.tls.contexts import Identity, ReloadableContext
from ganeti.rapi import access_log, failures, scrape_server, scrapes, web_files
from ganeti.rapi.app import make_app
from ganeti.rapi.authenticate import Authenticator
from ganeti.rapi.console_routes import CONSOLES, TICKETS
from ganeti.rapi.consoles import Consoles
from ganeti.rapi.login import DOOR, SESSIONS
from ganeti.rapi.luxi_connections import Clients
from ganeti.rapi.oidc_routes import PROVIDERS
from ganeti.rapi.sessions import Sessions
from ganeti.rapi.tickets import Tickets
from ganeti.rapi.waits import WAITING_ROOM, WaitingRoom

log = logging.getLogger(__name__)

LOG_NAME: Final = "rapi-daemon.log"
ACCESS_LOG_NAME: Final = "rapi-access.log"
MAX_BODY: Final = 10 * 1024 * 1024
MAX_CONNECTIONS: Final = 2048
#: Seconds for a TLS handshake and the first request head; for a whole request to come in; between
#: requests; and for a worker to serve one, reading of the answer included.
HANDSHAKE, ARRIVAL, IDLE, SERVICE = 10.0, 30.0, 120.0, 240.0
#: Seconds that running requests get when the daemon is told to stop.
STOP_WAIT: Final = 10.0


@dataclass(frozen=True)
class Scrapes:
    """The port for scrapes by client certificate."""

    port: int
    identity: Identity
    #: common names of the certificates; empty: all of the authority
    names: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """The command line, with what it leaves out filled in."""

    serving: Serving
    #: None without TLS
    identity: Identity | None
    require_authentication: bool
    user: str | None
    scrapes: Scrapes | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot run), 5 (no cluster) or 11 (not the master)."""
    parser = command_line()
    arguments = parser.parse_args(argv)
    where = paths.current()
    _check_role(parser, where)
    try:
        options = _options(parser, arguments, where)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")
    return tcp_daemon.run(
        options.serving,
        lambda: _prepare(options, where),
        lambda background: _serve(options, where, background),
    )


def command_line() -> argparse.ArgumentParser:
    parser = tcp_daemon.parser(constants.RAPI, "Serves the remote API on the master node.")
    add = parser.add_argument
    add("-K", "--ssl-key", type=Path, metavar="FILE", help="private key (default: rapi.pem)")
    add("-C", "--ssl-cert", type=Path, metavar="FILE", help="certificate (default: rapi.pem)")
    add("--ssl-chain", type=Path, metavar="FILE", help="intermediate certificates")
    add("--no-ssl", action="store_true", help="plain HTTP, only on a loopback address")
    add(
        "--require-authentication",
        action="store_true",
        help="refuse requests without a password or token",
    )
    add("--scrape-port", type=int, metavar="PORT", help="serve /metrics by client certificate")
    add("--scrape-ca", type=Path, metavar="FILE", help="authority of these certificates")
    add("--scrape-names", metavar="NAME,...", help="their common names (default: any)")
    add("--user", metavar="NAME", help="run as this user instead of root, normally gnt-rapi")
    return parser


def _check_role(parser: argparse.ArgumentParser, where: paths.Paths) -> None:
    master = master_name(where)
    if master is None:
        code, text = constants.EXIT_NOTCLUSTER, "this node is in no cluster"
    elif master != paths.hostname():
        code = constants.EXIT_NOTMASTER
        text = f"this node is not the master; the remote API is on {master}"
    else:
        return
    daemon.explain_end(text, code)
    parser.exit(code, f"{parser.prog}: {text}\n")


def _options(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, where: paths.Paths
) -> Options:
    if arguments.user is not None and os.getuid() != 0:
        parser.error("--user needs root; without it the daemon runs as who starts it")
    serving = tcp_daemon.read_options(constants.RAPI, arguments)
    if arguments.no_ssl and not ipaddress.ip_address(serving.address).is_loopback:
        parser.error(
            f"--no-ssl would send passwords in the clear; {serving.address} is not a loopback"
            " address (-b 127.0.0.1 behind a proxy that does TLS)"
        )
    cert = (arguments.ssl_cert or where.rapi_cert).absolute()
    identity = Identity(
        cert,
        None,
        (arguments.ssl_key or arguments.ssl_cert or cert).absolute(),
        None if arguments.ssl_chain is None else arguments.ssl_chain.absolute(),
    )
    return Options(
        serving=serving,
        identity=None if arguments.no_ssl else identity,
        require_authentication=arguments.require_authentication,
        user=arguments.user,
        scrapes=_read_scrapes(parser, arguments, identity),
    )


def _read_scrapes(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, identity: Identity
) -> Scrapes | None:
    port, authority, names = arguments.scrape_port, arguments.scrape_ca, arguments.scrape_names
    if port is None and authority is None and names is None:
        return None
    if port is None or authority is None or arguments.no_ssl:
        parser.error("--scrape-port and --scrape-ca belong together, and need TLS")
    if not 0 < port < 65536:
        parser.error(f"--scrape-port {port} is not a port (1 to 65535)")
    found = replace(identity, ca_file=authority.absolute())
    listed = (name.strip() for name in (names or "").split(","))
    return Scrapes(port, found, tuple(name for name in listed if name))


def _prepare(options: Options, where: paths.Paths) -> None:
    """Directories, logs and the certificate; the last moment as root."""
    os.umask(0o027)
    for directory, mode in ((where.log, 0o770), (where.run, 0o775), (where.rapi, 0o750)):
        files.ensure_dir(directory, mode)
    tcp_daemon.setup_log(options.serving, where.log / LOG_NAME)
    access_log.setup(where.log / ACCESS_LOG_NAME)
    wanted = None if options.identity is None else options.identity.cert_file
    if wanted == where.rapi_cert and not wanted.exists():
        _make_certificate(where)
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _make_certificate(where: paths.Paths) -> None:
    cluster, host = files.read_text(where.ssconf("cluster_name")).strip(), paths.hostname()
    addresses: list[str] = []
    for name in (cluster, host):
        with contextlib.suppress(errors.ResolverError):
            addresses.append(resolve.address(name))
    made = certs.self_signed(cluster, addresses, more_names=[host])
    certs.write(where.rapi_cert, made, mode=certs.GROUP_MODE)
    log.warning("%s was missing: a new certificate was made", where.rapi_cert)


def _serve(options: Options, where: paths.Paths, background: daemon.Background) -> None:
    daemon.limit_arenas()
    authenticator = Authenticator(where.rapi, anonymous=not options.require_authentication)
    tls: ReloadableContext | None = None
    if options.identity is not None:
        tls = options.identity.server_context(require_client=False)
    scrape_tls = None if options.scrapes is None else options.scrapes.identity.server_context()
    contexts = [context for context in (tls, scrape_tls) if context is not None]
    stop = daemon.StopSignal(lambda: _reload(authenticator, contexts))
    stop.install()
    room, sessions = WaitingRoom(where.luxi_socket), Sessions(authenticator.identify)
    sessions.restore(where.rapi_sessions)
    hub = Consoles(where.luxi_socket)
    app = make_app(luxi=Clients(where.luxi_socket), authenticate=authenticator, sessions=sessions)
    desk = scrapes.Desk.on_socket(where.luxi_socket)
    shared = {
        WAITING_ROOM: room,
        SESSIONS: sessions,
        DOOR: authenticator,
        PROVIDERS: authenticator.providers,
        CONSOLES: hub,
        TICKETS: Tickets(),
        scrapes.DESK: desk,
    }
    server = HttpServer(
        (options.serving.address, options.serving.port),
        _trust_proxy(access_log.logged(web_files.with_web(_share(app, shared))), tls),
        tls,
        threads=options.serving.max_clients,
        max_body=MAX_BODY,
        collect_body=MAX_BODY,
        request_timeout=ARRIVAL,
        handshake_timeout=HANDSHAKE,
        idle_timeout=IDLE,
        request_limit=SERVICE,
        max_connections=MAX_CONNECTIONS,
        name="rapi",
        server_header=f"Ganeti {constants.RELEASE_VERSION}",
        refusal_body=failures.body,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(_keep_sessions, sessions, where.rapi_sessions)
        port = server.start()
        stack.callback(server.stop, STOP_WAIT)
        if options.scrapes is not None and scrape_tls is not None:
            address = (options.serving.address, options.scrapes.port)
            stack.enter_context(
                scrape_server.serve(address, scrape_tls, desk, options.scrapes.names)
            )
        if options.user is not None:
            daemon.become(
                options.user,
                [
                    where.rapi,
                    *where.rapi.glob("*"),
                    where.rapi_cert,
                    where.log / LOG_NAME,
                    where.log / ACCESS_LOG_NAME,
                    where.pid_file(constants.RAPI),
                ],
            )
        room.start()
        stack.callback(room.stop)
        stack.callback(desk.stop)
        hub.start()
        stack.callback(hub.stop)
        authenticator.on_change = lambda: _ask_again(sessions, room, hub)
        sessions.on_end = lambda: _hang_up(room, hub)
        stack.enter_context(_watch_files(authenticator, contexts, options, where))
        log.info("Remote API of %s serves %s:%d", paths.hostname(), options.serving.address, port)
        daemon.serve(
            stop, background, lambda: tcp_daemon.ask_self(options.serving), "Remote API stops"
        )


def _keep_sessions(sessions: Sessions, path: Path) -> None:
    try:
        sessions.keep(path)
    except OSError as err:
        log.warning("%s: users have to log in again: %s", path, err)


def _ask_again(sessions: Sessions, room: WaitingRoom, hub: Consoles) -> None:
    """Users or tokens may be others: end what they back no more, let readers of events return."""
    sessions.check_all()
    room.events.hang_up()
    hub.renew()


def _hang_up(room: WaitingRoom, hub: Consoles) -> None:
    """Sessions have ended: clients with open streams have to authenticate again."""
    room.events.hang_up()
    hub.check()


def _share(app: WSGIApplication, shared: Mapping[str, object]) -> WSGIApplication:
    """Let handlers find what the daemon keeps for all requests."""

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        environ.update(shared)
        return app(environ, start)

    return serve


def _trust_proxy(app: WSGIApplication, tls: ReloadableContext | None) -> WSGIApplication:
    """Without TLS a proxy on this machine calls; it says for whom (``X-Forwarded-For``)."""
    if tls is not None:
        return app

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        # The proxy appends the address it was called from; what stands before is hearsay.
        address = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        if resolve.is_address(address):
            environ["REMOTE_ADDR"] = address
        return app(environ, start)

    return serve


def _reload(authenticator: Authenticator, contexts: Sequence[ReloadableContext]) -> None:
    """SIGHUP: logs, users, tokens and the certificate are read again."""
    base_log.reopen()
    authenticator.reload()
    for tls in contexts:
        with contextlib.suppress(errors.X509CertError):  # logged there; the old one stays
            tls.reload()


@contextlib.contextmanager
def _watch_files(
    authenticator: Authenticator,
    contexts: Sequence[ReloadableContext],
    options: Options,
    where: paths.Paths,
) -> Iterator[None]:
    """Follow users, tokens and the certificate; without inotify SIGHUP does it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(authenticator.stop)
            authenticator.start()
            if contexts and options.identity is not None:
                cert = options.identity.cert_file or where.rapi_cert
                _warn_of_end(cert)
                watcher = inotify.DirectoryWatcher(
                    cert.parent, _make_change_handler(contexts, cert)
                )
                watcher.start()
                stack.callback(watcher.stop)
        except errors.InotifyError as err:
            log.warning("Changed files are only noticed on SIGHUP: %s", errors.text(err))
        yield


def _warn_of_end(cert: Path) -> None:
    """Say in the log when the certificate is over, or will be soon."""
    level, text = expiry.judge(certs.inspect(cert))
    if level is not Expiry.OK:
        number = logging.ERROR if level is Expiry.ERROR else logging.WARNING
        log.log(number, "the certificate %s is %s", cert, text)


def _make_change_handler(
    contexts: Sequence[ReloadableContext], cert: Path
) -> Callable[[str], None]:
    def handle_change(name: str) -> None:
        if name not in (cert.name, inotify.ANY_NAME) or not cert.exists():
            return
        with contextlib.suppress(errors.X509CertError):  # logged there; the old one stays
            renewed = [tls.reload_if_changed() for tls in contexts]
            if any(renewed):
                log.info("certificate read again")
                _warn_of_end(cert)

    return handle_change


if __name__ == "__main__":
    sys.exit(main())
