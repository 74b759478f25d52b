"""Backups of an instance: what the cluster remembers of them, and what a repository says of one.

A repository has a file of JSON for each backup, a :class:`Manifest`; its presence makes the backup.
"""

from __future__ import annotations

import calendar
import contextlib
import re
import time
from enum import StrEnum
from typing import Annotated

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid, InstanceUuid

VERSION = 1
_ID_FORM = "%Y%m%d-%H%M%S"
_ID = re.compile(r"[0-9]{8}-[0-9]{6}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,254}")


class Mode(StrEnum):
    """How a backup found what to store."""

    FULL = "full"
    #: only what the guest has written since, by the bitmaps
    DIRTY = "dirty"
    #: all was read and compared with the checksums of the last backup
    COMPARE = "compare"


class UnfinishedRestore(ConfigObject, frozen=True, kw_only=True):
    """A restore over the disks of an instance, which hold a part of it."""

    backup: Annotated[str, doc("Id of the backup")]
    repository: Annotated[
        str | None, doc("Directory on the nodes, or a name; unset for the default")
    ] = None
    disk: Annotated[int | None, doc("Number of the disk that is written; unset for all")] = None


class BackupPlan(ConfigObject, frozen=True, kw_only=True):
    """When and where an instance is backed up, and the last good backup."""

    repository: Annotated[
        str | None, doc("Directory on the nodes, or a name; unset for the default")
    ] = None
    every: Annotated[float | None, doc("Hours between two backups; unset for no schedule")] = None
    at: Annotated[
        str | None,
        doc("Time of day at which backups begin, by the clock of the master; unset for any time"),
    ] = None
    bandwidth: Annotated[int, doc("Maximum MiB per second that a backup reads; 0 for no limit")] = 0
    keep_last: Annotated[int, doc("Number of newest backups to keep")] = 0
    keep_daily: Annotated[int, doc("Number of days of which the newest backup is kept")] = 0
    keep_weekly: Annotated[int, doc("Number of weeks of which the newest backup is kept")] = 0
    keep_monthly: Annotated[int, doc("Number of months of which the newest backup is kept")] = 0
    last_id: Annotated[str | None, doc("Id of the last good backup")] = None
    last_time: Annotated[float | None, doc("When that was, in seconds since 1970")] = None
    verified_id: Annotated[str | None, doc("Id of the last backup that was proven good")] = None
    verified_time: Annotated[float | None, doc("When it was, in seconds since 1970")] = None
    booted_id: Annotated[str | None, doc("Id of the last backup of which a copy has booted")] = None
    booted_time: Annotated[float | None, doc("When it did, in seconds since 1970")] = None
    verify_every: Annotated[
        float | None, doc("Hours between two verifications; unset for no schedule")
    ] = None
    verify_tried: Annotated[
        float | None, doc("When the last verification began, in seconds since 1970")
    ] = None
    verify_boot: Annotated[bool, doc("Whether these start a copy")] = False
    verify_until: Annotated[
        str | None, doc("By what a copy shows that it works; unset for the default")
    ] = None
    restoring: Annotated[
        UnfinishedRestore | None,
        doc("The restore that writes to the disks, or has written only a part of them"),
    ] = None


class BackedUpDisk(msgspec.Struct, frozen=True, kw_only=True):
    """One disk at the time of the backup."""

    uuid: DiskUuid
    #: bytes
    size: int
    #: see :attr:`ganeti.backup.sums.Sums.fingerprint`
    fingerprint: str
    #: bytes that were read from the disk, and that this backup added
    read: int = 0
    stored: int = 0
    #: streams in a repository of restic or borg that it is built on, the newest first
    chain: tuple[str, ...] = ()


#: How a backup is proven good.
CHECKSUM, BOOT = "checksum", "boot"


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The last verification: when, how (``checksum`` or ``boot``), and what was found."""

    time: float
    how: str
    good: bool
    text: str = ""
    #: when a copy has booted last; of the same backup, so it stays true
    booted: float | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One backup of an instance."""

    version: int = VERSION
    id: str
    instance: str
    instance_uuid: InstanceUuid
    #: seconds since 1970
    time: float
    mode: Mode
    #: state of the disks; None in backups of earlier versions
    consistency: Consistency | None = None
    #: the backup that this one was compared with
    base: str | None = None
    disks: tuple[BackedUpDisk, ...] = ()
    #: the instance, in the form of the file ``config.ini`` of an export
    settings: str = ""
    proof: Proof | None = None
    #: why its file cannot be read; then only instance, id and time are known. In no file.
    damage: str = ""

    @property
    def problem(self) -> str:
        """Why nothing can be built on it: it is damaged, or its checksums were wrong.

        A copy that does not boot has the right content.
        """
        proof = self.proof
        if self.damage or proof is None or proof.good or proof.how == BOOT:
            return self.damage
        return proof.text

    @property
    def read(self) -> int:
        """Bytes that were read from all disks."""
        return sum(disk.read for disk in self.disks)

    @property
    def stored(self) -> int:
        """Bytes that all disks added to the repository."""
        return sum(disk.stored for disk in self.disks)

    @property
    def size(self) -> int:
        """Bytes of all disks."""
        return sum(disk.size for disk in self.disks)


def make_id(now: float) -> str:
    """The name of a backup that begins now: its time in UTC."""
    return time.strftime(_ID_FORM, time.gmtime(now))


def choose_id(wanted: str, newest: str | None) -> str:
    """The id of a new backup, which is later than the newest there is, whatever the clock says.

    Raises:
        GenericError: the newest has an id that is not a time.
    """
    if newest is None or newest < wanted:
        return wanted
    try:
        return make_id(calendar.timegm(time.strptime(newest, _ID_FORM)) + 1)
    except ValueError as err:
        raise errors.GenericError(
            f"backup {newest} is newer than {wanted}, and its id is not a time: remove or rename it"
        ) from err


def check_id(text: str) -> str:
    """An id of a backup; OpPrereqError for anything else."""
    if not is_id(text):
        raise errors.make_invalid_error(
            f"'{text[:40]}' is not the id of a backup, such as 20260131-235959; gnt-backup history"
            " lists them"
        )
    return text


def is_id(text: str) -> bool:
    """Whether it has the form of the id of a backup."""
    return _ID.fullmatch(text) is not None


def is_time_of_day(text: str) -> bool:
    """Whether it is hours and minutes, such as 02:30."""
    return _TIME_OF_DAY.fullmatch(text) is not None


def is_name(repository: str) -> bool:
    """Whether a repository is one of restic or borg, which nodes know by its name."""
    return _NAME.fullmatch(repository) is not None


def is_instance(text: str) -> bool:
    """Whether it can be the directory of an instance in a repository."""
    return _INSTANCE.fullmatch(text) is not None


def make_damaged(backup: str, instance: str, reason: str) -> Manifest:
    """The record of a backup whose file cannot be read."""
    begun = 0.0
    with contextlib.suppress(ValueError):
        begun = float(calendar.timegm(time.strptime(backup, _ID_FORM)))
    return Manifest(
        id=backup,
        instance=instance,
        instance_uuid=InstanceUuid(""),
        time=begun,
        mode=Mode.FULL,
        damage=reason,
    )


def check_instance(text: str) -> str:
    """A name that can be a directory in a repository; ParameterError for anything else."""
    if not is_instance(text):
        raise errors.ParameterError(f"{text[:80]!r} is not an instance name")
    return text


def dump(manifest: Manifest) -> str:
    """The text of the file."""
    return jsonio.dumps(msgspec.to_builtins(manifest))


def parse(text: str) -> Manifest:
    """Parse the text of a manifest.

    Raises:
        GenericError: it is damaged, or of a version that is not known.
    """
    try:
        found = typed.convert(jsonio.loads(text), Manifest)
    except (errors.ParseError, msgspec.ValidationError) as err:
        raise errors.GenericError(f"it is damaged: {err}") from err
    if found.version != VERSION:
        raise errors.GenericError(f"it has version {found.version}, and only {VERSION} is known")
    return found
