"""One run of what looks after instances, as its tasks see it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ganeti import constants, errors
from ganeti.base import files
from ganeti.base.clock import Clock
from ganeti.luxi.client import Client, Submission
from ganeti.model.start_order import PARALLEL
from ganeti.paths import Paths
from ganeti.upkeep import view


@dataclass(frozen=True)
class Options:
    """Options of the watcher, from its command line and ``WATCHER_ARGS``."""

    #: seconds after its end when a job is archived
    job_age: int = 6 * 3600
    #: UUID or name of the only node group to look after; None for all
    group: str | None = None
    verify_disks: bool = True
    #: whether a node that does not answer is an error of the disk verification
    strict: bool = True
    #: where the remote API is asked whether it answers; None: where it listens
    rapi_address: str | None = None
    #: instances that are started at a time on one node
    parallel: int = PARALLEL
    #: act in spite of ``gnt-cluster watcher pause``
    ignore_pause: bool = False


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that also hold when the node daemon starts instances."""
    parser.add_argument("--ignore-pause", action="store_true", help="act in spite of a pause")
    parser.add_argument(
        "--start-parallel",
        type=_parse_positive,
        default=PARALLEL,
        metavar="N",
        help="number of instances that start at the same time on a node (default: %(default)s)",
    )


def _parse_positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def read_options(words: Sequence[str]) -> Options:
    """Those of :func:`add_options` among the words of ``WATCHER_ARGS``.

    Raises:
        ConfigurationError: a value is invalid.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_options(parser)
    try:
        given = parser.parse_known_args(words)[0]
    except argparse.ArgumentError as err:
        raise errors.ConfigurationError(f"WATCHER_ARGS: {err}") from err
    return Options(parallel=given.start_parallel, ignore_pause=given.ignore_pause)


@dataclass(frozen=True)
class Here:
    """This node, for the tasks that each node does."""

    paths: Paths
    clock: Clock
    options: Options


@dataclass(frozen=True)
class Round:
    """The way to the master, the time, and what the command line said."""

    client: Client
    clock: Clock
    paths: Paths
    options: Options

    @cached_property
    def groups(self) -> Sequence[view.Group]:
        """The node groups to look after, with live data of all nodes; asked for once.

        Raises:
            GanetiError: the master does not answer, or there is no such group.
        """
        found = view.load(self.client)
        wanted = self.options.group
        if wanted is None:
            return found
        chosen = [group for group in found if wanted in (group.uuid, group.name)]
        if not chosen:
            raise errors.OpPrereqError(f"node group {wanted!r} is not known", "unknown_entity")
        return chosen

    def read_pause(self) -> float | None:
        """Until when (Unix time) nothing is to be done; None when this run may act."""
        return None if self.options.ignore_pause else read_pause(self.paths, self.clock)

    def reason(self, *texts: str) -> list[list[Any]]:
        """Reason trail of an opcode; a limit of jobs is one more text."""
        return [[constants.WATCHER_SOURCE, text, int(self.clock.now() * 1e9)] for text in texts]

    def submit(self, ops: Sequence[Mapping[str, object]]) -> list[Submission]:
        """A job for each opcode; nobody waits for them."""
        return self.client.submit_many_jobs([[op] for op in ops]) if ops else []


def read_pause(paths: Paths, clock: Clock) -> float | None:
    """Until when (Unix time) ``gnt-cluster watcher pause`` holds; None when it does not."""
    try:
        until = float(files.read_text(paths.watcher_pause).strip())
    except (FileNotFoundError, ValueError):
        return None
    return until if until > clock.now() else None
