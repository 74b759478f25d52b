"""Node calls about backups: disks of instances to repositories, and back.

A repository is a directory that is mounted on the nodes. Of a guest that runs in QEMU the disks are
read as they were at one moment. The disks of an instance that does not run are read as they are.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.backup import copying, directory, plan, served
from ganeti.backup.directory import Directory
from ganeti.backup.pace import Pace
from ganeti.backup.sums import Sums
from ganeti.base import files
from ganeti.model.backup import BackedUpDisk, Manifest, Mode, Proof, check_id
from ganeti.net import nbd
from ganeti.node.backup_desk import Desk
from ganeti.node.backup_sources import Frozen, Source, Sources
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.rpc.calls.backups import BackupCalls
from ganeti.rpc.objects import BackupPlace, BackupRequest, BackupResult, NodeDisk, NodeInstance

log = logging.getLogger(__name__)


@dataclass
class _Making:
    """One backup that is being made."""

    directory: Directory
    request: BackupRequest
    work: Path
    tell: copying.Tell
    base: Manifest | None
    notes: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.request.place.id


class Backups(BackupCalls):
    """Backups that this node makes and reads."""

    def __init__(self, context: NodeContext, disks: Disks, copies: Copies) -> None:
        self._context = context
        self._disks = disks
        self._copies = copies
        self._sources = Sources(context, disks)
        self._desk = Desk(context)
        self._results: dict[str, BackupResult] = {}
        self._sources.end_interrupted()

    # making

    def backup_run(self, instance: NodeInstance, request: BackupRequest) -> str:
        """Begin to back up an instance; ParameterError for a directory that is not allowed."""
        found = self._desk.find_directory(request.place.repository, request.place.instance)
        names: list[str] = []

        def work(progress: Progress) -> None:
            begun.wait()
            self._results[names[0]] = self._run(instance, request, found, progress)

        begun = threading.Event()
        names.append(self._copies.begin(work))
        begun.set()
        return names[0]

    def backup_result(self, copy: str) -> BackupResult:
        """The backup that a copy has made, once; GenericError when it is lost."""
        found = self._results.pop(copy, None)
        if found is None:
            raise errors.GenericError("the node daemon was restarted while it made the backup")
        return found

    def backup_cancel(self, instance: str) -> None:
        """End what copies for an instance."""
        self._desk.end(instance)

    def _run(
        self,
        instance: NodeInstance,
        request: BackupRequest,
        found: Directory,
        progress: Progress,
    ) -> BackupResult:
        name = instance.name
        with self._desk.take_turn(name, progress), self._desk.make_work(name) as work, found.lock():
            pace = Pace(request.bandwidth, self._context.clock, self._context.stopping.wait)
            tell = self._desk.make_teller(name, progress, pace, work)
            base = None if request.full else found.newest()
            if base is None and request.last_id is not None and not request.full:
                self._refuse_lost(found, request.last_id)
            making = _Making(found, request, work, tell, base)
            if base is not None and base.damage:
                making.base = None
                making.notes.append(_explain_full(base.id, "disks", base.damage))
            since = making.base.id if making.base is not None else None
            with self._sources.freeze(instance, work, since, making.id) as frozen:
                result = self._copy(instance, making, frozen, progress)
        log.info("made backup %s of instance %s (%s)", making.id, name, result.manifest.mode)
        return result

    @staticmethod
    def _refuse_lost(found: Directory, last: str) -> None:
        raise errors.GenericError(
            f"{found.repository} has no backup of {found.path.name}, but backup {last} was made"
            " before: see whether the right file system is mounted there; --full begins again"
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
            making.directory.finish(manifest, tables)
        except BaseException:  # an interrupt too: nothing half made stays
            making.directory.discard(making.id)
            raise
        return BackupResult(
            manifest=msgspec.structs.replace(manifest, settings=""), notes=tuple(making.notes)
        )

    def _copy_disk(
        self, making: _Making, index: int, source: Source, progress: Progress
    ) -> tuple[BackedUpDisk, Sums, Mode]:
        known = self._find_base(making, source)
        base_index, old = known if known is not None else (None, Sums(source.size))
        mode = plan.choose_mode(has_parent=known is not None, has_bitmaps=source.bitmap is not None)
        new = old.resize(source.size)
        base_path = None
        if making.base is not None and base_index is not None:
            base_path = making.directory.disk(making.base.id, base_index)
        path = making.directory.add_disk(making.id, index, source.size, base_path)
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(self._sources.open(source, making.work, mode))
            target = stack.enter_context(served.serve(str(path), "qcow2", making.work, write=True))
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
        )
        return backed_up, new, mode

    @staticmethod
    def _find_base(making: _Making, source: Source) -> tuple[int, Sums] | None:
        """The disk in the last backup, by its number, and its checksums."""
        base = making.base
        if base is None:
            return None
        uuids = [disk.uuid for disk in base.disks]
        if source.disk.uuid not in uuids:
            return None
        index = uuids.index(source.disk.uuid)
        try:
            making.directory.check_chain(base.id, index)
            old = making.directory.read_sums(base, index)
        except errors.GenericError as err:
            what = f"disk {source.disk.uuid}"
            making.notes.append(_explain_full(base.id, what, errors.text(err)))
            return None
        return (index, old) if old.size <= source.size else None

    # reading

    def backup_list(self, repository: str, instance: str | None) -> list[Manifest]:
        """Backups in a repository, the oldest of an instance first; GenericError."""
        path = self._desk.find_repository(repository)
        names = directory.list_instances(path) if instance is None else [instance]
        return [
            msgspec.structs.replace(manifest, settings="")
            for name in names
            for manifest in Directory(path, name).list_all()
        ]

    def backup_find(self, place: BackupPlace) -> Manifest:
        """One backup with its settings; OpPrereqError when there is none."""
        return self._desk.find_directory(place.repository, place.instance).find(place.id)

    def backup_restore(self, place: BackupPlace, disks: list[tuple[int, NodeDisk]]) -> str:
        """Begin to write a backup to active disks; BlockDeviceError when one is not here."""
        found = self._desk.find_directory(place.repository, place.instance)
        targets = []
        for index, disk in disks:
            device = self._disks.find_existing(disk)
            targets.append((index, device.uri() or device.path))
        return self._copies.begin(lambda progress: self._restore(found, place, targets, progress))

    def _restore(
        self,
        found: Directory,
        place: BackupPlace,
        targets: Sequence[tuple[int, str]],
        progress: Progress,
    ) -> None:
        with self._reading(found, place, progress) as (manifest, work, tell):
            progress.size = sum(manifest.disks[index].size for index, _target in targets)
            for index, target in targets:
                sums = found.read_sums(manifest, index)
                with (
                    self._show(found, manifest, index, work) as source,
                    served.serve(target, "raw", work, write=True) as writer,
                ):
                    copying.restore(source, writer, sums, tell)
        log.info("restored backup %s of %s", place.id, place.instance)

    def backup_verify(self, place: BackupPlace) -> str:
        """Begin to compare a backup with its checksums."""
        found = self._desk.find_directory(place.repository, place.instance)
        return self._copies.begin(lambda progress: self._verify(found, place, progress))

    def _verify(self, found: Directory, place: BackupPlace, progress: Progress) -> None:
        with self._reading(found, place, progress) as (manifest, work, tell):
            progress.size = manifest.size
            problem: errors.GanetiError | None = None
            try:
                for index in range(len(manifest.disks)):
                    sums = found.read_sums(manifest, index)
                    with self._show(found, manifest, index, work) as source:
                        copying.check(source, sums, f"disk {index}", tell)
            except errors.GenericError as err:
                problem = err
            proof = Proof(
                time=self._context.clock.now(),
                how="checksum",
                good=problem is None,
                text="" if problem is None else errors.text(problem),
            )
            self._note(found, msgspec.structs.replace(manifest, proof=proof))
            if problem is not None:
                raise problem

    @staticmethod
    def _note(found: Directory, manifest: Manifest) -> None:
        try:
            found.note(manifest)
        except OSError as err:
            raise files.failure(err) from err

    @contextlib.contextmanager
    def _reading(
        self, found: Directory, place: BackupPlace, progress: Progress
    ) -> Iterator[tuple[Manifest, Path, copying.Tell]]:
        pace = Pace(0, self._context.clock, self._context.stopping.wait)
        with (
            self._desk.take_turn(place.instance, progress),
            self._desk.make_work(f"{place.instance}.read") as work,
            found.lock(shared=True),
        ):
            tell = self._desk.make_teller(place.instance, progress, pace, None)
            yield found.find(place.id), work, tell

    @staticmethod
    @contextlib.contextmanager
    def _show(found: Directory, manifest: Manifest, index: int, work: Path) -> Iterator[nbd.Nbd]:
        """A disk of a backup."""
        found.check_chain(manifest.id, index)
        path = str(found.disk(manifest.id, index))
        with served.serve(path, "qcow2", work, contexts=[nbd.ALLOCATION]) as source:
            yield source

    # removing

    def backup_remove(self, repository: str, instance: str, backups: list[str]) -> str:
        """Begin to remove backups of an instance."""
        found = self._desk.find_directory(repository, instance)

        def work(progress: Progress) -> None:
            with found.lock():
                for backup in backups:
                    found.remove(check_id(backup))
                    log.info("removed backup %s of %s", backup, instance)
                    progress.add(0)

        return self._copies.begin(work)


def _explain_full(base: str, what: str, why: str) -> str:
    """What the user reads when nothing can be built on the last backup."""
    return f"backup {base} cannot be built on, so all of the {what} was stored: {why}"


def _choose_worst(modes: Sequence[Mode]) -> Mode:
    """The mode of a backup by those of its disks: the one that read most."""
    return next(
        (mode for mode in (Mode.FULL, Mode.COMPARE, Mode.DIRTY) if mode in modes), Mode.FULL
    )
