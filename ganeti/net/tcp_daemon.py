"""Common parts of daemons that serve on a port: options, logs, how they end."""

from __future__ import annotations

import argparse
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ganeti import constants, errors, paths
from ganeti.base import daemon, files
from ganeti.base import log as base_log
from ganeti.net import listen, resolve

log = logging.getLogger(__name__)

#: Seconds in which a daemon must answer itself.
_PATIENCE = 20.0


@dataclass(frozen=True)
class Serving:
    """Options that all these daemons have, with defaults for those that were not given."""

    #: name of the program and of its service
    service: str
    foreground: bool
    debug: bool
    #: no, yes or only
    syslog: str
    #: text or json
    log_format: str
    address: str
    port: int
    max_clients: int


def parser(service: str, description: str) -> argparse.ArgumentParser:
    """A parser of the options in :class:`Serving`; the daemon adds its own."""
    made = _parser(service, description, "TCP")
    add = made.add_argument
    add("-i", "--interface", metavar="NAME", help="network interface to listen on")
    add(
        "--max-clients",
        type=_parse_positive,
        default=20,
        metavar="N",
        help="requests processed at the same time (default: %(default)s)",
    )
    return made


def make_small_parser(service: str, description: str, protocol: str) -> argparse.ArgumentParser:
    """The same for a daemon of one worker, which can do without some of them."""
    made = _parser(service, description, protocol)
    add = made.add_argument
    add("--no-user-checks", action="store_true", help="accepted; the user is never checked")
    version = f"%(prog)s (ganeti) {constants.RELEASE_VERSION}"
    add("-V", "--version", action="version", version=version, help="print the version and end")
    made.set_defaults(interface=None, max_clients=1)
    return made


def _parser(service: str, description: str, protocol: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=service, description=description)
    port = constants.DEFAULT_PORTS[service]
    text = f"{protocol} port (default: that of service {service}, {port})"
    add = made.add_argument
    add("-f", "--foreground", action="store_true", help="stay attached to the terminal")
    add("-d", "--debug", action="store_true", help="log more")
    add("--syslog", choices=("no", "yes", "only"), default="no", help="log to syslog (too)")
    base_log.add_option(made)
    add("-p", "--port", type=_parse_port, help=text)
    add("-b", "--bind", metavar="ADDRESS", help="own address to listen on (default: all)")
    return made


def _parse_port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return number


def _parse_positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def read_options(service: str, given: argparse.Namespace) -> Serving:
    """The options of :func:`parser`, with what they leave out filled in.

    Raises:
        ParameterError: the interface has no address, or another one than ``-b``.
        ResolverError: ``-b`` is a name without an address.
    """
    return Serving(
        service=service,
        foreground=given.foreground,
        debug=given.debug,
        syslog=given.syslog,
        log_format=given.log_format,
        address=listen.address(given.bind, given.interface, paths.current()),
        port=resolve.port(service) if given.port is None else given.port,
        max_clients=given.max_clients,
    )


def ask_self(options: Serving) -> None:
    """Connect to the daemon, send nothing, and wait until it notices and hangs up.

    Raises:
        OSError: it accepts no connection, or does not notice one within 20 seconds.
    """
    address = listen.find_reachable(options.address)
    with socket.create_connection((address, options.port), timeout=_PATIENCE) as sock:
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


def setup_log(options: Serving, file: Path) -> None:
    """Send what is logged to the file, to syslog and to the terminal, as the options say."""
    base_log.setup(
        options.service,
        file=None if options.syslog == "only" else file,
        debug=options.debug,
        console=options.foreground,
        form=options.log_format,
    )
    if options.syslog != "no":
        base_log.add_syslog(options.service)


def run_small(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    serve: Callable[[Serving, daemon.Background], None],
    *,
    needs: Path,
    log_file: Path,
    umask: int = 0o027,
    directories: Mapping[Path, int] = MappingProxyType({}),
) -> int:
    """Run a daemon of :func:`make_small_parser`; exit code 0, 1 (cannot run) or 5 (no cluster).

    ``needs`` is a file that is there on every node of a cluster; ``directories``, beside those of
    logs and pid files, are made with these modes.
    """
    given = parser.parse_args(argv)
    if not needs.exists():
        text = f"this node is in no cluster, or {needs} is missing"
        daemon.explain_end(text, constants.EXIT_NOTCLUSTER)
        parser.exit(constants.EXIT_NOTCLUSTER, f"{parser.prog}: {text}\n")
    try:
        options = read_options(parser.prog, given)
    except errors.GanetiError as err:
        parser.exit(constants.EXIT_FAILURE, f"{parser.prog}: {errors.text(err)}\n")

    def prepare() -> None:
        os.umask(umask)
        where = paths.current()
        for directory, mode in {where.log: 0o770, where.run: 0o775, **directories}.items():
            files.ensure_dir(directory, mode)
        setup_log(options, log_file)

    return run(options, prepare, lambda background: serve(options, background))


def run(
    options: Serving, prepare: Callable[[], None], serve: Callable[[daemon.Background], None]
) -> int:
    """Go to the background if wanted, ``prepare``, become the only copy and ``serve``.

    Returns the exit code; why it is not a success is logged and told to who started the daemon.
    """
    background = daemon.Background()
    if not options.foreground:
        background.fork()
    pid_file = daemon.PidFile(paths.current().pid_file(options.service))
    try:
        prepare()
        pid_file.acquire()
        serve(background)
    except (errors.GanetiError, OSError) as err:
        reason = _reason(err)
        log.error("Cannot run: %s", reason)
        background.report_failure(f"{options.service}: {reason}", constants.EXIT_FAILURE)
        return constants.EXIT_FAILURE
    except Exception:  # last frame: in the background nobody else would see it
        log.exception("A bug ended %s", options.service)
        background.report_failure(f"{options.service}: internal error, see its log")
        return constants.EXIT_FAILURE
    finally:
        pid_file.release()
    return constants.EXIT_SUCCESS


def _reason(err: errors.GanetiError | OSError) -> str:
    if isinstance(err, errors.X509CertError):
        return ": ".join(map(str, err.args))
    return errors.text(files.failure(err) if isinstance(err, OSError) else err)
