"""ganeti-masterd: the one process that owns configuration, queue and locks."""

from __future__ import annotations

import argparse
import contextlib
import grp
import logging
import os
import resource
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ganeti import constants, errors, paths
from ganeti.base import daemon, files, log
from ganeti.config.store import read_config
from ganeti.luxi.client import Client
from ganeti.model.config import Config
from ganeti.paths import Paths

if TYPE_CHECKING:
    from ganeti.master.core import Core

_LOG = logging.getLogger(__name__)

#: Seconds that running operations get when the daemon is told to stop.
STOP_TIMEOUT = 60.0
#: Seconds to wait for enough nodes to vote.
VOTE_PATIENCE = 10.0
#: Seconds of waiting that make a lock request more urgent by one.
AGE_AFTER = 60.0
#: Seconds a thread may keep the interpreter to itself; short, as many wait for few cores.
SWITCH_INTERVAL = 0.001


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=constants.MASTERD,
        description="Owns configuration and job queue of the cluster and serves LUXI.",
    )
    parser.add_argument(
        "-f", "--foreground", action="store_true", help="stay attached to the terminal"
    )
    parser.add_argument("-d", "--debug", action="store_true", help="log more")
    log.add_option(parser)
    parser.add_argument(
        "--stop-timeout",
        type=float,
        default=STOP_TIMEOUT,
        metavar="SECONDS",
        help="seconds that running operations get at a stop (default: %(default)s)",
    )
    parser.add_argument(
        "--no-voting",
        action="store_true",
        help="become the master without a vote of the nodes, and accept changes that only this "
        "node has; needs --yes-do-it, because two masters are possible",
    )
    parser.add_argument("--yes-do-it", action="store_true", help="confirm --no-voting")
    parser.add_argument(
        "--vote-patience",
        type=float,
        default=VOTE_PATIENCE,
        metavar="SECONDS",
        help="time to wait for enough nodes to answer (default: %(default)s)",
    )
    return parser


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line()
    options = parser.parse_args(argv)
    if options.no_voting and not options.yes_do_it:
        parser.error(
            "--no-voting can make two masters; add --yes-do-it when you are sure that no other"
            " node is the master"
        )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; exit code 0, 1 (cannot start), 5 (no cluster) or 11 (not the master).

    Exit code 1 also when too few nodes answered the vote, so that systemd starts it again.
    """
    options = _parse(argv)
    where = paths.current()
    background = daemon.Background()
    if not where.config_file.exists():
        background.report_failure(
            f"{constants.MASTERD}: no cluster configuration at {where.config_file}; this node is"
            " not a master candidate (gnt-cluster getmaster tells who the master is), or belongs"
            " to no cluster (gnt-cluster init makes one)",
            constants.EXIT_NOTCLUSTER,
        )
        return constants.EXIT_NOTCLUSTER
    if not options.foreground:
        background.fork()
    try:
        return _serve(where, options, background)
    except (errors.GanetiError, OSError) as err:
        text = errors.text(files.failure(err) if isinstance(err, OSError) else err)
        _LOG.critical("cannot start: %s", text)
        code = getattr(err, "exit_code", constants.EXIT_FAILURE)
        if isinstance(err, errors.TooFewVotesError):
            code = constants.EXIT_FAILURE
        background.report_failure(f"{constants.MASTERD}: cannot start: {text}", code)
        return code


def _serve(where: Paths, options: argparse.Namespace, background: daemon.Background) -> int:
    os.umask(0o027)
    for directory, mode in ((where.run, 0o775), (where.socket_dir, 0o770), (where.log, 0o770)):
        files.ensure_dir(directory, mode)
    log.setup(
        constants.MASTERD,
        file=where.log / "master-daemon.log",
        debug=options.debug,
        console=options.foreground,
        form=options.log_format,
    )
    _end_beside_master(where)
    # Two thirds of the program, which every candidate starts at each boot; so only here.
    from ganeti.luxi.server import LuxiServer
    from ganeti.master.service import Service
    from ganeti.master.waiting import Waiting

    pid_file = daemon.PidFile(where.pid_file(constants.MASTERD))
    pid_file.acquire()
    # Somebody wants a master again. If this node is refused, another one may become it.
    files.remove(where.master_stopped_file)
    _raise_limits()
    sys.setswitchinterval(SWITCH_INTERVAL)
    daemon.limit_arenas()
    stop = daemon.StopSignal(on_hup=log.reopen)
    stop.install()
    resignation = _Resignation(stop)
    try:
        core = _open(where)
        core.rpc.on_deposed = resignation.depose
        core.lease.on_lost = core.mastership.on_role_lost = resignation.step_down
        try:
            _check_role(core, options)
        except errors.GanetiError:
            core.abandon()
            raise
    except (errors.GanetiError, OSError):
        # a caller that was told the daemon has stopped must not find it running
        pid_file.release()
        raise
    waiting = Waiting()
    service = Service(core, waiting)
    gid = _share_sockets(where)
    server = LuxiServer(where.luxi_socket, service, gid=gid, quick=service.answer_quickly)
    core.prepare()
    server.start()
    _link_legacy_socket(where)
    daemon.tune_collector()
    background.report_ready()
    try:
        core.start()
    except (errors.GanetiError, OSError):
        server.stop()
        service.stop()
        waiting.stop()
        raise
    service.open()
    house = threading.Thread(
        target=_keep_house, args=(core, stop.event), name="housekeeping", daemon=True
    )
    house.start()
    _LOG.info("serving cluster %s", core.store.current.cluster.cluster_name)
    daemon.tune_collector()
    with daemon.watchdog(_ask_self):
        stop.wait()
    if resignation:
        # Others may act soon. What this master still has to do, it may not do any more.
        core.address.drop()
    else:
        _LOG.info("stopping")
        files.write_atomic(where.master_stopped_file, b"", mode=0o644)
        server.stop()
        service.stop()
        waiting.stop()
        if not core.stop(options.stop_timeout):
            _LOG.error("operations still run; they become errors at the next start")
    pid_file.release()
    _LOG.info("stopped")
    logging.shutdown()
    # threads of operations that did not end must not keep the process alive
    os._exit(resignation.code)


def _ask_self() -> None:
    with contextlib.closing(Client()) as client:
        client.query_config_values(["cluster_name"])


def _end_beside_master(where: Paths) -> None:
    """Raise NoMasterError on a candidate that knows another node as the master.

    Nothing has been opened by then, so the node daemon need not end this one to write its copy.
    """
    try:
        config = read_config(where)
    except (errors.GanetiError, OSError):
        return  # it may just be written; what is wrong with it is found when it is opened
    _check_master(config)


def _open(where: Paths) -> Core:
    """Open everything; where the node daemon keeps a copy for another master, say who that is."""
    from ganeti.master.core import Core

    try:
        return Core(where)
    except errors.LockError:
        _check_master(read_config(where))
        raise


def _check_master(config: Config) -> None:
    if config.master.name != paths.hostname():
        raise errors.NoMasterError(
            f"the master is {config.master.name}, this node is {paths.hostname()}"
        )


def _check_role(core: Core, options: argparse.Namespace) -> None:
    _check_master(core.store.current)
    core.mastership.vote(alone=options.no_voting, patience=options.vote_patience)


class _Resignation:
    """Why this master stops by itself; false until it does. Thread-safe.

    Each method stops the daemon at once; the first one counts.
    """

    def __init__(self, stop: daemon.StopSignal) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        #: exit code of the daemon
        self.code = constants.EXIT_SUCCESS

    def __bool__(self) -> bool:
        return self.code != constants.EXIT_SUCCESS

    def depose(self, text: str) -> None:
        """Another node is the master now."""
        self._end(text, constants.EXIT_NOTMASTER)

    def step_down(self, text: str) -> None:
        """Another node may become the master; this one may be it again after a vote."""
        self._end(text, constants.EXIT_FAILURE)

    def _end(self, text: str, code: int) -> None:
        with self._lock:
            if self:
                return
            self.code = code
        _LOG.critical("stepping down: %s", text)
        self._stop.ask()


def _keep_house(core: Core, stop: threading.Event) -> None:
    """Let what waits for locks become more urgent, so that nothing starves; free memory."""
    while not stop.wait(AGE_AFTER / 4):
        core.locks.age(AGE_AFTER)
        daemon.give_back_memory()


def _raise_limits() -> None:
    """Allow as many clients as the system does."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _share_sockets(where: Paths) -> int | None:
    """Let daemons that are not root use the sockets; their group, None for that of this process.

    The group of a packaged installation exists also for a cluster that an ordinary user makes on
    the same machine; that one serves its own user only, as where there is no such group.
    """
    try:
        gid = grp.getgrnam(constants.DAEMONS_GROUP).gr_gid
    except KeyError:
        return None
    try:
        os.chown(where.socket_dir, -1, gid)
    except PermissionError as err:
        _LOG.info(
            "%s and its sockets keep the group of this process, which may not give them to the"
            " group %s (%s)",
            where.socket_dir,
            constants.DAEMONS_GROUP,
            err.strerror,
        )
        return None
    return gid


def _link_legacy_socket(where: Paths) -> None:
    """Clients of old versions look for another name."""
    new = where.luxi_socket_legacy.with_suffix(".new")
    files.remove(new)
    new.symlink_to(where.luxi_socket.name)
    new.rename(where.luxi_socket_legacy)


if __name__ == "__main__":
    sys.exit(main())
