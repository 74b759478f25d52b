"""Parameters of instances: hypervisor, backend and OS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.instance import Instance
from ganeti.opcodes.hidden import REDACTED
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind
from ganeti.query.kinds import hv_params

BOOL, NUMBER, UNIT, OTHER = FieldKind.BOOL, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.OTHER

#: backend parameter -> title, kind, description
BACKEND: Mapping[str, tuple[str, FieldKind, str]] = {
    "always_failover": (
        "be/always_failover",
        BOOL,
        "Whether the instance is moved by failover even when it could be migrated",
    ),
    "auto_balance": ("Auto_balance", BOOL, "Whether balancing may move the instance"),
    "maxmem": ("ConfigMaxMem", UNIT, "Memory that the instance gets at most"),
    "minmem": ("ConfigMinMem", UNIT, "Memory that the instance gets at least"),
    "spindle_use": ("be/spindle_use", NUMBER, "Share of a spindle that the instance needs"),
    "vcpus": ("ConfigVCPUs", NUMBER, "Number of virtual processors"),
}


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields of all parameters."""
    for name, (title, value_kind, doc) in BACKEND.items():
        kind.add(Field(f"be/{name}", title, value_kind, doc, _backend_param(name)))
    for name, (value_kind, title, doc) in hv_params.TABLE.items():
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

        def column(instance: Instance) -> Cell:
            own = instance.beparams
            return (0, own[name]) if name in own else inherited

        return column

    return getter


# hypervisor ----------------------------------------------------------------------------------


def inherited_hvparams(ctx: Context) -> Callable[[Instance], Mapping[str, Any]]:
    """What an instance inherits; worked out once for each hypervisor and OS."""
    known: dict[tuple[str | None, str], Mapping[str, Any]] = {}

    def inherited(instance: Instance) -> Mapping[str, Any]:
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
        inherited = ctx.shared(inherited_hvparams)

        def column(instance: Instance) -> Cell:
            own = instance.hvparams
            if name in own:
                return (0, own[name])
            params = inherited(instance)
            return (0, params[name]) if name in params else UNAVAIL

        return column

    return getter


def _hvparams(ctx: Context) -> Column[Instance]:
    inherited = ctx.shared(inherited_hvparams)

    def column(instance: Instance) -> Cell:
        filled = {**inherited(instance), **instance.hvparams}
        return (0, {key: filled[key] for key in filled if key not in hv_params.GLOBALS})

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
