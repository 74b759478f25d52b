"""From our configuration to one that an older version reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import disks, formats, parameters, shape, versions
from ganeti.config.upgrade.report import Report
from ganeti.model import base
from ganeti.model.config import CONTAINERS, Config

_V3_1, _V3_0, _V2_13 = versions.TARGETS
#: Hypervisor, parameter, value that came with a version -> the last version without it.
_NEW_VALUES: Mapping[tuple[str, str, str], int] = {
    ("kvm", "disk_aio", "io_uring"): _V3_0,
    ("kvm", "scsi_controller_type", "dc390"): _V3_1,
}
#: Keys of the cluster that came after a version.
_NEW_KEYS = {_V2_13: ("ssh_key_type", "ssh_key_bits")}


@dataclass(frozen=True)
class Downgraded:
    """Content of a ``config.data`` of an older version, and what is lost on the way."""

    raw: JsonObject
    report: Report


def downgrade(config: Config, target: int) -> Downgraded:
    """A configuration of another version with the same content, as far as it can have it.

    Raises:
        OpPrereqError: something has no place in that version and must not be lost; the text has
            the commands that change it.
    """
    raw = base.to_wire(config.data)
    report = Report()
    _refuse(raw, target)
    _drop_own_objects(raw, report)
    _drop_own_parameters(raw, report)
    _drop_later_keys(raw, target, report)
    if target < _V3_0:
        _forthcoming(raw, report)
        disks.downgrade(raw, report)
    raw["version"] = target
    report.note_change(
        "version", f"{versions.text(config.data.version)} becomes {versions.text(target)}"
    )
    return Downgraded(raw, report)


def _refuse(raw: JsonObject, target: int) -> None:
    found = [*_find_interrupted(raw), *_find_new_values(raw, target), *_find_new_modes(raw, target)]
    if target < _V3_0:
        found += disks.find_mixed_disks(raw)
    if found:
        raise errors.make_state_error(
            f"version {versions.text(target)} cannot have everything that this cluster has:\n"
            + "\n".join(found),
        )


def _find_interrupted(raw: JsonObject) -> Iterator[str]:
    """An instance that a job is making, or was: only this software knows what is left of it."""
    for key, instance in raw["instances"].items():
        if instance.get("creating") is not None:
            name = shape.label(instance, key)
            yield (
                f"the creation of instance {name} was interrupted. Remove what is left of it"
                f" first:\n  gnt-instance remove {name}"
            )


def _find_new_values(raw: JsonObject, target: int) -> Iterator[str]:
    for path, hypervisor, values in parameters.hypervisor_sets(raw):
        for key, value in values.items():
            last = _NEW_VALUES.get((hypervisor, key, str(value)))
            if last is not None and target <= last:
                yield f"{path}/{key} is {value}, which came later. Choose another value first"


def _find_new_modes(raw: JsonObject, target: int) -> Iterator[str]:
    """Mode ``ext`` of NICs came with 3.2; whatever target there is, it has none."""
    for path, values in _nic_sets(raw):
        if values.get("mode") == "ext" and target <= _V3_1:
            yield f"{path} has the mode ext, which came later. Choose another mode first"


def _nic_sets(raw: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    yield "cluster/nicparams", raw["cluster"]["nicparams"].get("default", {})
    for key, group in raw["nodegroups"].items():
        for network, values in group.get("networks", {}).items():
            yield f"nodegroups/{shape.label(group, key)}/networks/{network}", values
    for key, instance in raw["instances"].items():
        for index, nic in enumerate(instance.get("nics", [])):
            yield f"instances/{shape.label(instance, key)}/nics/{index}", nic.get("nicparams", {})


# what is ours alone ----------------------------------------------------------------------------


def _drop_own_objects(raw: JsonObject, report: Report) -> None:
    """Leave out the keys that only our objects have; a warning for each that has a value."""
    _drop(raw, "config", "", report)
    _drop(raw["cluster"], "cluster", "cluster", report)
    for container in CONTAINERS:
        for key, obj in raw.get(container, {}).items():
            path = f"{container}/{shape.label(obj, key)}"
            _drop(obj, container, path, report)
            for index, nic in enumerate(obj.get("nics", []) if container == "instances" else ()):
                _drop(nic, "nic", f"{path}/nics/{index}", report)
            for index, child in enumerate(obj.get("children", []) if container == "disks" else ()):
                _drop(child, "disks", f"{path}/children/{index}", report)


def _drop(obj: JsonObject, kind: str, path: str, report: Report) -> None:
    for key in [key for key in obj if key not in formats.OBJECT_KEYS[kind]]:
        value = obj.pop(key)
        where = f"{path}/{key}".lstrip("/")
        report.note_drop(where, "only this software has it")
        if value:
            report.warn(f"{where} will be forgotten: only this software has it")


def _drop_own_parameters(raw: JsonObject, report: Report) -> None:
    for path, hypervisor, values in parameters.hypervisor_sets(raw):
        known = formats.HV_PARAMS.get(hypervisor)
        if known is None:
            continue
        for key in [key for key in values if key not in known]:
            value = values.pop(key)
            report.note_drop(f"{path}/{key}", "only this software has it")
            if _matters(hypervisor, key, value):
                report.warn(
                    f"{path}/{key} will be forgotten (it is {value}): only this software has it"
                )
    rbd = [("cluster", raw["cluster"])]
    rbd += [
        (f"nodegroups/{shape.label(group, key)}", group) for key, group in raw["nodegroups"].items()
    ]
    for path, obj in rbd:
        user = obj.get("diskparams", {}).get("rbd", {}).pop("user-id", None)
        if user is not None:
            report.note_drop(f"{path}/diskparams/rbd/user-id", "it came with 3.2")
        if user:
            report.warn(f"{path}/diskparams/rbd/user-id will be forgotten (it is {user})")


def _matters(hypervisor: str, key: str, value: object) -> bool:
    """Whether a parameter differs from what the driver does without it."""
    return bool(value != parameters.builtin(hypervisor).get(key))


# what came later -------------------------------------------------------------------------------


def _drop_later_keys(raw: JsonObject, target: int, report: Report) -> None:
    for version, names in _NEW_KEYS.items():
        for key in names if target <= version else ():
            if key in raw["cluster"]:
                del raw["cluster"][key]
                report.note_drop(f"cluster/{key}", "it came later")


def _forthcoming(raw: JsonObject, report: Report) -> None:
    """Reservations for instances are not instances to an older version."""
    for key, instance in list(raw["instances"].items()):
        if not instance.get("forthcoming"):
            continue
        del raw["instances"][key]
        report.note_drop(f"instances/{shape.label(instance, key)}", "it is only planned")
        report.warn(f"planned instance {shape.label(instance, key)} will be forgotten")
        for uuid in instance.get("disks", []):
            if raw["disks"].pop(uuid, None) is not None:
                report.note_drop(f"disks/{uuid}", "its instance is only planned")
