"""A guest as the file of another product describes it, before anything of it is made here. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors

MIB = 1 << 20
#: Most bytes of a description in text.
LONGEST_TEXT = 4 * MIB
#: Most MiB of memory and most processors that a description may name.
MOST_MEMORY, MOST_VCPUS = 64 << 20, 4096


@dataclass(frozen=True)
class ForeignDisk:
    """One disk. ``label`` is what the description calls it, ``file`` where its content is."""

    label: str
    file: str
    #: ide, sata, scsi, virtio or another word of the product
    bus: str = ""
    #: raw, qcow2 or vmdk; None: found by the content
    format: str | None = None
    #: bytes; None: the description does not say it
    size: int | None = None


@dataclass(frozen=True)
class ForeignNic:
    """One NIC. ``source`` is the bridge or network that it was connected to."""

    mac: str | None = None
    source: str = ""
    model: str = ""


@dataclass(frozen=True)
class ForeignGuest:
    """A guest; None is what the description does not say."""

    name: str | None = None
    #: MiB
    memory: int | None = None
    #: MiB, of a guest that may get less than ``memory``
    least_memory: int | None = None
    vcpus: int | None = None
    disks: tuple[ForeignDisk, ...] = ()
    nics: tuple[ForeignNic, ...] = ()
    #: bios, uefi or uefi-secure
    firmware: str | None = None
    machine: str = ""
    #: model of the controller of SCSI disks, in the words of the product
    scsi_controller: str = ""
    #: what is not taken over: one sentence each
    left_out: tuple[str, ...] = ()


def refuse(what: str, reason: str) -> errors.OpPrereqError:
    """The error for a file that is not taken; ``what`` names it."""
    return errors.make_invalid_error(f"{what}: {reason}")


def read_number(what: str, name: str, text: str | None, most: int) -> int:
    """A number of a description, from 1 to ``most``; OpPrereqError."""
    text = (text or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 20 or not 1 <= int(text) <= most:
        raise refuse(what, f"{name} is '{text[:40]}'; a number from 1 to {most} is valid")
    return int(text)


def check_file_name(what: str, label: str, name: str) -> str:
    """The name of a file beside the description; OpPrereqError for what is a path."""
    if not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise refuse(
            what, f"disk {label} is in the file '{name[:80]}', which is not a name without '/'"
        )
    return name
