"""Moving a running domain: ``xl migrate`` at one end, ``xl migrate-receive`` at the other.

Between them is socat with TLS: both ends show the certificate of their node daemon, and each checks
that the other's is of the cluster; the source also checks the name of the target. While a domain
is coming it is called NAME--incoming, and NAME--migratedaway while it is unknown whether it has
arrived, so that it never runs under its name in two places.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import daemon, files, process, retry
from ganeti.hypervisor.xen import xl
from ganeti.model.names import MigrationState
from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.rpc.objects import MigrationStatus

log = logging.getLogger(__name__)

INCOMING = "--incoming"
AWAY = "--migratedaway"
SOCAT = "socat"
#: Bytes that socat moves at a time.
_BLOCK = "-b524288"
#: Seconds without a byte after which socat takes the other node for lost; building the domain
#: at the target, when little is sent, takes less.
_SILENCE = "-T120"
#: Seconds until socat listens, and that a status waits for the end.
_LISTEN_WAIT = 10.0
_STATUS_WAIT = 2.0
_END_WAIT = 5.0
#: Letters of the log that are shown when a move fails.
_SHOWN = 500


def receive_argv(address: str, port: int, paths: Paths) -> list[str]:
    """What waits for a domain; pure."""
    where = f"[{address}]" if ":" in address else address
    family = "pf=ip6" if ":" in address else "pf=ip4"
    listen = f"OPENSSL-LISTEN:{port},bind={where},{family},reuseaddr,{_tls(paths)}"
    return [SOCAT, _BLOCK, _SILENCE, listen, f"EXEC:{xl.PROGRAM} migrate-receive"]


def send_argv(name: str, address: str, port: int, target: str, paths: Paths) -> list[str]:
    """What sends a domain; pure.

    xl hands its option -s to a shell, followed by the host and the command for ssh, which the
    ``#`` hides. Nothing in it comes from a user: an address, a port, paths and a host name.
    """
    where = f"[{address}]" if ":" in address else address
    connect = f"OPENSSL:{where}:{port},{_tls(paths)},commonname={target},retry=20,interval=0.25"
    return [xl.PROGRAM, "migrate", "-s", f"{SOCAT} {_BLOCK} {_SILENCE} - {connect} #", name, "-"]


def _tls(paths: Paths) -> str:
    return f"cert={paths.server_cert},cafile={paths.ca_cert},verify=1"


class Mover:
    """Both ends of moves on one node; its state is in pid files and in Xen."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    # the target

    def accept(self, name: str, address: str, port: int) -> str:
        """Wait for a domain; gives ``node name/address:port``.

        Raises:
            HypervisorError: nothing listens there after ten seconds.
        """
        target = certs.inspect(self._paths.server_cert).subject_cn
        self._end_process(name, "receive")
        pid = self._begin(name, "receive", receive_argv(address, port, self._paths))

        def listening() -> bool | None:
            return True if not process.is_alive(pid) or _listens(port) else None

        # socat tells nobody that it listens.
        retry.until(listening, timeout=_LISTEN_WAIT, first=0.05)
        if not process.is_alive(pid) or not _listens(port):
            self._end_process(name, "receive")
            raise errors.HypervisorError(
                f"cannot wait for instance {name} at port {port}: {self._said(name, 'receive')}"
            )
        return f"{target}/{address}:{port}"

    def received(self, name: str) -> None:
        """Check that the domain has arrived; HypervisorError when it has not."""
        if name not in _names():
            raise errors.HypervisorError(
                f"instance {name} did not arrive here: {self._said(name, 'receive')}"
            )
        self._end_process(name, "receive")

    def give_up(self, name: str) -> None:
        """End what waits for a domain; HypervisorError when it runs here already."""
        self._end_process(name, "receive")
        if name in _names():
            raise errors.HypervisorError(f"instance {name} has taken over: it runs here")
        _destroy(name + INCOMING)

    # the source

    def send(self, name: str, where: str) -> None:
        """Begin to send a domain to what :meth:`accept` gave."""
        target, _, rest = where.partition("/")
        address, _, port = rest.rpartition(":")
        if not port.isdigit():
            raise errors.HypervisorError(f"'{where}' is no place that a Xen node has given")
        self._begin(name, "send", send_argv(name, address, int(port), target, self._paths))

    def status(self, name: str) -> MigrationStatus:
        """How far it is; waits up to two seconds for the end."""
        pid = daemon.read_pid(self._pid_file(name, "send"))
        if pid is not None and not process.wait_exit(pid, _STATUS_WAIT):
            return MigrationStatus(status=MigrationState.ACTIVE)
        names = _names()
        if name in names or name + AWAY in names:
            return MigrationStatus(status=MigrationState.FAILED, error=self._said(name, "send"))
        return MigrationStatus(status=MigrationState.COMPLETED)

    def stop(self, name: str) -> None:
        """Stop sending; xl lets the domain go on.

        Raises:
            HypervisorError: it was cut off when it had been told to run at the target; the guest
                was ended here, as xl cannot continue it.
        """
        pid = daemon.read_pid(self._pid_file(name, "send"))
        if pid is not None:
            # Not xl itself: it has to take back what it did to the domain.
            for child in _descendants(pid):
                if _command(child) == SOCAT:
                    _end(child)
            process.wait_exit(pid, _END_WAIT)
        self._end_process(name, "send")
        if name + AWAY in _names():
            _destroy(name + AWAY)
            raise errors.HypervisorError(
                f"instance {name} stood still at the end of its move and cannot go on here; it was"
                " ended and can be started"
            )

    def sent(self, name: str) -> None:
        """Forget a domain that has arrived at the target; HypervisorError when it runs here."""
        if name in _names():
            raise errors.HypervisorError(f"instance {name} runs here: it was not moved")
        self._end_process(name, "send")
        _destroy(name + AWAY)

    # processes

    def _begin(self, name: str, what: str, argv: Sequence[str]) -> int:
        path = self._pid_file(name, what)
        files.ensure_dir(path.parent)
        files.ensure_dir(self._log_file(name, what).parent)
        environment = {"PATH": process.search_path(), "LC_ALL": "C"}
        with self._log_file(name, what).open("wb") as output:
            try:
                child = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    env=environment, start_new_session=True,
                )  # fmt: skip
            except OSError as err:
                raise errors.HypervisorError(f"cannot run {argv[0]}: {err.strerror}") from err
        files.write_atomic(path, f"{child.pid}\n", fsync=False)
        threading.Thread(target=child.wait, name=f"xen-{what}-{name}", daemon=True).start()
        return child.pid

    def _end_process(self, name: str, what: str) -> None:
        path = self._pid_file(name, what)
        pid = daemon.read_pid(path)
        if pid is not None and _command(pid) in (SOCAT, xl.PROGRAM):
            process.kill_group(pid)
            process.wait_exit(pid, _END_WAIT)
        files.remove(path)

    def _said(self, name: str, what: str) -> str:
        try:
            text = files.read_text(self._log_file(name, what))
        except OSError:
            return "nothing was said"
        return " | ".join(text[-_SHOWN:].split("\n")).strip(" |") or "nothing was said"

    def _pid_file(self, name: str, what: str) -> Path:
        return self._paths.run / "xen" / f"{name}.{what}"

    def _log_file(self, name: str, what: str) -> Path:
        return self._paths.log / "xen" / f"{name}-{what}.log"


def _command(pid: int) -> str:
    """Name of a running program, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _descendants(pid: int) -> Iterator[int]:
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, words):
        yield child
        yield from _descendants(child)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _listens(port: int) -> bool:
    """Whether somebody on this node listens on a TCP port (proc(5): state 0A)."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def _names() -> set[str]:
    return {domain.name for domain in xl.parse_list(xl.run(["list"])) if not domain.ended}


def _destroy(name: str) -> None:
    try:
        xl.run(["destroy", name], timeout=xl.SLOW)
    except errors.HypervisorError as err:
        if not xl.is_unknown(err):
            raise
