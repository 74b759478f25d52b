"""Why nobody serves LUXI on this node."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from ganeti import constants, errors, paths


class _Unreachable(errors.NoMasterError):
    """Nobody serves LUXI here; goes over wires as its parent."""

    @property
    def wire_name(self) -> str:
        return errors.NoMasterError.__name__


class NotClusterError(_Unreachable):
    """This machine belongs to no cluster."""

    exit_code: ClassVar[int] = constants.EXIT_NOTCLUSTER


class NotMasterError(_Unreachable):
    """Another node is the master."""

    exit_code: ClassVar[int] = constants.EXIT_NOTMASTER


class MasterDownError(_Unreachable):
    """This node is the master, but its daemon does not run."""

    exit_code: ClassVar[int] = constants.EXIT_FAILURE


def master_name(where: paths.Paths) -> str | None:
    """Name of the master as this node knows it; None when it is in no cluster."""
    with contextlib.suppress(OSError):
        return where.ssconf("master_node").read_text(encoding="utf-8").strip() or None
    return None


def is_master_here(where: paths.Paths) -> bool:
    """Whether this node knows itself as the master."""
    return master_name(where) == paths.hostname()


def explain_absence(socket_path: Path, where: paths.Paths) -> errors.NoMasterError:
    """Why nobody listens on the socket, and what to do, as an error with its exit code.

    Reads what this node has on disk about its cluster; asks nobody.
    """
    master = master_name(where)
    if master is None:
        return NotClusterError(
            "This machine belongs to no cluster: run 'gnt-cluster init' to make one here,"
            " or 'gnt-node add' on the master node of an existing one"
        )
    if master != paths.hostname():
        return NotMasterError(
            f"This node is not the master: log in to '{master}' and run the command there"
        )
    return MasterDownError(
        f"The master daemon is not running on this node (nothing listens on {socket_path}):"
        f" start it with 'ganeti-daemon-util start-master'; if it ends again, see"
        f" {where.log / 'master-daemon.log'}"
    )
