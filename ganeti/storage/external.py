"""Template ``ext``: disks that scripts of a provider make, attach and remove.

The provider decides where the data is; every node with its scripts can use it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files, process
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.model.enums import LocalDisk
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage import external_provider as provider
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits

MIB = 1024 * 1024
#: Seconds a script may run; less than the time limit of the calls that need it.
TIMEOUT = 840.0
#: Parameters that are not the provider's.
_OWN_KEYS = ("access", "provider")
_TAIL_LINES = 20


class ExtParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of template ``ext``."""

    #: kernelspace: the hypervisor gets a device; userspace: an address, if the provider has one
    access: str = "kernelspace"


class ExtDevice(Device):
    """A volume of a provider; ``logical_id`` is (provider, volume).

    Every method runs one script, in the directory of the provider, and blocks until it ends.
    """

    traits: ClassVar[Traits] = Traits(
        shared=True,
        takes_options=True,
        holds_old_data=True,
        found_by_attach=True,
        id_parts=("provider", "volume"),
    )
    params: ClassVar[type[msgspec.Struct]] = ExtParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        if len(disk.logical_id) != 2 or not all(isinstance(p, str) for p in disk.logical_id):
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: an external disk is named by [provider, volume], not by"
                f" {list(disk.logical_id)}"
            )
        name, self.volume = disk.logical_id
        self._name = _check_name(name, self.volume)
        self._path = ""
        self._uris: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The device that the attach script named; the volume's name as long as there is none."""
        return self._path or self.volume

    def uri(self) -> str | None:
        if self.disk.params.get("access") != "userspace":
            return None
        found = [uri for uri in self._uris if uri.startswith("kvm:")]
        return found[0].partition(":")[2] if found else None

    def create(self, size: int, *, info: str = "") -> None:
        """Let the provider check its parameters and make the volume, then note ``info``.

        Raises:
            BlockDeviceError: the provider is missing or has defects, or a script failed.
        """
        if size <= 0:
            raise errors.BlockDeviceError(f"{self.volume}: a disk of {size} MiB cannot be made")
        self._run(provider.VERIFY, words=("parameters",))
        self._run(provider.CREATE, VOL_SIZE=str(size))
        if info:
            self.set_info(info)

    def remove(self) -> None:
        """Detach and destroy the volume; nothing to do when it cannot be attached."""
        if self.attach():
            self._run(provider.DETACH)
            self._run(provider.REMOVE)

    def attach(self) -> bool:
        """Whether the volume could be attached; it stays so. The script is run each time."""
        found = self._provider()
        result = self._start(found, provider.ATTACH, {}, None)
        if not result.ok:
            return False
        path, *uris = [line.strip() for line in result.stdout.splitlines()] or [""]
        self._path, self._uris = path, tuple(uri for uri in uris if uri)
        if path:
            _check_device(path, self._name)
        elif not self._uris:
            raise errors.BlockDeviceError(
                f"storage provider '{self._name}' attached {self.volume} but named no device"
            )
        return True

    def assemble(self) -> None:
        self._need()

    def shutdown(self) -> None:
        self._run(provider.DETACH)
        self._path, self._uris = "", ()

    def open(self, *, exclusive: bool = True) -> None:
        self._need()
        self._run(provider.OPEN, VOL_OPEN_EXCLUSIVE=str(exclusive))

    def close(self) -> None:
        self._run(provider.CLOSE)

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Let the provider add ``amount`` MiB; a dry run only looks whether the volume is there.

        Raises:
            BlockDeviceError: not there, negative amount, or the script failed.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"{self.volume} cannot shrink by {-amount} MiB: disks can only grow"
            )
        self._need()
        if not dry_run:
            self._run(
                provider.GROW,
                VOL_SIZE=str(self.disk.size),
                VOL_NEW_SIZE=str(self.disk.size + amount),
            )

    def snapshot(self, name: str, size: int) -> tuple[str, ...]:
        """Freeze the content under another name; returns its logical id.

        Raises:
            BlockDeviceError: the provider has no such script, or it failed.
        """
        if not self._provider().has(provider.SNAPSHOT):
            raise errors.BlockDeviceError(
                f"storage provider '{self._name}' has no script for snapshots"
            )
        name = name or f"{self.volume}.snap"
        size = size or self.disk.size
        self._run(provider.SNAPSHOT, VOL_SNAPSHOT_NAME=name, VOL_SNAPSHOT_SIZE=str(size))
        return (self._name, name)

    def set_info(self, text: str) -> None:
        """Let the provider note a text; BlockDeviceError."""
        self._run(provider.SETINFO, VOL_METADATA=text)

    def status(self) -> BlockDevStatus:
        self._need()
        if not self._path:
            return BlockDevStatus(dev_path=self.path, ldisk_status=LocalDisk.OKAY)
        number = os.stat(self._path).st_rdev
        return BlockDevStatus(dev_path=self._path, major=os.major(number), minor=os.minor(number))

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``(provider, <uuid>.ext.disk<index>)``; ParameterError without a provider."""
        name = request.options.get("provider")
        if not name:
            raise errors.ParameterError(
                f"disk {request.index}: template ext needs a provider, as in"
                f" --disk {request.index}:size=10G,provider=NAME"
            )
        return (
            provider.check_name(name),
            f"{request.disk_uuid}.ext.disk{request.index}",
        )

    @classmethod
    def plan_params(cls, request: PlanRequest) -> JsonObject:
        """Return the parameters that were given for the provider."""
        return dict(request.options)

    def _need(self) -> None:
        if not self.attach():
            raise errors.BlockDeviceError(
                f"volume {self.volume} of storage provider '{self._name}' cannot be attached"
            )

    def _provider(self) -> provider.Provider:
        return provider.load(self._name, self.env.paths.extstorage_search_path)

    def _run(self, action: str, *, words: Sequence[str] = (), **more: str) -> None:
        """Run a script; one that is optional and missing is skipped."""
        found = self._provider()
        if action in provider.OPTIONAL and not found.has(action):
            return
        if action in (provider.CREATE, provider.VERIFY):
            found.check_parameters(self._make_params())
        log = self._make_log(action)
        result = self._start(found, action, more, log, words)
        if not result.ok:
            raise errors.BlockDeviceError(
                f"storage provider '{self._name}' could not {action} {self.volume}:"
                f" {'timed out' if result.timed_out else f'exit code {result.code}'}"
                f" (log {log}){_tail(log)}"
            )

    def _start(
        self,
        found: provider.Provider,
        action: str,
        more: Mapping[str, str],
        log: Path | None,
        words: Sequence[str] = (),
    ) -> process.Result:
        try:
            return process.run(
                [str(found.script(action)), *words],
                timeout=TIMEOUT,
                env=environment(self.disk, self.volume, self._make_params(), action, more),
                cwd=found.path,
                log=log,
            )
        except errors.CommandError as err:
            raise errors.BlockDeviceError(errors.text(err)) from err

    def _make_params(self) -> JsonObject:
        return {key: value for key, value in self.disk.params.items() if key not in _OWN_KEYS}

    def _make_log(self, action: str) -> Path:
        stamp = time.strftime("%Y-%m-%d_%H_%M_%S", time.localtime(SYSTEM.now()))
        directory = self.env.paths.extstorage_log
        files.ensure_dir(directory, 0o750)
        return directory / f"{action}-{self._name}-{self.volume}-{stamp}.log"


def environment(
    disk: NodeDisk,
    volume: str,
    params: Mapping[str, object],
    action: str,
    more: Mapping[str, str],
) -> dict[str, str]:
    """Variables for a script. Pure."""
    result = {"PATH": process.SAFE_PATH, "LC_ALL": "C"}
    if action != provider.VERIFY:
        result["VOL_NAME"] = volume
        result["VOL_UUID"] = disk.uuid
        if disk.name:
            result["VOL_CNAME"] = disk.name
    result.update(
        (f"EXTP_{name.upper().replace('-', '_')}", str(value)) for name, value in params.items()
    )
    result.update(more)
    return result


def _check_name(name: str, volume: str) -> str:
    if not volume or "/" in volume or volume.startswith((".", "-")) or not volume.isprintable():
        raise errors.BlockDeviceError(f"'{volume[:80]}' cannot be the name of an external volume")
    try:
        return provider.check_name(name)
    except errors.ParameterError as err:
        raise errors.BlockDeviceError(errors.text(err)) from err


def _check_device(path: str, name: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as err:
        raise errors.BlockDeviceError(
            f"storage provider '{name}' named the device {path}: {err.strerror}"
        ) from err
    if not stat.S_ISBLK(mode):
        raise errors.BlockDeviceError(
            f"storage provider '{name}' named {path}, which is not a block device"
        )


def _tail(log: Path) -> str:
    """The last lines of a log, each after a line break."""
    try:
        lines = files.read_text(log).splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return "".join(f"\n{line}" for line in lines[-_TAIL_LINES:])
