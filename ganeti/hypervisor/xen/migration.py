"""Moving a running domain: ``xl migrate`` at one end, ``xl migrate-receive`` at the other.

Between them is socat with TLS: both ends show the certificate of their node daemon, and each checks
that the other's is of the cluster and has the name of the other node. While a domain
is coming it is called NAME--incoming, and NAME--migratedaway while it is unknown whether it has
arrived, so that it never runs under its name in two places.

A domain that is paused meanwhile goes from ``xl save`` to ``xl restore``. At the source it is
called NAME--leaving and is paused when all of it was sent; at the target it stays paused, as
NAME--incoming, until it is told to run there.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import daemon, files, process, retry
from ganeti.base.clock import Deadline
from ganeti.hypervisor.xen import xl
from ganeti.hypervisor.xen.migration_argv import (
    HOST_NAME,
    SOCAT,
    receive_argv,
    restore_argvs,
    save_argvs,
    send_argv,
)
from ganeti.hypervisor.xen.xl import AWAY, INCOMING, LEAVING
from ganeti.model.enums import MigrationState
from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.rpc.objects import MigrationStatus

log = logging.getLogger(__name__)

#: Seconds until socat listens, and that a status waits for the end.
_LISTEN_WAIT = 10.0
_STATUS_WAIT = 2.0
_END_WAIT = 5.0
#: xl continues a domain that it has stopped sending.
_RESUME_WAIT = 60.0
#: Seconds until a domain of which everything was sent has been built.
_BUILD_WAIT = 60.0
#: Letters of the log that are shown when a move fails.
_SHOWN = 500


def _place(where: str) -> tuple[str, str, int]:
    """Node name, address and port of what :meth:`Mover.accept` gave on another node.

    Raises:
        HypervisorError: it is something else.
    """
    target, _, rest = where.partition("/")
    address, _, port = rest.rpartition(":")
    try:
        ipaddress.ip_address(address)
        if HOST_NAME.fullmatch(target):
            return target, address, int(port)
    except ValueError:
        pass
    raise errors.HypervisorError(f"{where[:200]!r} is not a place where a Xen node waits")


class Mover:
    """Both ends of moves on one node; its state is in pid files and in Xen."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    # the target

    def accept(self, name: str, source: str, place: tuple[str, int], config: str | None) -> str:
        """Wait for a domain from a node at an address and port; returns ``node name/address:port``.

        With a configuration for a domain that is paused and is called NAME--incoming.

        Raises:
            HypervisorError: nothing listens there after ten seconds.
        """
        address, port = place
        if not HOST_NAME.fullmatch(source):
            raise errors.HypervisorError(f"'{source}' is not the name of a node")
        target = certs.inspect(self._paths.server_cert).subject_cn
        self._end_process(name, "receive")
        if config is None:
            pid = self._begin(name, "receive", receive_argv(source, place, self._paths))
        else:
            path = self._config_file(name)
            files.ensure_dir(path.parent)
            files.write_atomic(path, config, mode=0o600, fsync=False)
            pid = self._begin(name, "receive", *restore_argvs(path, source, place, self._paths))

        def listening() -> bool | None:
            return True if not process.is_alive(pid) or _listens(pid, port) else None

        # socat tells nobody that it listens.
        retry.retry_until(listening, timeout=_LISTEN_WAIT, first=0.05)
        if not process.is_alive(pid) or not _listens(pid, port):
            self._end_process(name, "receive")
            raise errors.HypervisorError(
                f"cannot wait for instance {name} at port {port}:"
                f" {self._read_log_end(name, 'receive')}"
            )
        return f"{target}/{address}:{port}"

    def check_arrived(self, name: str) -> None:
        """Wait until all of the domain is here; HypervisorError when it is not."""
        pid = daemon.read_pid(self._pid_file(name, "receive"))
        ended = pid is None or process.wait_exit(pid, _BUILD_WAIT)
        if not ended or not {name, name + INCOMING} & _domains().keys():
            raise errors.HypervisorError(
                f"instance {name} did not arrive here: {self._read_log_end(name, 'receive')}"
            )

    def check_arrival(self, name: str) -> None:
        """See that the domain runs here; HypervisorError when it has not arrived."""
        found = _domains()
        if name not in found and name + INCOMING in found:
            self.check_arrived(name)
            xl.run(["rename", name + INCOMING, name])
            found = _domains()
        if name not in found:
            raise errors.HypervisorError(
                f"instance {name} did not arrive here: {self._read_log_end(name, 'receive')}"
            )
        if found[name].paused:
            xl.run(["unpause", name])
        self._end_process(name, "receive")
        files.remove(self._config_file(name))

    def give_up(self, name: str) -> None:
        """End what waits for a domain; HypervisorError when it runs here already."""
        self._end_process(name, "receive")
        if name in _domains():
            raise errors.HypervisorError(f"instance {name} has taken over: it runs here")
        _destroy(name + INCOMING)
        files.remove(self._config_file(name))

    # the source

    def send(self, name: str, where: str, *, live: bool) -> None:
        """Begin to send a domain to what :meth:`accept` gave."""
        target, address, port = _place(where)
        if live:
            self._begin(name, "send", send_argv(name, address, port, target, self._paths))
            return
        # Known to Xen before it is paused, so that no crash can hide what it does here.
        xl.run(["rename", name, name + LEAVING])
        sending = save_argvs(name + LEAVING, address, port, target, self._paths)
        try:
            self._begin(name, "send", *sending)
        except errors.HypervisorError:
            xl.run(["rename", name + LEAVING, name])
            raise

    def status(self, name: str) -> MigrationStatus:
        """How far it is; waits up to two seconds for the end."""
        pid = daemon.read_pid(self._pid_file(name, "send"))
        # xl may have ended before all that it said was sent.
        sending = [] if pid is None else [pid, *_group(pid)]
        if not all(process.wait_exit(one, _STATUS_WAIT) for one in sending):
            return MigrationStatus(status=MigrationState.ACTIVE)
        found = _domains(ended=True)
        leaving = found.get(name + LEAVING)
        if leaving is not None:
            # xl pauses it when all of it was sent, and lets it go on else.
            complete = leaving.paused and not leaving.ended
        else:
            complete = name not in found and name + AWAY not in found
        if complete:
            return MigrationStatus(status=MigrationState.COMPLETED)
        return MigrationStatus(status=MigrationState.FAILED, error=self._read_log_end(name, "send"))

    def stop(self, name: str) -> None:
        """Stop sending; xl lets the domain go on.

        Raises:
            HypervisorError: it was cut off when it had been told to run at the target, or xl was
                ended; the guest was ended here, as xl cannot continue it.
        """
        pid = daemon.read_pid(self._pid_file(name, "send"))
        if pid is not None:
            # Not xl itself: it has to take back what it did to the domain. It may not have started
            # the program that sends yet.
            deadline, ended = Deadline(_RESUME_WAIT), False
            while not ended and not deadline.has_passed:
                for member in _group(pid):
                    if _command(member) == SOCAT:
                        _end(member)
                ended = process.wait_exit(pid, min(deadline.left, _STATUS_WAIT))
        self._end_process(name, "send")
        found = _domains(ended=True)
        leaving = found.get(name + LEAVING)
        if leaving is not None and not leaving.ended:
            xl.run(["rename", leaving.name, name])
            if leaving.paused:
                xl.run(["unpause", name])
            return
        stuck = [end for end in (AWAY, LEAVING) if name + end in found]
        for end in stuck:
            _destroy(name + end)
        if stuck:
            raise errors.HypervisorError(
                f"instance {name} was paused at the end of its migration and cannot continue"
                " here; it was ended and can be started"
            )

    def forget_sent(self, name: str) -> None:
        """Forget a domain that has arrived at the target; HypervisorError when it runs here."""
        found = _domains()
        leaving = found.get(name + LEAVING)
        if name in found or (leaving is not None and not leaving.paused):
            raise errors.HypervisorError(f"instance {name} runs here: it was not moved")
        self._end_process(name, "send")
        for end in (AWAY, LEAVING):
            _destroy(name + end)

    # processes

    def _begin(self, name: str, what: str, *programs: Sequence[str]) -> int:
        """Start programs of which each feeds the next; the number of xl, or of the only one."""
        path, log_file = self._pid_file(name, what), self._log_file(name, what)
        files.ensure_dir(path.parent)
        files.ensure_dir(log_file.parent)
        with log_file.open("wb") as log_to, _pipes(len(programs) - 1) as pipes:
            sources = [subprocess.DEVNULL, *(reader for reader, _ in pipes)]
            drains = [*(writer for _, writer in pipes), log_to.fileno()]
            first, *rest = sorted(
                zip(programs, sources, drains, strict=True), key=lambda one: one[0][0] == SOCAT
            )
            leader = _start(*first, log_to.fileno())
            children = [leader]
            try:
                children += [_start(*one, log_to.fileno(), leader.pid) for one in rest]
            except errors.HypervisorError:
                process.kill_group(leader.pid)
                leader.wait()
                raise
        files.write_atomic(path, f"{leader.pid}\n", fsync=False)
        for child in children:
            threading.Thread(target=child.wait, name=f"xen-{what}-{name}", daemon=True).start()
        return leader.pid

    def _end_process(self, name: str, what: str) -> None:
        path = self._pid_file(name, what)
        pid = daemon.read_pid(path)
        if pid is not None and _command(pid) in (SOCAT, xl.PROGRAM):
            members = [pid, *_group(pid)]
            process.kill_group(pid)
            for member in members:
                process.wait_exit(member, _END_WAIT)
        files.remove(path)

    def _read_log_end(self, name: str, what: str) -> str:
        try:
            text = files.read_text(self._log_file(name, what))
        except OSError:
            return "nothing was printed"
        return " | ".join(text[-_SHOWN:].split("\n")).strip(" |") or "nothing was printed"

    def _pid_file(self, name: str, what: str) -> Path:
        return self._paths.run / "xen" / f"{name}.{what}"

    def _config_file(self, name: str) -> Path:
        """Configuration of a domain that is awaited; holds the password of its display."""
        return self._paths.run / "xen" / f"{name}.awaited"

    def _log_file(self, name: str, what: str) -> Path:
        return self._paths.log / "xen" / f"{name}-{what}.log"


@contextlib.contextmanager
def _pipes(count: int) -> Iterator[list[tuple[int, int]]]:
    """Pipes, closed here at the end."""
    with contextlib.ExitStack() as stack:
        made = [os.pipe() for _ in range(count)]
        for end in itertools.chain(*made):
            stack.callback(os.close, end)
        yield made


def _start(
    argv: Sequence[str], source: int, drain: int, log_to: int, group: int = 0
) -> subprocess.Popen[bytes]:
    """Start a program that leads a group of processes of its own, or belongs to ``group``.

    SIGPIPE stays ignored: xl takes back what it did when nobody takes its output any more.
    """
    try:
        return subprocess.Popen(
            argv,
            stdin=source,
            stdout=drain,
            stderr=log_to,
            restore_signals=False,
            env={"PATH": process.search_path(), "LC_ALL": "C"},
            process_group=group,
        )
    except OSError as err:
        raise errors.HypervisorError(f"cannot run {argv[0]}: {err.strerror}") from err


def _command(pid: int) -> str:
    """Name of a running program, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _group(leader: int) -> Iterator[int]:
    """The other processes of a group."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and path.name != str(leader):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(int(path.name)) == leader:
                    yield int(path.name)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _listens(leader: int, port: int) -> bool:
    """Whether a process of a group listens on a TCP port (proc(5): state 0A, inode)."""
    sockets = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{words[9]}]")
    return any(_has_open(pid, sockets) for pid in (leader, *_group(leader)))


def _has_open(pid: int, wanted: set[str]) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return any(os.readlink(path) in wanted for path in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _domains(*, ended: bool = False) -> dict[str, xl.Domain]:
    """Domains by name, without those that have ended unless requested."""
    found = xl.parse_list(xl.run(["list"]))
    return {domain.name: domain for domain in found if ended or not domain.ended}


def _destroy(name: str) -> None:
    try:
        xl.run(["destroy", name], timeout=xl.SLOW)
    except errors.HypervisorError as err:
        if not xl.is_unknown(err):
            raise
