"""Backups of one instance in a repository of restic or borg.

The items in it have the names that files have in a directory, see :mod:`ganeti.backup.directory`::

    web1.example.com-20260131-020000-0.diff    what it added of disk 0, see ganeti.backup.stream
    web1.example.com-20260131-020000-0.sums    checksums of all of disk 0
    web1.example.com-20260131-020000.json      the backup: it is there, or there is none
    web1.example.com-20260131-020000-1.proof   a proof, numbered by its time

The program gets only what is new, and so no item is a whole disk but the first one. The note of
a ``.json`` item is the backup without its settings, so that one list shows all backups.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.backup import piping, served, stream, sums
from ganeti.backup.definition import Definition
from ganeti.backup.programs import LOCK_WAIT, Item, is_locked
from ganeti.backup.repository import Content, Look, Sink, Tell
from ganeti.backup.sums import Sums
from ganeti.base import jsonio, typed
from ganeti.base.clock import Clock
from ganeti.model import backup as model
from ganeti.model.backup import Manifest, Proof

log = logging.getLogger(__name__)

#: So many streams are read at most to put a disk together; the next backup stores all of it.
CHAIN = 30
#: Seconds between two attempts to use a repository that is locked.
_AGAIN = 5.0
_NAME = re.compile(r"(?P<instance>.+)-(?P<id>[0-9]{8}-[0-9]{6})(?P<rest>(-[0-9]+)?\.[a-z]+)")
_BACKUP = ".json"


class Archive:
    """See :class:`ganeti.backup.repository.Repository`; ``wait`` sleeps for some seconds."""

    def __init__(
        self,
        definition: Definition,
        instance: str,
        clock: Clock,
        wait: Callable[[float], object],
    ) -> None:
        self.label = f"repository {definition.name}"
        self.instance = model.check_instance(instance)
        self._definition, self._program = definition, definition.program
        self._clock, self._wait = clock, wait
        self._look: Look = lambda: None
        #: items of all instances, once they were listed under the lock
        self._items: list[Item] | None = None

    def watch(self, look: Look) -> None:
        self._look = look

    # what is there

    def list_all(self) -> list[Manifest]:
        return list_backups(self._list(), self.instance)

    def newest(self) -> Manifest | None:
        found = self.list_all()
        return found[-1] if found else None

    def find(self, backup: str) -> Manifest:
        self._items = self._list()
        known = {manifest.id: manifest for manifest in self.list_all()}
        if model.check_id(backup) not in known:
            raise errors.make_unknown_error(
                f"there is no backup {backup} of {self.instance} in {self.label}",
            )
        text = self._get(self._find_item(f"{backup}{_BACKUP}")).decode("utf-8", "replace")
        try:
            return msgspec.structs.replace(model.parse(text), proof=known[backup].proof)
        except errors.GenericError as err:
            raise errors.GenericError(f"{self.label}: {backup}: {errors.text(err)}") from err

    def _list(self) -> list[Item]:
        if self._items is not None:
            return self._items
        return self._read_list(wait=False)

    def _read_list(self, *, wait: bool) -> list[Item]:
        text = self._run(self._program.build_list(wait=wait), wait=wait)
        return _parse_list(self._definition, text)

    def _find_item(self, rest: str) -> Item:
        name = f"{self.instance}-{rest}"
        found = [item for item in self._list() if item.name == name]
        if not found:
            raise errors.GenericError(f"{self.label} has no {name}; it was removed")
        return found[-1]

    def _get(self, item: Item) -> bytes:
        with piping.start(self._definition, self._program.build_get(item), self._look) as child:
            return child.read_all()

    # work

    def _run(self, argv: Sequence[str], *, wait: bool) -> bytes:
        """The output of a program; ``wait``: try again for some time while others lock it."""
        end = self._clock.monotonic() + LOCK_WAIT
        unlock = self._program.build_unlock()
        while True:
            with piping.start(self._definition, argv, self._look) as child:
                try:
                    return child.read_all()
                except errors.GenericError:
                    over = not wait or self._clock.monotonic() > end
                    if over or unlock is None or not is_locked(child.read_said()):
                        raise
            self._run(unlock, wait=False)
            self._look()
            self._wait(_AGAIN)

    @contextlib.contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Wait until the repository is not locked, and list what is in it.

        The node daemon does one thing with an instance at a time, and the program locks what it
        changes.
        """
        self._items = self._read_list(wait=True)
        try:
            if not shared:
                self._remove_leftovers()
            yield
        finally:
            self._items = None

    def _remove_leftovers(self, made: Manifest | None = None) -> None:
        """Remove what backups left that did not end, as far as they are older than the newest."""
        garbage = self._find_garbage((), made)
        try:
            self._remove(garbage, wait=False)
        except errors.GenericError as err:
            log.info("what an earlier backup left is removed later: %s", errors.text(err))

    def _find_garbage(self, gone: Collection[str], made: Manifest | None = None) -> list[Item]:
        names = [item.name for item in self._list()]
        known = [*self.list_all(), *([] if made is None else [made])]
        found = find_garbage(names, known, self.instance, gone)
        return [item for item in self._list() if item.name in found]

    def _remove(self, items: Sequence[Item], *, wait: bool) -> None:
        if items:
            for argv in self._program.build_remove(items):
                self._run(argv, wait=wait)
            left = set(items)
            self._items = [item for item in self._list() if item not in left]

    def _put(self, rest: str, data: bytes, note: str = "") -> None:
        argv = self._program.build_put(f"{self.instance}-{rest}", note)
        with piping.start(self._definition, argv, self._look) as child:
            child.write(data)
            child.end()

    # making

    def find_base(self, manifest: Manifest, index: int) -> Sums | None:
        if len(manifest.disks[index].chain) + 1 >= CHAIN:
            return None
        for name in self.find_chain(manifest, index):
            self._find_item(f"{name}.diff")
        return self._read_sums(manifest, index)

    def find_chain(self, manifest: Manifest, index: int) -> tuple[str, ...]:
        return (f"{manifest.id}-{index}", *manifest.disks[index].chain)

    def _read_sums(self, manifest: Manifest, index: int) -> Sums:
        item, disk = self._find_item(f"{manifest.id}-{index}.sums"), manifest.disks[index]
        try:
            return sums.unpack(self._get(item), disk.size, disk.fingerprint)
        except errors.GenericError as err:
            raise errors.GenericError(f"{item.name}: {errors.text(err)}") from err

    @contextlib.contextmanager
    def open_disk(
        self, backup: str, index: int, size: int, base: tuple[Manifest, int] | None, work: Path
    ) -> Iterator[Sink]:
        argv = self._program.build_put(f"{self.instance}-{backup}-{index}.diff", "")
        with piping.start(self._definition, argv, self._look) as child:
            writer = stream.Writer(size, child.write)
            yield writer
            writer.end()
            child.end()

    def finish(self, manifest: Manifest, tables: Sequence[Sums]) -> None:
        for index, table in enumerate(tables):
            self._put(f"{manifest.id}-{index}.sums", table.pack())
        note = encode(msgspec.structs.replace(manifest, settings=""))
        self._put(f"{manifest.id}{_BACKUP}", model.dump(manifest).encode(), note)
        # what an earlier backup left could not be told from this one before
        self._remove_leftovers(manifest)

    def discard(self, backup: str) -> None:
        begin = f"{self.instance}-{backup}"
        self.watch(lambda: None)  # whether it shall end is known
        try:
            made = [item for item in self._read_list(wait=False) if item.name.startswith(begin)]
            self._remove(made, wait=False)
        except errors.GenericError as err:
            log.info("what backup %s left is removed later: %s", backup, errors.text(err))

    def note(self, manifest: Manifest) -> None:
        if manifest.proof is not None:
            note = encode(manifest.proof)
            self._put(f"{manifest.id}-{int(manifest.proof.time)}.proof", note.encode(), note)

    def remove(self, backups: Sequence[str], tell: Tell) -> None:
        for backup in backups:
            self._find_item(f"{model.check_id(backup)}{_BACKUP}")
        self._remove(self._find_garbage(backups), wait=True)

    # reading

    def restore_disk(
        self, manifest: Manifest, index: int, target: Sink | None, work: Path, tell: Tell
    ) -> None:
        names = self.find_chain(manifest, index)
        items = {name: self._find_item(f"{name}.diff") for name in names}

        def open_stream(name: str) -> contextlib.AbstractContextManager[piping.Child]:
            argv = self._program.build_get(items[name])
            return piping.start(self._definition, argv, self._look)

        table = self._read_sums(manifest, index)
        stream.restore(names, open_stream, target, table, f"disk {index} of the backup", tell)

    def place_disk(self, manifest: Manifest, index: int, work: Path, tell: Tell) -> Content:
        """A file without the holes of the disk, put together in ``work``."""
        path = work / f"{index}.raw"
        with path.open("xb") as stream:
            os.truncate(stream.fileno(), manifest.disks[index].size)
        with served.serve(str(path), "raw", work, write=True) as target:
            self.restore_disk(manifest, index, target, work, tell)
        return Content(path, "raw")


def encode(value: Manifest | Proof) -> str:
    """As a note: one word without a sign that means something to a program. Pure."""
    text = jsonio.dumps(msgspec.to_builtins(value))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _decode(note: str) -> str:
    """The text of a note; GenericError."""
    try:
        return zlib.decompress(base64.urlsafe_b64decode(note)).decode()
    except (ValueError, zlib.error) as err:
        raise errors.GenericError(f"it is damaged: {err}") from err


def _parse_list(definition: Definition, text: bytes) -> list[Item]:
    program = definition.program
    try:
        return program.parse_list(text.decode())
    except (errors.ParseError, KeyError, TypeError, ValueError) as err:
        raise errors.GenericError(
            f"repository {definition.name}: the list of {program.name} is not understood: {err}"
        ) from err


def list_everything(definition: Definition) -> list[Manifest]:
    """Backups of all instances in a repository; GenericError when it cannot be read."""
    argv = definition.program.build_list(wait=False)
    with piping.start(definition, argv, lambda: None) as child:
        items = _parse_list(definition, child.read_all())
    found = (_NAME.fullmatch(item.name) for item in items if item.name.endswith(_BACKUP))
    names = sorted({match["instance"] for match in found if match})
    return [backup for name in names for backup in list_backups(items, name)]


def list_backups(items: Sequence[Item], instance: str) -> list[Manifest]:
    """The backups of an instance with their last proof, the oldest first. Pure."""
    found: dict[str, Manifest] = {}
    proofs: dict[str, Proof] = {}
    for item in items:
        match = _NAME.fullmatch(item.name)
        if match is None or match["instance"] != instance:
            continue
        backup = match["id"]
        try:
            if match["rest"] == _BACKUP:
                found[backup] = model.parse(_decode(item.note))
            elif match["rest"].endswith(".proof"):
                proof = typed.convert(jsonio.loads(_decode(item.note)), Proof)
                if backup not in proofs or proofs[backup].time < proof.time:
                    proofs[backup] = proof
        except (errors.GanetiError, msgspec.ValidationError) as err:
            found[backup] = model.make_damaged(backup, instance, errors.text(err))
    return [
        msgspec.structs.replace(manifest, proof=proofs.get(backup))
        for backup, manifest in sorted(found.items())
    ]


def find_garbage(
    names: Sequence[str], manifests: Sequence[Manifest], instance: str, gone: Collection[str]
) -> set[str]:
    """Names of what no backup needs when those that are ``gone`` are removed. Pure.

    Names newer than the newest backup stay: they may be of one that is being made. Streams stay
    while it is not known what a damaged backup is built on.
    """
    kept = [manifest for manifest in manifests if manifest.id not in gone]
    damaged = any(manifest.damage for manifest in kept)
    needed = {
        name
        for manifest in kept
        for index, disk in enumerate(manifest.disks)
        for name in (f"{manifest.id}-{index}", *disk.chain)
    }
    ids = {manifest.id for manifest in kept}
    newest = max((manifest.id for manifest in manifests), default="")
    found = set()
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or match["instance"] != instance or match["id"] in ids:
            continue
        is_stream = name.endswith(".diff")
        stays = is_stream and (
            damaged or name.removeprefix(f"{instance}-").removesuffix(".diff") in needed
        )
        if match["id"] <= newest and not stays:
            found.add(name)
    return found
