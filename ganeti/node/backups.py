"""Node calls about backups: disks of instances to repositories, and back.

A repository is a directory that is mounted on the nodes, or is kept by restic or borg. Of a guest
that runs in QEMU the disks are read as they were at one moment. The disks of an instance that does
not run are read as they are.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.backup import copying, plan, served, sign
from ganeti.backup.pace import Pace
from ganeti.backup.repository import Content, Repository, Tell
from ganeti.backup.sums import Sums
from ganeti.model.backup import (
    BOOT,
    CHECKSUM,
    BackedUpDisk,
    Manifest,
    Mode,
    Proof,
    choose_id,
)
from ganeti.node.backup_desk import READ, Desk
from ganeti.node.backup_sources import Frozen, Source, Sources
from ganeti.node.context import NodeContext
from ganeti.node.copy_guests import CopyGuests, describe_copy
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.rpc.backups import BackupPlace, BackupRequest, BackupResult, BootTest
from ganeti.rpc.calls.backups import BackupCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance

log = logging.getLogger(__name__)


@dataclass
class _Making:
    """One backup that is being made."""

    repository: Repository
    request: BackupRequest
    work: Path
    tell: Tell
    base: Manifest | None
    id: str
    notes: list[str] = field(default_factory=list)


class Backups(BackupCalls):
    """Backups that this node makes and reads."""

    def __init__(
        self, context: NodeContext, disks: Disks, copies: Copies, desk: Desk, guests: CopyGuests
    ) -> None:
        self._context = context
        self._disks = disks
        self._copies = copies
        self._desk = desk
        self._guests = guests
        self._sources = Sources(context, disks)
        self._sources.end_interrupted()
        self._end_left()

    # making

    def backup_run(self, instance: NodeInstance, request: BackupRequest) -> str:
        """Begin to back up an instance; ParameterError for a directory that is not allowed."""
        found = self._desk.find_repository(request.place.repository, request.place.instance)
        return self._copies.begin(lambda progress: self._run(instance, request, found, progress))

    def backup_result(self, copy: str) -> BackupResult:
        """The backup that a copy has made, once; GenericError when it is lost."""
        found = self._copies.take_result(copy)
        if not isinstance(found, BackupResult):
            raise errors.GenericError("the node daemon was restarted while it made the backup")
        return found

    def backup_cancel(self, instance: str) -> None:
        """End what copies for an instance."""
        self._desk.end(instance)

    def _run(
        self,
        instance: NodeInstance,
        request: BackupRequest,
        found: Repository,
        progress: Progress,
    ) -> BackupResult:
        name = instance.name
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._desk.take_turn(name, progress))
            work = stack.enter_context(self._desk.make_work(name))
            pace = Pace(request.bandwidth, self._context.clock, self._context.stopping.wait)
            tell = self._desk.make_teller(name, progress, pace, work)
            found.watch(lambda: tell(0, 0))
            stack.enter_context(found.lock())
            newest = found.newest()
            base = None if request.full else newest
            if base is None and request.last_id is not None and not request.full:
                self._refuse_lost(found, request.last_id)
            # the master does not know of a backup that ended after its predecessor had
            backup = choose_id(request.place.id, None if newest is None else newest.id)
            making = _Making(found, request, work, tell, base, backup)
            if base is not None and base.problem:
                making.base = None
                making.notes.append(_explain_full(base.id, "disks", base.problem))
            since = making.base.id if making.base is not None else None
            with self._sources.freeze(instance, work, since, making.id, request.copies) as frozen:
                result = self._copy(instance, making, frozen, progress)
        log.info("made backup %s of instance %s (%s)", making.id, name, result.manifest.mode)
        return result

    @staticmethod
    def _refuse_lost(found: Repository, last: str) -> None:
        raise errors.GenericError(
            f"{found.label} has no backup of {found.instance}, but backup {last} was made before:"
            " check that the right file system is mounted there; --full starts with a full backup"
        )

    def _copy(
        self,
        instance: NodeInstance,
        making: _Making,
        frozen: Frozen,
        progress: Progress,
    ) -> BackupResult:
        """Copy all disks, one after the other, and make it a backup."""
        begun = self._context.clock.now()
        disks: list[BackedUpDisk] = []
        tables: list[Sums] = []
        modes: list[Mode] = []
        try:
            for index, source in enumerate(frozen.disks):
                disk, table, mode = self._copy_disk(making, index, source, progress)
                disks.append(disk)
                tables.append(table)
                modes.append(mode)
            manifest = Manifest(
                id=making.id,
                instance=instance.name,
                instance_uuid=instance.uuid,
                time=begun,
                mode=_choose_worst(modes),
                consistency=frozen.consistency or making.request.at_rest,
                base=making.base.id if making.base is not None else None,
                disks=tuple(disks),
                settings=making.request.settings,
            )
            making.repository.finish(manifest, tables)
        except BaseException:  # an interrupt too: remove the unfinished backup and raise it
            making.repository.discard(making.id)
            raise
        return BackupResult(
            manifest=msgspec.structs.replace(manifest, settings=""), notes=tuple(making.notes)
        )

    def _copy_disk(
        self, making: _Making, index: int, source: Source, progress: Progress
    ) -> tuple[BackedUpDisk, Sums, Mode]:
        known = self._find_base(making, source)
        base, old = known if known is not None else (None, Sums(source.size))
        mode = plan.choose_mode(has_parent=known is not None, has_bitmaps=source.bitmap is not None)
        new = old.resize(source.size)
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(self._sources.open(source, making.work, mode))
            target = stack.enter_context(
                making.repository.open_disk(making.id, index, source.size, base, making.work)
            )
            dirty = reader.dirty(source.bitmap or "") if mode is Mode.DIRTY else None
            ranges = list(plan.find_ranges(reader.holes(), dirty, source.size, old.size))
            progress.size += sum(each.length for each in ranges)
            counts = copying.copy_changes(reader, ranges, target, old, new, making.tell)
        backed_up = BackedUpDisk(
            uuid=source.disk.uuid,
            size=source.size,
            fingerprint=new.fingerprint,
            read=counts.read,
            stored=counts.stored,
            chain=making.repository.find_chain(*base) if base is not None else (),
        )
        return backed_up, new, mode

    @staticmethod
    def _find_base(making: _Making, source: Source) -> tuple[tuple[Manifest, int], Sums] | None:
        """The disk in the last backup, and its checksums."""
        base = making.base
        if base is None:
            return None
        uuids = [disk.uuid for disk in base.disks]
        if source.disk.uuid not in uuids:
            return None
        index = uuids.index(source.disk.uuid)
        try:
            old = making.repository.find_base(base, index)
        except errors.GenericError as err:
            what = f"disk {source.disk.uuid}"
            making.notes.append(_explain_full(base.id, what, errors.text(err)))
            return None
        if old is None or old.size > source.size:
            return None
        return (base, index), old

    # reading

    def backup_list(self, repository: str, instance: str | None) -> list[Manifest]:
        """Backups in a repository, the oldest of an instance first; GenericError."""
        return [
            msgspec.structs.replace(manifest, settings="")
            for manifest in self._desk.list_backups(repository, instance)
        ]

    def backup_find(self, place: BackupPlace) -> Manifest:
        """One backup with its settings; OpPrereqError when there is none."""
        return self._desk.find_repository(place.repository, place.instance).find(place.id)

    def backup_restore(self, place: BackupPlace, disks: list[tuple[int, NodeDisk]]) -> str:
        """Begin to write a backup to active disks; BlockDeviceError when one is not here."""
        found = self._desk.find_repository(place.repository, place.instance)
        targets = []
        for index, disk in disks:
            device = self._disks.find_existing(disk)
            targets.append((index, device.uri() or device.path))
        return self._copies.begin(lambda progress: self._restore(found, place, targets, progress))

    def _restore(
        self,
        found: Repository,
        place: BackupPlace,
        targets: Sequence[tuple[int, str]],
        progress: Progress,
    ) -> None:
        with self._desk.read(found, place, progress) as (manifest, work, tell):
            progress.size = sum(manifest.disks[index].size for index, _target in targets)
            for index, target in targets:
                with served.serve(target, "raw", work, write=True) as writer:
                    if writer.size < manifest.disks[index].size:
                        raise errors.BlockDeviceError(
                            f"disk {index} has {writer.size} bytes, and its backup"
                            f" {manifest.disks[index].size}; grow the disk first"
                        )
                    found.restore_disk(manifest, index, writer, work, tell)
        log.info("restored backup %s of %s", place.id, place.instance)

    def backup_verify(self, place: BackupPlace) -> str:
        """Begin to compare a backup with its checksums."""
        found = self._desk.find_repository(place.repository, place.instance)
        return self._copies.begin(lambda progress: self._verify(found, place, progress))

    def _verify(self, found: Repository, place: BackupPlace, progress: Progress) -> None:
        with self._desk.read(found, place, progress) as (manifest, work, tell):
            progress.size = manifest.size
            with self._noting_damage(found, manifest, tell):
                for index in range(len(manifest.disks)):
                    found.restore_disk(manifest, index, None, work, tell)
            self._note(found, manifest, CHECKSUM)

    @contextlib.contextmanager
    def _noting_damage(self, found: Repository, manifest: Manifest, tell: Tell) -> Iterator[None]:
        """Record that a backup is bad when it is, and raise what says so."""
        try:
            yield
        except errors.GenericError as err:
            # only of a backup that could be read to its end something is known
            tell(0, 0)
            found.find(manifest.id)
            self._note(found, manifest, CHECKSUM, errors.text(err))
            raise

    def _note(
        self, found: Repository, manifest: Manifest, how: str, problem: str = "", text: str = ""
    ) -> None:
        now = self._context.clock.now()
        booted = None if manifest.proof is None else manifest.proof.booted
        if how == BOOT and not problem:
            booted = now
        proof = Proof(time=now, how=how, good=not problem, text=problem or text, booted=booted)
        found.note(msgspec.structs.replace(manifest, proof=proof))

    def backup_boot(self, place: BackupPlace, instance: NodeInstance, test: BootTest) -> str:
        """Begin to compare a backup with its checksums and to start a copy."""
        found = self._desk.find_repository(place.repository, place.instance)
        return self._copies.begin(
            lambda progress: self._boot(found, place, instance, test, progress)
        )

    def _boot(
        self,
        found: Repository,
        place: BackupPlace,
        instance: NodeInstance,
        test: BootTest,
        progress: Progress,
    ) -> None:
        with self._desk.read(found, place, progress, writes=True) as (manifest, work, tell):
            progress.size = manifest.size
            disks: list[tuple[NodeDisk, Content]] = []
            with self._noting_damage(found, manifest, tell):
                for index, disk in enumerate(manifest.disks):
                    content = found.place_disk(manifest, index, work, tell)
                    disks.append((describe_copy(disk, content, index), content))
            outcome = self._guests.run(
                instance, disks, work, sign.parse(test.sign), test.timeout, lambda: tell(0, 0)
            )
            if not outcome.good:
                # what the guest printed is in the error only
                self._note(found, manifest, BOOT, outcome.text.partition(":\n")[0])
                raise errors.GenericError(outcome.text)
            self._note(found, manifest, BOOT, text=outcome.text)
        log.info("a copy of backup %s of %s has booted", place.id, place.instance)

    def _end_left(self) -> None:
        """Remove what an earlier node daemon has read or started."""
        for work in self._context.paths.backup_work.glob(f"*{READ}"):
            try:
                self._guests.end_left(work)
                served.end_left(work)
            except (errors.GanetiError, OSError) as err:
                log.warning("what is left in %s is not removed: %s", work, err)
                continue
            shutil.rmtree(work, ignore_errors=True)

    # removing

    def backup_remove(self, repository: str, instance: str, backups: list[str]) -> str:
        """Begin to remove backups of an instance."""
        found = self._desk.find_repository(repository, instance)

        def work(progress: Progress) -> None:
            with self._desk.take_turn(instance, progress, "removal of backups"):
                tell = self._desk.watch(found, instance, progress)
                with found.lock():
                    found.remove(backups, tell)
            log.info("removed backups %s of %s", ", ".join(backups), instance)

        return self._copies.begin(work)


def _explain_full(base: str, what: str, why: str) -> str:
    """The text for the user when the new backup cannot be built on the last one."""
    return f"backup {base} cannot be built on, so all of the {what} was stored: {why}"


def _choose_worst(modes: Sequence[Mode]) -> Mode:
    """The mode of a backup: of the modes of its disks, the one that reads most."""
    return next(
        (mode for mode in (Mode.FULL, Mode.COMPARE, Mode.DIRTY) if mode in modes), Mode.FULL
    )
