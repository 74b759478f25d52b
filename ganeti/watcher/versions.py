"""Each node gets to the version of its cluster: after a killed upgrade, and when it was away.

A node goes up to the version that the master has told of, and never down: while an upgrade is going
on, nodes are newer than their master.
"""

from __future__ import annotations

import logging
import os
import sys
from enum import Enum

from ganeti import errors, paths
from ganeti.base import files, process, releases, upgrade_intent
from ganeti.base.releases import Version
from ganeti.base.upgrade_intent import Intent
from ganeti.luxi.absence import is_master_here
from ganeti.upkeep.round import Here

_LOG = logging.getLogger(__name__)
#: Seconds for this node, and for all nodes.
_NODE = 300.0
_CLUSTER = 4 * 3600.0


class Action(Enum):
    """An action of the watcher about versions."""

    NOTHING = "nothing"
    #: go on with an upgrade whose process is gone
    RESUME = "resume"
    #: bring this node to the version of the cluster
    FOLLOW = "follow"
    #: tell that it must be installed first
    COMPLAIN = "complain"


def decide(
    *,
    master: bool,
    intent: Intent | None,
    cluster: Version | None,
    active: Version | None,
    installed: bool,
) -> Action:
    """The action that is due on this node. Pure.

    ``intent`` is of an unfinished upgrade, None while somebody is at work on it; one that gave up
    with a message (pid 0) waits for the administrator. ``cluster`` is the version that the master
    has told of.
    """
    if master:
        return Action.RESUME if intent is not None and intent.pid else Action.NOTHING
    if cluster is None or active is None or active >= cluster:
        return Action.NOTHING
    return Action.FOLLOW if installed else Action.COMPLAIN


def run(here: Here) -> None:
    """Do it; blocks until daemons have been started again.

    Raises:
        OpExecError: it did not work, or the version is not installed.
        ConfigurationError: the note of an upgrade is damaged.
    """
    intent = upgrade_intent.read(here.paths)
    cluster = _read_cluster(here.paths)
    action = decide(
        master=is_master_here(here.paths),
        intent=None if intent is not None and intent.is_at_work else intent,
        cluster=cluster,
        active=releases.find_active(here.paths),
        installed=cluster in releases.list_installed(here.paths),
    )
    if action is Action.RESUME:
        _LOG.warning("An upgrade did not come to its end; going on with it")
        _perform("ganeti.cli", ["gnt-cluster", "upgrade", "--resume"], _CLUSTER)
    elif action is Action.FOLLOW:
        _LOG.warning("The cluster is of version %s; this node follows", cluster)
        _perform("ganeti.bootstrap.daemon_util", ["switch-version", str(cluster)], _NODE)
    elif action is Action.COMPLAIN:
        raise errors.OpExecError(
            f"the cluster is of version {cluster}, which is not installed on this node: install it,"
            " and the next run of the watcher switches to it"
        )


def _read_cluster(where: paths.Paths) -> Version | None:
    try:
        return releases.read_release(files.read_text(where.ssconf("release_version")).strip())
    except (OSError, errors.ParameterError):
        return None


def _perform(module: str, words: list[str], timeout: float) -> None:
    argv = [*releases.isolate(sys.executable, module), *words]
    result = process.run(argv, timeout=timeout, env=dict(os.environ))
    if not result.ok:
        raise errors.OpExecError((result.stderr or result.stdout).strip() or result.explain())
    for line in result.stdout.splitlines():
        _LOG.info("%s", line)
