"""The store: readers take the current snapshot without a lock, one writer makes the next one.

``config.data`` is the checkpoint in the documented form, the journal holds what came after it.
A change costs what it touches, not what the cluster holds. It counts when it is on the local disk
and on enough of the copies; both happen in one round for all changes that wait. What a checkpoint
takes out of the journal goes to the history (see ``history``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from ganeti import constants, errors
from ganeti.base import files, journal, jsonio, sealed_file
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.copies import Copies, NoCopies
from ganeti.base.group_commit import GroupCommit
from ganeti.base.json_types import JsonObject
from ganeti.config import changes, hand_edits, quota
from ganeti.config.changes import Author, Draft
from ganeti.config.history import History
from ganeti.model import base
from ganeti.model.config import Config, ConfigData
from ganeti.paths import Paths

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

#: Bytes of journal after which a checkpoint is written in the background.
CHECKPOINT_AFTER = 4 * 1024 * 1024


def read_config(paths: Paths, *, edited: bool = False) -> Config:
    """The configuration of this node, journal included; changes nothing.

    A checkpoint that somebody edited is refused, unless ``edited`` says that it is to be read.

    Raises:
        ConfigurationError: no configuration, not ours, damaged, edited; the text says where.
        ConfigVersionMismatch: written by another version.
    """
    config = _read_checkpoint(paths, edited=edited)
    for record in journal.read(paths.journal_file):
        serial = record.get("serial", 0)
        if serial <= config.data.serial_no:
            continue
        if serial != config.data.serial_no + 1:
            raise errors.ConfigurationError(
                f"{paths.journal_file} continues with serial {serial}, but {paths.config_file} has"
                f" {config.data.serial_no}: one of them is not of this cluster's last state"
            )
        config = changes.replay(config, record, mtime=record["time"])
    return config


def _read_checkpoint(paths: Paths, *, edited: bool) -> Config:
    path = paths.config_file
    try:
        data = path.read_bytes()
        raw = jsonio.loads(data)
    except FileNotFoundError as err:
        raise errors.ConfigurationError(
            f"no configuration at {path}: this node is not a master candidate of any cluster"
        ) from err
    except errors.ParseError as err:
        raise errors.ConfigurationError(f"{path} is damaged: {errors.text(err)}") from err
    if not isinstance(raw, dict) or not isinstance(raw.get("version"), int):
        raise errors.ConfigurationError(f"{path} is not a cluster configuration")
    if raw["version"] != constants.CONFIG_VERSION:
        raise errors.ConfigVersionMismatch(constants.CONFIG_VERSION, raw["version"])
    try:
        if not edited:
            hand_edits.check(paths, data)
    except errors.ParseError as err:
        raise errors.ConfigurationError(f"{path} is damaged: {errors.text(err)}") from err
    except errors.ConfigurationError:
        if path.read_bytes() == data:
            raise
        # A daemon has replaced it, so the digests are those of its new content.
        return _read_checkpoint(paths, edited=edited)
    return Config(base.from_wire(ConfigData, raw, str(path)))


def write_checkpoint(config: Config, paths: Paths) -> None:
    """Write ``config.data``; blocks for two disk flushes."""
    sealed_file.write(paths.config_file, jsonio.dumps(base.to_wire(config.data)), mode=0o640)


class Store:
    """The configuration of the running master. Thread-safe."""

    def __init__(self, paths: Paths, clock: Clock = SYSTEM, copies: Copies | None = None) -> None:
        self._paths = paths
        self._copies: Copies = copies or NoCopies()
        self._clock = clock
        self._mutex = threading.Lock()
        #: held while journal and current state change together
        self._writing = threading.Lock()
        #: held by whoever makes a checkpoint
        self._checkpoint_lock = threading.Lock()
        #: all changes that this node knows of
        self.history = History(paths)
        self._journal = journal.Journal(paths.journal_file)
        self._commit: GroupCommit[tuple[journal.Record, Config]] = GroupCommit(self._flush)
        #: how long it takes to flush the journal
        self.flush_times = self._commit.times
        self._listeners: list[Callable[[Config, Config], None]] = []
        self._checkpointing: threading.Thread | None = None
        files.sweep(paths.data, (paths.journal_file.name,))
        sealed_file.sweep(paths.config_file)
        self._current = read_config(paths)
        sealed_file.begin(paths.config_file)
        self._head = self._current
        self._journal.open()

    @property
    def current(self) -> Config:
        """The last durable state; take it once per request and read from that."""
        return self._current

    def add_listener(self, listener: Callable[[Config, Config], None]) -> None:
        """``listener(before, after)`` is called after each round of changes; must not block."""
        self._listeners.append(listener)

    def change(self, name: str, author: Author, edit: Callable[[Draft], T]) -> T:
        """Make a named change; returns what ``edit`` returned once the change is durable.

        ``edit`` runs alone (no other change meanwhile) on the newest state, must be quick and
        must not touch anything but the draft. If it raises, nothing is changed.

        Raises:
            FileError: the change cannot be written; nothing is changed.
            QuorumError: too few copies have it; nothing is changed.
            OpPrereqError: it goes beyond the quota of the author; nothing is changed.
        """
        with self._mutex:
            draft = Draft(self._head, self._clock.now())
            result = edit(draft)
            if draft.empty:
                return result
            config = draft.result()
            if author.limits is not None:
                quota.check_change(author.limits, self._head, config)
            record = self._record(name, author, draft, config)
            ticket = self._commit.add((record, config))
            self._head = config
        self._commit.wait(ticket)
        if self._journal.size > CHECKPOINT_AFTER:
            self._checkpoint_later()
        return result

    @staticmethod
    def _record(name: str, author: Author, draft: Draft, config: Config) -> journal.Record:
        record: JsonObject = {
            "serial": config.data.serial_no,
            "time": draft.now,
            "name": name,
        }
        for key in ("job", "user", "reason"):
            value = getattr(author, key)
            if value:
                record[key] = value
        record.update(draft.wire())
        return record

    def _flush(self, batch: list[tuple[journal.Record, Config]]) -> None:
        """Make a group of changes durable and visible; called by one thread at a time."""
        with self._writing:
            try:
                if batch[0][1].data.serial_no != self._current.data.serial_no + 1:
                    raise errors.ConfigurationError("the change was not made: one before it failed")
                self._write(batch)
            except errors.GanetiError:
                with self._mutex:
                    # changes that were built on the lost ones come later and fail by their serial
                    self._head = self._current
                raise
            before, self._current = self._current, batch[-1][1]
        for listener in self._listeners:
            try:
                listener(before, self._current)
            except Exception:  # noqa: BLE001 - the change is made, whatever a listener thinks
                _LOG.exception("a change of the configuration was not followed up")

    def _write(self, batch: list[tuple[journal.Record, Config]]) -> None:
        """To disk, then to the copies; all of it or nothing.

        The order matters: a copy that was newer after a crash would keep this node from being
        the master again.
        """
        lines = b"".join(journal.encode(record) for record, _config in batch)
        size = self._journal.size
        try:
            self._journal.append_lines(lines)
            self._copies.change(
                self._current.data.serial_no, batch[-1][1].data.serial_no, lines
            ).wait()
        except errors.GanetiError:
            self._journal.cut(size)
            self._copies.take_back()
            raise

    # checkpoints -------------------------------------------------------------------------

    def _checkpoint_later(self) -> None:
        with self._mutex:
            if self._checkpointing is not None and self._checkpointing.is_alive():
                return
            self._checkpointing = threading.Thread(
                target=self._checkpoint_in_background, name="checkpoint", daemon=True
            )
            self._checkpointing.start()

    def _checkpoint_in_background(self) -> None:
        try:
            self.checkpoint()
        except OSError as err:
            _LOG.error("no checkpoint, the journal has everything: %s", files.failure(err))

    def checkpoint(self) -> None:
        """Write ``config.data``, keep what led to it as history, and shorten the journal.

        Changes go on meanwhile; those that are not in the checkpoint stay in the journal. A crash
        between the steps leaves some changes in two places, and none in no place.

        Raises:
            OSError: the disk is full, for example; the journal still has everything.
        """
        with self._checkpoint_lock:
            with self._writing:
                config, size = self._current, self._journal.size
            write_checkpoint(config, self._paths)
            if size:
                self.history.keep(self._journal.begin(size))
                with self._writing:
                    self._journal.drop(size)
        self._copies.checkpoint()

    def close(self) -> None:
        """Write a last checkpoint and close the journal."""
        if self._checkpointing is not None:
            self._checkpointing.join()
        try:
            self.checkpoint()
        except OSError as err:
            reason = files.failure(err)
            _LOG.error("no checkpoint at the end, the journal has everything: %s", reason)
        self._journal.close()
