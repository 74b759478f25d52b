"""Settings of a new instance from an export: everything that the request leaves open. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.guest_os.export_config import ExportConfig
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.model.params import BackendParams
from ganeti.opcodes.devices import DiskParams, NicParams
from ganeti.opcodes.hidden import Private, reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate

#: Told what is left out.
Say = Callable[[str], None]
#: Text of a parameter that has no value.
_NONE = "None"
_IN_NETWORK = ("mode", "link", "vlan")


def complete(
    config: Config, op: OpInstanceCreate, name: str, export: ExportConfig, say: Say
) -> OpInstanceCreate:
    """The request with what the export knows; ``name`` is that of the new instance.

    Settings that this cluster cannot have (parameters of other versions, networks of other
    clusters, MAC addresses that are in use) are left out, with a note.

    Raises:
        OpPrereqError: the disks that are requested are too few or too small.
    """
    hypervisor = op.hypervisor
    if hypervisor is None and export.hypervisor is not None:
        hypervisor = _read_name(HypervisorName, export.hypervisor, "hypervisor")
    return msgspec.structs.replace(
        op,
        os_type=op.os_type or export.os or None,
        hypervisor=hypervisor,
        hvparams={**_hvparams(hypervisor, export, say), **op.hvparams},
        beparams={**_backend(export, say), **op.beparams},
        osparams={**export.osparams, **op.osparams},
        osparams_private=_private(op, export),
        disk_template=_template(op, export),
        disks=_disks(config, op, export),
        nics=op.nics or [_nic(config, nic, name == export.name, say) for nic in export.nics],
        tags=op.tags or list(export.tags),
    )


def _read_name(kind: type[Any], value: str, what: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise errors.make_invalid_error(
            f"the export has {what} {value[:40]!r}, which this version does not know; choose"
            " another one"
        ) from None


def _keep(values: Mapping[str, str], known: Collection[str], what: str, say: Say) -> JsonObject:
    unknown = sorted(set(values) - set(known))
    if unknown:
        say(f"{what} of the export that this version does not know: {', '.join(unknown)}")
    return {key: value for key, value in values.items() if key in known and value != _NONE}


def _hvparams(
    hypervisor: HypervisorName | None, export: ExportConfig, say: Say
) -> Mapping[str, object]:
    """Those of the export, when it is for the same hypervisor."""
    if hypervisor is None or str(hypervisor) != export.hypervisor:
        return {}
    driver = HYPERVISORS.get(str(hypervisor))
    known = {field.encode_name for field in typed.fields(driver.params)}
    values = {k: v for k, v in export.hvparams.items() if k not in driver.traits.global_params}
    return _keep(values, known, "Hypervisor parameters", say)


def _backend(export: ExportConfig, say: Say) -> Mapping[str, object]:
    known = {field.encode_name for field in typed.fields(BackendParams)}
    return _keep(export.beparams, known, "Backend parameters", say)


def _private(op: OpInstanceCreate, export: ExportConfig) -> JsonObject | None:
    given = reveal_all(op.osparams_private)
    values = {**export.osparams_private, **given}
    # what is now given as a plain parameter is none of these any more
    return {key: Private(value) for key, value in values.items() if key not in op.osparams} or None


def _template(op: OpInstanceCreate, export: ExportConfig) -> DiskTemplate | None:
    if op.disk_template is not None or export.template is None:
        return op.disk_template
    return DiskTemplate(_read_name(DiskTemplate, export.template, "disk template"))


def _disks(config: Config, op: OpInstanceCreate, export: ExportConfig) -> list[DiskParams]:
    if not op.disks:
        used_names = {disk.name for disk in config.disks.values()}
        return [
            DiskParams(size=disk.size, name=None if disk.name in used_names else disk.name)
            for disk in export.disks
        ]
    if len(op.disks) < len(export.disks):
        raise errors.make_invalid_error(
            f"the export has {len(export.disks)} disks, so the instance needs as many or more, not"
            f" {len(op.disks)}"
        )
    for index, (wanted, disk) in enumerate(zip(op.disks, export.disks)):
        if wanted.size is not None and wanted.size < disk.size:
            raise errors.make_invalid_error(
                f"disk {index} needs at least {disk.size} MiB, as in the export, not {wanted.size}"
            )
    return list(op.disks)


def _nic(config: Config, nic: Mapping[str, str], same_name: bool, say: Say) -> NicParams:
    values = dict(nic)
    network = values.pop("network", None)
    if network is not None:
        found = next((n for n in config.networks.values() if network in (n.uuid, n.name)), None)
        if found is None:
            say(f"The network {network} of a NIC is not in this cluster; the NIC has none")
        else:
            values["network"] = found.name
            for key in _IN_NETWORK:
                values.pop(key, None)
    used_macs = {each.mac for instance in config.instances.values() for each in instance.nics}
    mac = values.pop("mac", None)
    if same_name and mac is not None:
        if mac in used_macs:
            say(f"The MAC address {mac} of the export is in use; the NIC gets another one")
        else:
            values["mac"] = mac
    return NicParams(**values)


def check_mode(op: OpInstanceCreate) -> None:
    """Refuse parameters that make no sense with each other; OpPrereqError."""
    mode = str(op.mode)
    own: dict[str, Sequence[str]] = {
        "import": ("src_node", "src_node_uuid", "src_path", "backup", "repository"),
        "remote-import": ("source_handshake", "source_x509_ca", "source_instance_name"),
    }
    for of, names in own.items():
        for name in names:
            if of != mode and getattr(op, name) is not None:
                raise errors.make_invalid_error(f"{name} makes sense only in mode {of}, not {mode}")
    if mode in own and op.no_install:
        raise errors.make_invalid_error(f"no_install makes no sense in mode {mode}")
    if mode in own and any(disk.adopt for disk in op.disks):
        raise errors.make_invalid_error("disks that are adopted have their content already")
    if mode == "remote-import":
        missing = [name for name in own[mode] if getattr(op, name) is None]
        if missing:
            raise errors.make_invalid_error(f"mode {mode} needs {', '.join(missing)}")
