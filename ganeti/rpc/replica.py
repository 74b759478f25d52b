"""Messages of master and nodes about the master role and the copies of its state."""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti.base.json_types import JsonObject


class MasterView(msgspec.Struct, kw_only=True):
    """Knowledge of a node about the master role; the vote at the start of a master asks for it."""

    #: node that it follows
    master: str
    #: highest term it has seen
    epoch: int
    #: how new its copy of the state is (see ``base/position.py``); (0, 0): not known
    position: tuple[int, int] = (0, 0)
    #: a master on this node made the copy, and the server was booted since, so that the copy may
    #: be newer than ``position``
    may_be_newer: bool = False
    #: last change in its copy of the configuration; None: it has no copy
    config_serial: int | None = None
    #: highest job id in its copy of the queue
    last_job: int = 0
    #: seconds since it heard from the master that it follows, or since its node daemon started;
    #: None: it does not say (another version)
    silence: float | None = None
    #: the master daemon of this node was stopped by an administrator
    stopped: bool = False
    #: Pacemaker lets this node have the role of the master, and its master daemon runs
    acts: bool = False


class ReplicaUpdate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A part of the master's state for a master candidate.

    A checkpoint, when there is one, replaces the configuration (its serial is ``base``) before
    ``records`` (journal lines, the first one follows ``base``, the last one makes ``serial``).
    """

    epoch: int
    #: the copy has every write of the term up to this one when the call is done; 0: not said
    sequence: int = 0
    base: int = 0
    serial: int = 0
    #: ``config.data`` as :func:`~ganeti.rpc.wire.encode_content` makes it
    checkpoint: list[Any] | None = None
    records: list[str] = []
    #: queue file -> content
    files: dict[str, str] = {}
    #: queue file -> what changes of it after that (see ``base/file_parts.py``)
    parts: dict[str, dict[str, JsonObject]] = {}
    #: job files to move to the archive
    archive: list[str] = []
    #: job files to forget: the job was never acknowledged
    remove: list[str] = []
    #: ids of all live jobs; files of others are leftovers
    keep: list[int] | None = None
    #: new state of the drain flag
    drained: bool | None = None
    #: seconds of silence until the candidate may take the place of the master; 0: it may not
    failover_after: int = 0
