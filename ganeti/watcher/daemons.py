"""Daemons that should run on this node and do not are started; one that hangs is started again.

None is while the node goes over to another version, which stops and starts all of them.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import ssl

from ganeti import constants, errors, paths
from ganeti.base import files, services
from ganeti.luxi.absence import master_name
from ganeti.luxi.client import Client
from ganeti.net import tcp_daemon
from ganeti.upkeep.round import Here

_LOG = logging.getLogger(__name__)
#: Seconds in which the remote API must answer.
_PATIENCE = 20.0
#: Seconds that a daemon which does not answer gets to end by itself.
_LAST_WORDS = 15.0


def run(here: Here) -> None:
    """Start daemons that do not run, then check that those of the master answer.

    Raises:
        GanetiError: a daemon does not start.
    """
    is_master = master_name(here.paths) == paths.hostname()
    problems: list[str] = []
    for service in services.ALL.values():
        if service.of_master and not is_master:
            continue
        if not services.is_wanted(service, here.paths) and service.name != constants.RAPI:
            continue
        try:
            _start(here, service.name)
        except errors.GanetiError as err:
            problems.append(f"{service.name}: {errors.text(err)}")
    if is_master and not problems:
        problems += _restart_hung(here)
    if problems:
        raise errors.OpExecError("; ".join(problems))


def _start(here: Here, name: str) -> None:
    if services.is_running(name, here.paths) or _switches(here):
        return
    services.start(name, here.paths)
    _LOG.warning("%s was not running; started it", name)


def _switches(here: Here) -> bool:
    """Whether the node goes over to another version right now."""
    return files.is_locked(here.paths.version_lock)


def _restart_hung(here: Here) -> list[str]:
    """Start daemons of the master again that run and do not answer; what failed."""
    problems = []
    for name, probe in ((constants.MASTERD, _ask_master), (constants.RAPI, _ask_rapi)):
        try:
            probe(here)
            continue
        except (errors.GanetiError, OSError, http.client.HTTPException) as err:
            if _switches(here):
                return []
            _LOG.warning("%s does not answer (%s); it is started again", name, err)
        try:
            services.stop(name, here.paths, _LAST_WORDS)
            services.start(name, here.paths)
            probe(here)
        except (errors.GanetiError, OSError, http.client.HTTPException) as err:
            problems.append(f"{name} does not answer after a new start: {err}")
    return problems


def _ask_master(_here: Here) -> None:
    with contextlib.closing(Client()) as client:
        client.query_config_values(["cluster_name"])


def _ask_rapi(here: Here) -> None:
    """Get ``/version``. Nothing secret is sent, so who answers is not verified."""
    words = services.options_of(services.ALL[constants.RAPI], here.paths)
    given, _rest = tcp_daemon.parser(constants.RAPI, "").parse_known_args(words)
    own = tcp_daemon.read_options(constants.RAPI, given)
    address = here.options.rapi_address or own.address
    if address in ("0.0.0.0", "::", ""):
        address = "127.0.0.1"
    connection: http.client.HTTPConnection
    if "--no-ssl" in words:
        connection = http.client.HTTPConnection(address, own.port, timeout=_PATIENCE)
    else:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            address, own.port, timeout=_PATIENCE, context=context
        )
    with contextlib.closing(connection):
        connection.request("GET", "/version")
        connection.getresponse().read()
