"""Resource agent ``ganeti-master-role`` of Pacemaker: the role of the master, on one node.

Its start lets this node have the role (:mod:`ganeti.config.pacemaker_role`), and makes it the
master as ``gnt-cluster master-failover`` does. So a node whose data is older than that of others
fails to start, and Pacemaker tries another one. Its stop returns only when no master daemon runs
here, and none can begin.

As long as ``master_vote`` is not ``pacemaker``, the nodes decide. Then the resource only joins the
master daemon where that runs, for the change of this setting, and leaves it running when it stops.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from ganeti import constants, errors, paths
from ganeti.base import daemon, process, services
from ganeti.base.clock import SYSTEM
from ganeti.config import candidates
from ganeti.config.pacemaker_role import Grant
from ganeti.config.store import read_config
from ganeti.luxi.client import Client
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.net import pacemaker
from ganeti.paths import Paths
from ganeti.tools import ocf_agent
from ganeti.tools.ocf_agent import Agent, Code, Refusal, Request, say

#: Seconds until a daemon that was killed is gone.
_LAST_WORDS: Final = 10.0
#: Seconds between two attempts to become the master.
_PAUSE: Final = 1.0


def start(request: Request) -> Code:
    """Let this node be the master, and wait until it is; tried until the time is over."""
    where = request.where
    vote = read_config(where).cluster.master_vote
    if vote is MasterVote.ETCD:
        raise Refusal(
            Code.CONFIGURED,
            "etcd decides about the master: run gnt-cluster modify --master-vote=nodes",
        )
    if vote is None:
        return _join(request)
    Grant(where).give()
    try:
        while (problem := _try_to_act(request)) is not None:
            if request.end.has_passed:
                raise Refusal(Code.GENERIC, problem)
            SYSTEM.sleep(_PAUSE)  # nodes do not tell when they have come up
    except BaseException:  # an interrupt too: nothing may go on that Pacemaker does not know of
        with contextlib.suppress(errors.GanetiError, OSError):
            stop(request)
        raise
    return Code.SUCCESS


def _join(request: Request) -> Code:
    """Let the master that the nodes have chosen claim the role, when it is on this node."""
    patience = request.end.left / 2
    try:
        with Client(connect_timeout=patience, io_timeout=patience) as client:
            client.query_config_values(["cluster_name"])
    except errors.GanetiError as err:
        raise Refusal(
            Code.GENERIC,
            "the nodes decide about the master, and no master daemon answers here: start the"
            " resource on the master node, then run gnt-cluster modify --master-vote=pacemaker",
        ) from err
    Grant(request.where).give()
    return Code.SUCCESS


def _try_to_act(request: Request) -> str | None:
    """Become the master; why it must be tried again, None when a master daemon acts here."""
    try:
        if monitor(request) is Code.SUCCESS:
            return None
    except Refusal as err:
        return str(err)  # it may just have started
    # Only a start needs all of this, and monitor should be quick.
    from ganeti.bootstrap.failover import Failover

    try:
        Failover(say, where=request.where).run(dry_run=False)
    except (errors.TooFewVotesError, errors.RemoteError) as err:
        return errors.text(err)
    return None


def stop(request: Request) -> Code:
    """End the master daemon, and let none begin; one that the nodes have chosen runs on."""
    where, grant = request.where, Grant(request.where)
    has_claim, is_chosen = _has_claim(grant), _is_chosen(where)
    if is_chosen and not has_claim:
        _kill(where)  # it may not act, so there is nothing that it could bring to an end
    if is_chosen or has_claim:
        services.stop_master(where, request.count_stop_time())
    # One that was just starting may have claimed the role meanwhile; no other one can.
    if grant.revoke() or _is_chosen(where):
        services.stop_master(where, request.count_stop_time())
        if _is_running(where):
            raise Refusal(Code.GENERIC, "the master daemon does not end")
    return Code.SUCCESS


def _kill(where: Paths) -> None:
    pid = daemon.running_pid(where.pid_file(constants.MASTERD))
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        process.wait_exit(pid, _LAST_WORDS)


def _has_claim(grant: Grant) -> bool:
    try:
        record = grant.read()
    except errors.RemoteError:
        return True
    return record is not None and record.holder is not None


def monitor(request: Request) -> Code:
    """Whether the master daemon runs here, may, and renews its lease."""
    record = Grant(request.where).read()
    if not _is_running(request.where):
        return Code.NOT_RUNNING
    if record is not None and record.holder is not None:
        return Code.SUCCESS
    if not _is_chosen(request.where):
        return Code.NOT_RUNNING if record is None else Code.SUCCESS
    what = "that Pacemaker has not started" if record is None else "without a lease"
    raise Refusal(Code.GENERIC, f"a master daemon runs here {what}")


def validate(request: Request) -> None:
    """Refuse a node that cannot become the master, and a Pacemaker that could make two of them."""
    if not request.where.config_file.exists():
        raise Refusal(
            Code.INSTALLED,
            f"{request.where.config_file} is missing: this node is not a master candidate",
        )
    _check_candidate(read_config(request.where))
    try:
        rules = pacemaker.read_rules(request.end.left)
    except errors.RemoteError as err:
        raise Refusal(Code.INSTALLED, errors.text(err)) from err
    if not rules.fences:
        raise Refusal(Code.CONFIGURED, pacemaker.NO_FENCING)


def _check_candidate(config: Config) -> None:
    name = paths.hostname()
    node = next((each for each in config.candidates() if each.name == name), None)
    if node is None:
        raise Refusal(Code.INSTALLED, f"{name} is not a master candidate")
    if candidates.is_witness(config, node):
        text = f"{name} is a witness, which does not become the master by itself"
        raise Refusal(Code.INSTALLED, text)


def _is_running(where: Paths) -> bool:
    return services.is_running(constants.MASTERD, where)


def _is_chosen(where: Paths) -> bool:
    """Whether Pacemaker decides about the master, as far as this node knows."""
    if not where.config_file.exists():
        return False
    try:
        return read_config(where).cluster.master_vote is MasterVote.PACEMAKER
    except (errors.GanetiError, OSError):
        return True


AGENT = Agent(
    name=pacemaker.AGENT,
    title="Role of the master of Ganeti",
    about=(
        "Makes one node at a time the master of a Ganeti cluster: starts and stops its master"
        " daemon (ganeti-masterd). Only master candidates can have it, and only with the newest"
        " data. It needs STONITH, and gnt-cluster modify --master-vote=pacemaker."
    ),
    start=start,
    stop=stop,
    monitor=monitor,
    validate=validate,
    timeouts={"start": 300, "stop": 300, "monitor": 30, "meta-data": 10, "validate-all": 20},
    interval=10,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do one action; the exit code."""
    return ocf_agent.run(AGENT, argv)


if __name__ == "__main__":
    sys.exit(main())
