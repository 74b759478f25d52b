"""Environment variables of the scripts of an OS definition; pure.

Names and values are the OS interface. Parameters, secret ones too, travel only here: an
environment is readable by root and the script alone, an argument list by everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import errors
from ganeti.guest_os.definition import OsDefinition
from ganeti.guest_os.definition_files import variable_of
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import NicMode
from ganeti.rpc.objects import NodeInstance, NodeNic
from ganeti.storage.registry import TEMPLATES

#: ``PATH`` of scripts; part of the interface.
PATH = "/sbin:/bin:/usr/sbin:/usr/bin"

Environment = dict[str, str]

#: Key of a network object -> end of the variable's name.
_NETWORK = {
    "name": "NAME",
    "uuid": "UUID",
    "network": "SUBNET",
    "gateway": "GATEWAY",
    "network6": "SUBNET6",
    "gateway6": "GATEWAY6",
    "mac_prefix": "MAC_PREFIX",
}


def common(
    definition: OsDefinition, osparams: Mapping[str, object], *, debug: int = 0
) -> Environment:
    """The variables of every script; ``verify`` gets no others.

    Raises:
        OpPrereqError: a value that cannot be in an environment (it has a zero byte).
    """
    env = {
        "PATH": PATH,
        "OS_API_VERSION": str(definition.api_version),
        "OS_NAME": definition.name,
        "OS_VARIANT": definition.variant,
        "DEBUG_LEVEL": str(debug),
    }
    for name, value in osparams.items():
        env[variable_of(name)] = _text(value)
    return _check(env)


def make_instance_environment(
    definition: OsDefinition,
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    *,
    debug: int = 0,
) -> Environment:
    """Common variables and everything about the instance, its disks and its NICs.

    ``disks`` are the assembled disks in the order in which the guest sees them.

    Raises:
        ParameterError: a disk of a template without driver.
        OpPrereqError: a value that cannot be in an environment.
    """
    env = common(definition, instance.osparams, debug=debug)
    env.update(
        {
            "INSTANCE_NAME": instance.name,
            "INSTANCE_OS": instance.os,
            "INSTANCE_UUID": instance.uuid,
            "INSTANCE_CTIME": str(instance.ctime),
            "INSTANCE_MTIME": str(instance.mtime),
            "INSTANCE_PRIMARY_NODE": instance.primary_node,
            "INSTANCE_SECONDARY_NODES": " ".join(instance.secondary_nodes),
            "HYPERVISOR": str(instance.hypervisor),
            "DISK_COUNT": str(len(disks)),
            "NIC_COUNT": str(len(instance.nics)),
        }
    )
    for index, disk in enumerate(disks):
        env.update(_disk(f"DISK_{index}_", disk, instance.hvparams))
    for index, nic in enumerate(instance.nics):
        env.update(_nic(f"NIC_{index}_", nic, instance.hvparams))
    for kind, params in (("BE", instance.beparams), ("HV", instance.hvparams)):
        for name, value in params.items():
            env[f"INSTANCE_{kind}_{name}"] = _text(value)
    return _check(env)


def make_create_environment(
    definition: OsDefinition,
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    *,
    reinstall: bool = False,
    debug: int = 0,
) -> Environment:
    """For ``create`` (and ``create_untrusted``)."""
    env = make_instance_environment(definition, instance, disks, debug=debug)
    if reinstall:
        env["INSTANCE_REINSTALL"] = "1"
    return env


def make_rename_environment(
    definition: OsDefinition,
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    old_name: str,
    *,
    debug: int = 0,
) -> Environment:
    """For ``rename``; the instance has its new name already."""
    env = make_instance_environment(definition, instance, disks, debug=debug)
    env["OLD_INSTANCE_NAME"] = old_name
    return _check(env)


def make_export_environment(
    definition: OsDefinition,
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    index: int,
    *,
    size_fd: int | None = None,
    source: AttachedDisk | None = None,
    debug: int = 0,
) -> Environment:
    """For ``export`` of the disk at ``index``.

    ``source`` is what is read instead of the disk itself (a snapshot of it); ``size_fd`` the
    descriptor to which the script may write the size of its dump in bytes.
    """
    env = make_instance_environment(definition, instance, disks, debug=debug)
    env.update(_transfer("EXPORT_", source or _pick(disks, index), index))
    if size_fd is not None:
        env["EXP_SIZE_FD"] = str(size_fd)
    return env


def make_import_environment(
    definition: OsDefinition,
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    index: int,
    *,
    debug: int = 0,
) -> Environment:
    """For ``import`` into the disk at ``index``."""
    env = make_instance_environment(definition, instance, disks, debug=debug)
    env.update(_transfer("IMPORT_", _pick(disks, index), index))
    return env


def _pick(disks: Sequence[AttachedDisk], index: int) -> AttachedDisk:
    if not 0 <= index < len(disks):
        raise errors.make_invalid_error(f"the instance has no disk {index}: it has {len(disks)}")
    return disks[index]


def _transfer(prefix: str, disk: AttachedDisk, index: int) -> Environment:
    env = {f"{prefix}INDEX": str(index), f"{prefix}DEVICE": disk.path or disk.uri or ""}
    if disk.path:
        env[f"{prefix}DISK_PATH"] = disk.path
    if disk.uri:
        env[f"{prefix}DISK_URI"] = disk.uri
    return env


def _disk(prefix: str, attached: AttachedDisk, hvparams: Mapping[str, object]) -> Environment:
    disk = attached.disk
    env = {
        "ACCESS": str(disk.mode),
        "UUID": disk.uuid,
        "SIZE": str(disk.size),
        "BACKEND_TYPE": "block",
    }
    if attached.path:
        env["PATH"] = attached.path
    if attached.uri:
        env["URI"] = attached.uri
    if disk.name:
        env["NAME"] = disk.name
    if "disk_type" in hvparams:
        env["FRONTEND_TYPE"] = _text(hvparams["disk_type"])
    if TEMPLATES.get(disk.dev_type).traits.file_based:
        env["BACKEND_TYPE"] = f"file:{disk.logical_id[0]}"
    return {prefix + key: value for key, value in env.items()}


def _nic(prefix: str, nic: NodeNic, hvparams: Mapping[str, object]) -> Environment:
    mode, link = nic.nicparams.get("mode"), nic.nicparams.get("link")
    env = {"MAC": nic.mac, "UUID": nic.uuid}
    if nic.name:
        env["NAME"] = nic.name
    if nic.ip:
        env["IP"] = nic.ip
    if mode:
        env["MODE"] = _text(mode)
    if link:
        env["LINK"] = _text(link)
        if mode == NicMode.BRIDGED:
            env["BRIDGE"] = _text(link)
    if "nic_type" in hvparams:
        env["FRONTEND_TYPE"] = _text(hvparams["nic_type"])
    if nic.netinfo:
        env.update(_network(nic.netinfo))
    return {prefix + key: value for key, value in env.items()}


def _network(netinfo: Mapping[str, Any]) -> Environment:
    env = {
        f"NETWORK_{end}": _text(netinfo[key]) for key, end in _NETWORK.items() if netinfo.get(key)
    }
    env["NETWORK_TAGS"] = " ".join(netinfo.get("tags") or ())
    return env


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _check(env: Environment) -> Environment:
    """Refuse what the system call that starts a program would refuse, without showing values."""
    for name, value in env.items():
        try:
            fits = "=" not in name and b"\0" not in name.encode() + value.encode()
        except UnicodeEncodeError:
            fits = False
        if not fits:
            raise errors.make_invalid_error(
                f"{name!a} cannot be handed to an OS script: its name has an equals sign,"
                " or name or value have a zero byte or are not valid text",
            ) from None
    return env
