"""Jobs that LUXI clients submit: what their opcodes are, and whose jobs they become."""

from __future__ import annotations

import itertools
import os
import pwd
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from ganeti import constants, errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.config import limits
from ganeti.master.core import Core
from ganeti.model.job import Submitter
from ganeti.model.limits import Limits
from ganeti.net.unix_socket import Credentials
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode

#: Longest name of a user that a client may speak for.
_MAX_USER = 256


class Submissions:
    """The LUXI methods that submit jobs; each blocks until a majority has the jobs.

    Raises:
        RequestError: an opcode, the user or the limits cannot be read.
        OpPrereqError: the client may not do this.
        JobQueueDrainError: the queue is drained.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def submit(self, args: JsonObject, peer: Credentials) -> int:
        """One job; returns its id."""
        submitter = identify(peer, args.get("user"), _limits(args.get("limits")))
        return self._take_in([args["ops"]], submitter, key=args.get("key"))[0]

    def submit_to_drained(self, args: JsonObject, peer: Credentials) -> int:
        """One job, also while the queue is drained; returns its id."""
        return self._take_in([args["ops"]], identify(peer), ignore_drain=True)[0]

    def submit_many(self, args: JsonObject, peer: Credentials) -> list[list[object]]:
        """All jobs or none; returns ``[True, id]`` for each."""
        ids = self._take_in(args["jobs"], identify(peer))
        return [[True, job_id] for job_id in ids]

    def _take_in(self, jobs: list[Any], submitter: Submitter, **how: Any) -> list[int]:
        ops = [_opcodes(raw) for raw in jobs]
        if submitter.limits is not None:
            for op in itertools.chain.from_iterable(ops):
                limits.check(self._core.store.current, submitter.limits, op)
        notes = [_notes(*pair) for pair in zip(jobs, ops, strict=True)]
        return self._core.queue.submit(ops, submitter, notes=notes, **how)


def _opcodes(raw: Sequence[object]) -> list[OpCode]:
    """Opcodes of a job; RequestError (plain text, connection closed) for what is none."""
    try:
        return [wire.from_wire(item) for item in raw]
    except (errors.OpPrereqError, errors.OpCodeUnknown) as err:
        raise errors.RequestError(errors.text(err)) from err


def _notes(raw: list[Any], ops: list[OpCode]) -> list[str]:
    """Lines for the log of a job about parameters that were left out."""
    return [
        f"WARNING: {op.op_id} has no parameter '{name:.60}'; it is null and was ignored"
        for item, op in zip(raw, ops, strict=True)
        for name in wire.find_unknown_nulls(type(op), item)
    ]


@lru_cache(maxsize=256)
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def identify(peer: Credentials, user: str | None = None, limits: Limits | None = None) -> Submitter:
    """The submitter; only root, our own user and the remote API may name another user."""
    name = _user_name(peer.uid)
    if user is None:
        return Submitter(uid=peer.uid, pid=peer.pid, name=name, limits=limits)
    if not 0 < len(user) <= _MAX_USER or not user.isprintable():
        raise errors.RequestError(f"the user of a job must be a short text, not {user!r:.60}")
    if peer.uid not in (0, os.getuid()) and name != constants.RAPI_USER:
        raise errors.make_invalid_error(
            f"user {name or peer.uid} may not hand in jobs for '{user}'; only root and"
            f" {constants.RAPI_USER} may",
        )
    return Submitter(uid=peer.uid, pid=peer.pid, name=name, user=user, limits=limits)


def _limits(value: object) -> Limits | None:
    try:
        return None if value is None else typed.convert(value, Limits)
    except msgspec.ValidationError as err:
        raise errors.RequestError(f"the limits of a job cannot be read: {err}") from err
