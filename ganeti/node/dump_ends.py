"""Source and target of the dump of a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from ganeti import errors
from ganeti.guest_os import definition, definition_files, environment, scripts
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.node import streams
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.node.dump_transfer import Transfer
from ganeti.node.exports import Exports
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.storage import measure

T = TypeVar("T")

#: Writes a dump; blocks until all of it is written.
Target = Callable[[Iterator[bytes | memoryview]], object]
#: How many arguments each kind of end has at least.
_LEAST = {"file": 1, "raw": 1, "script": 2}


class Ends:
    """Finds both ends on this node."""

    def __init__(self, context: NodeContext, disks: Disks, exports: Exports) -> None:
        self._context = context
        self._disks = disks
        self._exports = exports

    def find_source(
        self, transfer: Transfer, instance: NodeInstance, given: tuple[str, list[Any]]
    ) -> streams.Source:
        """Find the source ``given``: a dump in a file, a disk, or the output of the export script.

        Raises:
            BlockDeviceError, FileStoragePathError: there is nothing to send.
            ParameterError: arguments that make no sense.
        """
        kind, args = _check(given)
        if kind == "file":
            path, compression = str(args[0]), str(args[1]) if len(args) > 1 else streams.PLAIN
            found = self._exports.find_below(path)
            if not found.is_file():
                raise errors.BlockDeviceError(f"there is no dump {found}")
            content = streams.Content(str(found))
            return content if compression == streams.PLAIN else _Unpacked(content, compression)
        if kind == "raw":
            return streams.Content(self._open(_disk(args[0])))
        if kind == "script":
            copy = None if len(args) < 3 or args[2] is None else _disk(args[2])
            return self._find_script_source(transfer, instance, _index(args[1]), copy)
        raise errors.ParameterError(f"nothing can be sent from {kind[:20]!r}")

    def _open(self, disk: NodeDisk) -> str:
        found = self._disks.find_existing(disk)
        found.assemble()
        return found.path

    def _find_script_source(
        self, transfer: Transfer, instance: NodeInstance, index: int, copy: NodeDisk | None
    ) -> streams.Source:
        disks = self._disks.all_attached(instance)
        if not 0 <= index < len(disks):
            raise errors.ParameterError(f"instance {instance.name} has no disk {index}")
        source = disks[index]
        if copy is not None:
            source = AttachedDisk(copy, self._open(copy))
        found = self._find_script(instance, definition_files.EXPORT)
        if found is None:
            return streams.Content(source.path)
        log_path = scripts.make_log("export", instance, self._context.paths)

        def make_env(size_fd: int) -> environment.Environment:
            return environment.make_export_environment(
                found, instance, disks, index, size_fd=size_fd, source=source
            )

        return streams.Program(
            transfer.children,
            [str(found.script(definition_files.EXPORT))],
            make_env,
            found.path,
            log_path,
        )

    def _find_script(self, instance: NodeInstance, action: str) -> definition.OsDefinition | None:
        """The OS definition, None when it has no such script or there is no OS."""
        if not instance.os:
            return None
        found = definition.load(instance.os, self._context.paths.os_search_path, force_variant=True)
        return found if found.has_script(action) else None

    def find_target(
        self, transfer: Transfer, instance: NodeInstance, given: tuple[str, list[Any]]
    ) -> Target:
        """Make the writer of a dump to a file, a disk, or the import script; errors as above."""
        kind, args = _check(given)
        if kind == "file":
            path = self._exports.find_below(str(args[0]))
            try:
                self._exports.make_unfinished(path)
            except OSError as err:
                raise errors.GenericError(f"cannot make {path.parent}: {err.strerror}") from err
            return lambda data: streams.write_to(str(path), data, limit=None)
        if kind == "raw":
            return _write_disk(self._disks.find_existing(_disk(args[0])).path)
        if kind == "script":
            return self._find_script_target(transfer, instance, _index(args[1]))
        raise errors.ParameterError(f"nothing can be written to {kind[:20]!r}")

    def _find_script_target(self, transfer: Transfer, instance: NodeInstance, index: int) -> Target:
        disks = self._disks.all_attached(instance)
        if not 0 <= index < len(disks):
            raise errors.ParameterError(f"instance {instance.name} has no disk {index}")
        found = self._find_script(instance, definition_files.IMPORT)
        if found is None:
            return _write_disk(disks[index].path)
        env = environment.make_import_environment(found, instance, disks, index)
        log_path = scripts.make_log("import", instance, self._context.paths)
        argv = [str(found.script(definition_files.IMPORT))]
        return lambda data: streams.feed_program(
            transfer.children, argv, env, found.path, log_path, data
        )


class _Unpacked:
    """A dump that was compressed when it was written."""

    def __init__(self, content: streams.Content, tool: str) -> None:
        self._content = content
        self._tool = tool
        self._children = streams.Children()

    def size(self) -> int | None:
        return None

    def chunks(self) -> Iterator[bytes | memoryview]:
        try:
            yield from streams.unpack(self._content.chunks(), self._tool, self._children)
        finally:
            self._children.end()


def _disk(raw: object) -> NodeDisk:
    try:
        return msgspec.convert(raw, NodeDisk)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"no disk can be read from the arguments: {err}") from err


def _write_disk(path: str) -> Target:
    def take(data: Iterator[bytes | memoryview]) -> object:
        return streams.write_to(path, data, limit=measure.device_size(path))

    return take


def _check(given: tuple[str, list[T]]) -> tuple[str, list[T]]:
    """An end with all of its arguments; ParameterError when some are missing."""
    kind, args = given
    if len(args) < (least := _LEAST.get(kind, 0)):
        raise errors.ParameterError(f"{kind} needs {least} arguments, not {len(args)}")
    return given


def _index(value: object) -> int:
    """Number of a disk; ParameterError for anything else."""
    if not isinstance(value, int | str) or not str(value).isascii() or not str(value).isdigit():
        raise errors.ParameterError(f"{str(value)[:20]!r} is not the number of a disk")
    return int(value)
