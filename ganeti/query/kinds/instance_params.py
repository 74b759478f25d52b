"""Parameters of instances: hypervisor, backend and OS.

Importing this module imports the drivers of all hypervisors, because their parameters are the
fields ``hv/<name>``. Only the master does that, when it is asked for instances first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from msgspec import Meta

from ganeti.base import typed
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.instance import Instance
from ganeti.model.params import GROUP_BACKEND_PARAMS, SIZE_PARAMS, BackendParams
from ganeti.opcodes.describe import peel
from ganeti.opcodes.hidden import REDACTED
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind

BOOL, NUMBER, UNIT, OTHER = FieldKind.BOOL, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.OTHER

#: Backend parameters whose titles are not the names of their fields. Source: Ganeti, but for "ha".
_BACKEND_TITLES: Mapping[str, str] = {
    "auto_balance": "Auto_balance",
    "ha": "HA",
    "ha_attempts": "HaAttempts",
    "maxmem": "ConfigMaxMem",
    "minmem": "ConfigMinMem",
    "vcpus": "ConfigVCPUs",
}

#: Hypervisor parameters whose titles are not the names of their fields. Source: Ganeti.
_TITLES: Mapping[str, str] = {
    "acpi": "ACPI",
    "boot_order": "Boot_order",
    "cdrom_image_path": "CDROM_image_path",
    "cpu_type": "cpu_type",
    "disk_type": "Disk_type",
    "initrd_path": "Initrd_path",
    "kernel_path": "Kernel_path",
    "nic_type": "NIC_type",
    "pae": "PAE",
    "pci_pass": "pci_pass",
    "vnc_bind_address": "VNC_bind_address",
}


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields of all parameters."""
    for item in typed.fields(BackendParams):
        name, (plain, metas) = item.name, peel(item.type)
        value_kind = UNIT if name in SIZE_PARAMS else _field_kind(plain)
        title = _BACKEND_TITLES.get(name, f"be/{name}")
        doc = _last_description(metas)
        kind.add(Field(f"be/{name}", title, value_kind, doc, _backend_param(name)))
    for name, (value_kind, doc) in hypervisor_params().items():
        title = _TITLES.get(name, f"hv/{name}")
        kind.add(Field(f"hv/{name}", title, value_kind, doc, _hypervisor_param(name)))
    for name, title, doc, getter in (
        ("beparams", "BackendParameters", "All backend parameters, complete", _beparams),
        ("hvparams", "HypervisorParameters", "All hypervisor parameters, complete", _hvparams),
        ("osparams", "OpSysParameters", "All OS parameters, without private values", _osparams),
    ):
        kind.add(Field(name, title, OTHER, doc, getter))
    for name, title, doc, attribute in (
        ("custom_beparams", "CustomBackendParameters", "Backend", "beparams"),
        ("custom_hvparams", "CustomHypervisorParameters", "Hypervisor", "hvparams"),
        ("custom_osparams", "CustomOpSysParameters", "Public OS", "osparams"),
    ):
        text = f"{doc} parameters set for this instance itself"
        kind.attribute(name, title, OTHER, text, attribute)


# backend -------------------------------------------------------------------------------------


def _beparams(ctx: Context) -> Column[Instance]:
    filled = ctx.config.beparams
    return lambda instance: (0, filled(instance))


def _backend_param(name: str) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        default = ctx.config.cluster.beparams.get("default", {})
        inherited: Cell = (0, default[name]) if name in default else UNAVAIL
        of_group = ctx.config.group_beparams if name in GROUP_BACKEND_PARAMS else lambda _: {}

        def column(instance: Instance) -> Cell:
            for own in (instance.beparams, of_group(instance)):
                if name in own:
                    return (0, own[name])
            return inherited

        return column

    return getter


# hypervisor ----------------------------------------------------------------------------------


def hypervisor_params() -> dict[str, tuple[FieldKind, str]]:
    """Kind and description of each parameter that instances have, from all drivers.

    Parameters that are set for the whole cluster are left out. Where several hypervisors have a
    parameter, the first in the order of their names describes it.
    """
    found: dict[str, tuple[FieldKind, str]] = {}
    for hypervisor in HYPERVISORS.names():
        driver = HYPERVISORS.get(hypervisor)
        for info in typed.fields(driver.params):
            if info.name not in driver.traits.global_params:
                kind, metas = peel(info.type)
                doc = _last_description(metas) or f"Parameter {info.name} of {hypervisor}"
                found.setdefault(info.name, (_field_kind(kind), doc))
    return found


def _last_description(metas: Sequence[Meta]) -> str:
    """The description that stands nearest to the field; empty without one."""
    return next((meta.description for meta in reversed(metas) if meta.description), "")


def _field_kind(kind: Any) -> FieldKind:
    """Texts are of the kind OTHER, because some of them may be null."""
    values = get_args(kind)
    return {bool: BOOL, int: NUMBER}.get(type(values[0]) if values else kind, OTHER)


def _global_params(hypervisor: str | None) -> frozenset[str]:
    return HYPERVISORS.get(hypervisor).traits.global_params if hypervisor else frozenset()


def inherited_hvparams(ctx: Context) -> Callable[[Instance], Mapping[str, object]]:
    """Return a function for inherited parameters; it fills them once for each hypervisor and OS."""
    known: dict[tuple[str | None, str], Mapping[str, object]] = {}

    def inherited(instance: Instance) -> Mapping[str, object]:
        key = (instance.hypervisor, instance.os)
        params = known.get(key)
        if params is None:
            params = {}
            if instance.hypervisor is not None:
                params = ctx.config.hvparams_for(instance.hypervisor, instance.os, {})
            known[key] = params
        return params

    return inherited


def _hypervisor_param(name: str) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        inherited = ctx.compute_once(inherited_hvparams)

        def column(instance: Instance) -> Cell:
            own = instance.hvparams
            if name in own:
                return (0, own[name])
            params = inherited(instance)
            return (0, params[name]) if name in params else UNAVAIL

        return column

    return getter


def _hvparams(ctx: Context) -> Column[Instance]:
    inherited = ctx.compute_once(inherited_hvparams)

    def column(instance: Instance) -> Cell:
        filled = {**inherited(instance), **instance.hvparams}
        left_out = _global_params(instance.hypervisor)
        return (0, {key: filled[key] for key in filled if key not in left_out})

    return column


# OS ------------------------------------------------------------------------------------------


def _osparams(ctx: Context) -> Column[Instance]:
    config = ctx.config
    private = config.cluster.osparams_private_cluster

    def column(instance: Instance) -> Cell:
        os_name = instance.os
        hidden = {
            **private.get(os_name.partition("+")[0], {}),
            **private.get(os_name, {}),
            **instance.osparams_private,
        }
        filled = config.osparams_for(os_name, instance.osparams)
        return (0, {**filled, **dict.fromkeys(hidden, REDACTED)})

    return column
