"""The file ``config.ini`` of an export: settings of the instance, and which file holds which disk.

Its form is that of Ganeti 2.0 to 3.x, so each side can read what the other has written. Pure.
"""

from __future__ import annotations

import configparser
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.enums import DiskTemplate
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

#: Name of the file in the directory of an export.
FILE = "config.ini"
#: Version of exports, of all releases so far.
VERSION = 0
#: Text for "not set".
_NONE = "None"
_EXPORT, _INSTANCE = "export", "instance"
_HYPERVISOR, _BACKEND, _OS, _OS_PRIVATE = "hypervisor", "backend", "os", "os_private"
_NIC_PARAMETERS = ("link", "mode", "vlan")
#: Keys of a NIC that an import takes; a network is known in its own cluster only.
_NIC_KEYS = ("mac", "ip", "name", *_NIC_PARAMETERS, "network")
#: Names of files that a disk can have: no way out of the directory.
_NOT_FILES = ("", ".", "..", FILE)
_MIXED = "mixed"


@dataclass(frozen=True)
class ExportedDisk:
    """One disk of an export."""

    #: MiB
    size: int
    #: name of the file with its content; empty: it has none
    dump: str
    name: str | None = None


@dataclass(frozen=True)
class ExportConfig:
    """Content of ``config.ini``; values of parameters are texts, None where it says nothing."""

    name: str
    os: str
    #: uuid (or name) of the node that it was made on
    source: str
    #: tool that the dumps were compressed with; ``none`` of exports of this century
    compression: str
    template: str | None
    hypervisor: str | None
    hvparams: Mapping[str, str]
    beparams: Mapping[str, str]
    osparams: Mapping[str, str]
    osparams_private: Mapping[str, str]
    tags: tuple[str, ...]
    nics: tuple[Mapping[str, str], ...]
    disks: tuple[ExportedDisk, ...]


# writing -------------------------------------------------------------------------------------


def compose(
    instance: NodeInstance,
    disks: Sequence[NodeDisk],
    private: Mapping[str, object],
    now: float,
) -> str:
    """The text of the file; ``disks`` in their order, each in a file named by its uuid.

    ``private`` are the OS parameters that are not in ``instance.osparams``. ``now`` is in seconds
    since 1970.
    """
    parser = _make_parser()
    parser[_EXPORT] = {
        "version": str(VERSION),
        "timestamp": str(int(now)),
        "source": instance.primary_node,
        "os": instance.os,
        "compression": "none",
    }
    parser[_INSTANCE] = _compose_instance(instance, disks)
    parser[_HYPERVISOR] = _texts(instance.hvparams)
    parser[_BACKEND] = _texts(instance.beparams)
    parser[_OS] = _texts(instance.osparams)
    parser[_OS_PRIVATE] = _texts(private)
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def _make_parser() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(default_section="\0", strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    return parser


def _compose_instance(instance: NodeInstance, disks: Sequence[NodeDisk]) -> dict[str, str]:
    be = instance.beparams
    kinds = {str(disk.dev_type) for disk in disks} or {str(DiskTemplate.DISKLESS)}
    found = {
        "name": instance.name,
        "maxmem": be.get("maxmem"),
        "minmem": be.get("minmem"),
        # readers from before 2.6 know only this
        "memory": be.get("maxmem"),
        "vcpus": be.get("vcpus"),
        "disk_template": kinds.pop() if len(kinds) == 1 else _MIXED,
        "hypervisor": instance.hypervisor,
        "tags": " ".join(sorted(instance.tags)),
    }
    for index, nic in enumerate(instance.nics):
        found.update({f"nic{index}_{key}": value for key, value in _describe_nic(nic).items()})
    found["nic_count"] = len(instance.nics)
    for index, disk in enumerate(disks):
        found[f"disk{index}_ivname"] = f"disk/{index}"
        found[f"disk{index}_dump"] = disk.uuid
        found[f"disk{index}_size"] = disk.size
        found[f"disk{index}_name"] = disk.name
    found["disk_count"] = len(disks)
    return _texts(found)


def _describe_nic(nic: NodeNic) -> JsonObject:
    return {
        "mac": nic.mac,
        "ip": nic.ip,
        "network": nic.network,
        "name": nic.name,
        **{key: nic.nicparams.get(key, "") for key in _NIC_PARAMETERS},
    }


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(name, value) for name, value in values.items()}


def _text(name: str, value: object) -> str:
    text = str(value)
    if "\n" in text or "\r" in text:
        # a line that begins with a blank continues in this form, so readers give the text back
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\n\t")
    return text


# reading -------------------------------------------------------------------------------------


def parse(text: str) -> ExportConfig:
    """Parse the text of such a file.

    Raises:
        OpPrereqError: (ENVIRON) it is not such a file, or of a version that is not known.
    """
    parser = _make_parser()
    try:
        parser.read_string(text)
    except configparser.Error as err:
        raise _make_error(f"it cannot be read: {str(err).splitlines()[0]}") from err
    for section in (_EXPORT, _INSTANCE):
        if not parser.has_section(section):
            raise _make_error(f"it has no section [{section}]")
    export, instance = _Section(parser, _EXPORT), _Section(parser, _INSTANCE)
    version = export.number("version")
    if version != VERSION:
        raise _make_error(f"it has version {version}, and only {VERSION} is known")
    template = instance.text("disk_template")
    return ExportConfig(
        name=instance.text("name") or "",
        os=export.text("os") or "",
        source=export.text("source") or "",
        compression=export.text("compression") or "none",
        template=None if template == _MIXED else template,
        hypervisor=instance.text("hypervisor"),
        hvparams=_values(parser, _HYPERVISOR),
        beparams=_parse_backend(parser, instance),
        osparams=_values(parser, _OS),
        osparams_private=_values(parser, _OS_PRIVATE),
        tags=tuple((instance.text("tags") or "").split()),
        nics=_parse_nics(instance),
        disks=_parse_disks(instance),
    )


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_environment_error(f"{FILE} of the export: {text}")


class _Section:
    """One section, whose values are texts."""

    def __init__(self, parser: configparser.RawConfigParser, name: str) -> None:
        self._values = parser[name]
        self._name = name

    def text(self, key: str) -> str | None:
        """A value; None when it is missing or is the word for none."""
        found = self._values.get(key)
        return None if found in (None, _NONE) else found

    def number(self, key: str) -> int:
        """A number from 0 on; OpPrereqError for anything else."""
        found = self._values.get(key, "")
        if not (found.isascii() and found.isdigit() and len(found) < 16):
            raise _make_error(f"{key} of [{self._name}] must be a number, not {found[:40]!r}")
        return int(found)


def _values(parser: configparser.RawConfigParser, section: str) -> dict[str, str]:
    return dict(parser[section]) if parser.has_section(section) else {}


def _parse_backend(parser: configparser.RawConfigParser, instance: _Section) -> dict[str, str]:
    found = _values(parser, _BACKEND)
    memory = found.pop("memory", None) or instance.text("memory")
    for name in ("maxmem", "minmem"):
        value = found.get(name) or instance.text(name) or memory
        if value is not None:
            found[name] = value
    if "vcpus" not in found and (vcpus := instance.text("vcpus")) is not None:
        found["vcpus"] = vcpus
    return found


def _count(instance: _Section, what: str, key: str) -> int:
    """How many there are: what the file says, or as many as follow each other."""
    if instance.text(f"{what}_count") is not None:
        return min(instance.number(f"{what}_count"), 1000)
    found = 0
    while instance.text(f"{what}{found}_{key}") is not None:
        found += 1
    return found


def _parse_nics(instance: _Section) -> tuple[Mapping[str, str], ...]:
    found = []
    for index in range(_count(instance, "nic", "mac")):
        values = {key: instance.text(f"nic{index}_{key}") for key in _NIC_KEYS}
        found.append({key: value for key, value in values.items() if value})
    return tuple(found)


def _parse_disks(instance: _Section) -> tuple[ExportedDisk, ...]:
    found = []
    for index in range(_count(instance, "disk", "size")):
        dump = instance.text(f"disk{index}_dump") or ""
        if dump and (dump in _NOT_FILES or "/" in dump or not dump.isprintable()):
            raise _make_error(f"{dump[:40]!r} cannot be the file of disk {index}")
        size = instance.number(f"disk{index}_size")
        found.append(ExportedDisk(size, dump, instance.text(f"disk{index}_name")))
    return tuple(found)
