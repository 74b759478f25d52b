"""The daemons of this node: which there are, whether they run, how to start and stop them.

Where systemd manages them (it runs this machine and has their units), they are started and stopped
through it, so that its view stays true. Elsewhere, and below a root of its own, they are processes
that go to the background by themselves.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import daemon, files, process, releases
from ganeti.paths import Paths

#: Seconds until a daemon must say that it is ready.
START_TIMEOUT = 60.0
#: Seconds in which a daemon that was told to stop may finish its work.
STOP_TIMEOUT = 90.0
#: Seconds in which systemd must answer a question.
_QUICK = 20.0
_UNITS = tuple(
    Path(directory, "systemd/system")
    for directory in ("/etc", "/usr/local/lib", "/usr/lib", "/lib")
)
_BOOTED = Path("/run/systemd/system")


@dataclass(frozen=True)
class Service:
    """One daemon."""

    name: str
    module: str
    #: variable of ``/etc/default/ganeti`` with options for it
    variable: str
    #: without this file the node has no use for it
    needs: Callable[[Paths], Path]
    #: whether it runs on the master node only
    of_master: bool = False
    #: whether it runs only where ``variable`` is set, even to nothing
    optional: bool = False

    @property
    def unit(self) -> str:
        return f"{self.name}.service"

    def argv(self, paths: Paths, *options: str) -> list[str]:
        """Command line with the version in use, which may be another than that of this program."""
        python = releases.find_python(paths)
        if python == sys.executable:
            return [python, "-m", self.module, *options]
        return [*releases.isolate(python, self.module), *options]


#: All daemons in the order of their start.
ALL: dict[str, Service] = {
    service.name: service
    for service in (
        Service(constants.NODED, "ganeti.node.daemon", "NODED_ARGS", lambda p: p.server_cert),
        Service(
            constants.CONFD,
            "ganeti.confd.daemon",
            "CONFD_ARGS",
            lambda p: p.hmac_key,
            optional=True,
        ),
        Service(
            constants.MOND,
            "ganeti.mond.daemon",
            "MOND_ARGS",
            lambda p: p.ssconf("cluster_name"),
            optional=True,
        ),
        Service(
            constants.METAD,
            "ganeti.metad.daemon",
            "METAD_ARGS",
            lambda p: p.server_cert,
            optional=True,
        ),
        Service(
            constants.MASTERD,
            "ganeti.master.daemon",
            "MASTERD_ARGS",
            lambda p: p.config_file,
            of_master=True,
        ),
        Service(
            constants.RAPI,
            "ganeti.rapi.daemon",
            "RAPI_ARGS",
            lambda p: p.rapi_cert,
            of_master=True,
        ),
    )
}


def uses_systemd(paths: Paths) -> bool:
    """Whether systemd starts and stops the daemons of this node."""
    if paths.root != Path("/") or not _BOOTED.is_dir():
        return False
    return any((directory / ALL[constants.NODED].unit).exists() for directory in _UNITS)


def is_running(name: str, paths: Paths) -> bool:
    """Whether a daemon runs, by the lock of its pid file."""
    return daemon.running_pid(paths.pid_file(name)) is not None


def is_wanted(service: Service, paths: Paths) -> bool:
    """Whether a daemon has work on this node, as far as the node itself is concerned.

    Raises:
        ConfigurationError: as of :func:`options_of`.
    """
    if not service.needs(paths).exists():
        return False
    return not service.optional or _read_words(service, paths) is not None


def options_of(service: Service, paths: Paths) -> list[str]:
    """Options of a daemon in ``/etc/default/ganeti``.

    Raises:
        ConfigurationError: the file cannot be read, or the value is not a list of words.
    """
    return _read_words(service, paths) or []


def _read_words(service: Service, paths: Paths) -> list[str] | None:
    return read_words(service.variable, paths)


def read_words(variable: str, paths: Paths) -> list[str] | None:
    """Words of the last line of ``/etc/default/ganeti`` that sets a variable; None without one.

    Raises:
        ConfigurationError: the file cannot be read, or the value is not a list of words.
    """
    path = paths.under("/etc/default/ganeti")
    try:
        lines = files.read_text(path).splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as err:
        raise errors.ConfigurationError(f"cannot read {path}: {err}") from err
    found: list[str] | None = None
    for number, line in enumerate(lines, 1):
        key, separator, value = line.strip().partition("=")
        if key != variable or not separator:
            continue
        try:
            found = [word for part in shlex.split(value, comments=True) for word in part.split()]
        except ValueError as err:
            raise errors.ConfigurationError(f"{path}, line {number}: {err}") from err
    return found


def start(name: str, paths: Paths, *options: str) -> None:
    """Start a daemon unless it runs; returns when it serves requests.

    ``options`` come after those of ``/etc/default/ganeti`` and hold for this start only.

    Raises:
        OpExecError: it did not start; the text is its own.
        ConfigurationError: ``/etc/default/ganeti`` is broken.
    """
    if is_running(name, paths):
        return
    service = ALL[name]
    if uses_systemd(paths):
        _start_unit(service, paths, options)
        return
    words = service.argv(paths, *options_of(service, paths), *options)
    _check(process.run(words, timeout=START_TIMEOUT, env=dict(os.environ)))


def _start_unit(service: Service, paths: Paths, options: Sequence[str]) -> None:
    options_file = paths.onetime_conf(service.name)
    if options:
        files.write_atomic(options_file, f"ONETIME_ARGS={shlex.join(options)}\n", mode=0o644)
    try:
        result = process.run(["systemctl", "start", service.unit], timeout=START_TIMEOUT + 30)
    finally:
        files.remove(options_file)
    # One that has nothing to do on this node ends in good order: for systemd it has not failed.
    if result.ok and is_running(service.name, paths):
        return
    show = ["systemctl", "show", "--property=StatusText", "--value", service.unit]
    state = process.run(show, timeout=_QUICK).stdout.strip()
    if not state:
        _check(result)
    raise errors.OpExecError(state or f"it has ended; see journalctl -u {service.unit}")


def _check(result: process.Result) -> None:
    if not result.ok:
        text = (result.stderr or result.stdout).strip() or result.explain()
        raise errors.OpExecError(text)


def start_master(paths: Paths, *options: str) -> list[str]:
    """Start the daemons of the master with options for the first; returns when all serve.

    Returns a text for each daemon without which the cluster works as well and that did not start.

    Raises:
        OpExecError: the master daemon did not start; the text is its own.
    """
    start(constants.MASTERD, paths, *options)
    try:
        start(constants.RAPI, paths)
    except errors.OpExecError as err:
        return [f"The remote API does not run: {errors.text(err)}"]
    return []


def stop_master(paths: Paths, timeout: float = STOP_TIMEOUT) -> None:
    """Stop the daemons of the master, the last started first; see :func:`stop`."""
    for name in (constants.RAPI, constants.MASTERD):
        stop(name, paths, timeout)


def stop(name: str, paths: Paths, timeout: float = STOP_TIMEOUT) -> bool:
    """Stop a daemon and wait for its end; killed after ``timeout`` seconds.

    Returns whether it ran.

    Raises:
        AccessError: it belongs to another user.
    """
    pid = daemon.running_pid(paths.pid_file(name))
    if uses_systemd(paths):
        _check(process.run(["systemctl", "stop", ALL[name].unit], timeout=timeout + 30))
        return pid is not None
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError as err:
        raise errors.AccessError(
            f"cannot stop {name} (process {pid}), which belongs to another user: run this as root"
        ) from err
    if not process.wait_exit(pid, timeout):
        os.kill(pid, signal.SIGKILL)
        process.wait_exit(pid, 10.0)
    return True


def reopen_logs(name: str, paths: Paths) -> bool:
    """Have a daemon open its log again after it was moved away; returns whether it runs."""
    pid = daemon.running_pid(paths.pid_file(name))
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return False
    return True
