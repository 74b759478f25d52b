"""Checks of the parameter sets of a cluster, its groups and its nodes. Pure.

Used when a cluster is made and when it is changed, so that both accept the same. A *change* is
what a user sets: only the parameters that differ, text where it comes from a command line, and
``default`` for "what is inherited".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import params
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate, NicMode
from ganeti.model.node_state import DISK_STATE_KEYS, HV_STATE_KEYS, VOLUMES
from ganeti.model.params import BackendParams, NicParams, NodeParams
from ganeti.storage.registry import TEMPLATES, default_params

_MAC_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")
#: Name of a bridge, a switch or a routing table.
_LINK = re.compile(r"[^\s/]*")
#: Modes that put NICs on a bridge or switch, which may have VLANs.
_SWITCHED = frozenset({NicMode.BRIDGED, NicMode.OPENVSWITCH})
_VLAN = re.compile(r"\.?\d+(:\d+)*|(:\d+)+")


def refuse(text: str) -> errors.OpPrereqError:
    """The error for a value that cannot be used."""
    return errors.make_invalid_error(text)


# lists of names ------------------------------------------------------------------------------


def templates(chosen: Sequence[str]) -> tuple[str, ...]:
    """Disk templates to enable, each once; OpPrereqError for unknown ones."""
    if not chosen:
        raise refuse("at least one disk template must be enabled")
    for name in chosen:
        if name not in set(DiskTemplate):
            raise refuse(f"unknown disk template '{name}'; choose from {', '.join(DiskTemplate)}")
    return tuple(dict.fromkeys(str(name) for name in chosen))


def hypervisors(chosen: Sequence[str]) -> tuple[str, ...]:
    """Hypervisors to enable, each once.

    Raises:
        OpPrereqError: there is none.
        ParameterError: one has no driver.
    """
    if not chosen:
        raise refuse("at least one hypervisor must be enabled")
    for name in chosen:
        HYPERVISORS.get(name)
    return tuple(dict.fromkeys(str(name) for name in chosen))


def mac_prefix(text: str) -> str:
    """Three bytes in lower case; OpPrereqError for anything else or a multicast address."""
    lowered = text.lower()
    if not _MAC_PREFIX.fullmatch(lowered):
        raise refuse(
            f"'{text}' is not a prefix of MAC addresses: expected three bytes as in aa:00:00"
        )
    if int(lowered[:2], 16) & 1:
        raise refuse(f"'{text}' is a prefix of multicast addresses, which no NIC has")
    return lowered


# parameter sets ------------------------------------------------------------------------------


def merge(
    current: Mapping[str, object], change: Mapping[str, object], own: Mapping[str, object]
) -> JsonObject:
    """``current`` without the parameters that ``change`` resets, and with the checked ``own``."""
    kept = {key: value for key, value in current.items() if change.get(key) != params.VALUE_DEFAULT}
    return {**kept, **own}


def _apply_change(
    schema: type[msgspec.Struct],
    current: Mapping[str, object],
    change: Mapping[str, object],
    what: str,
) -> JsonObject:
    """A partial set after a change: a parameter that is reset is left out."""
    change = params.drop_retired(change)
    params.refuse_unknown(schema, change, what)
    own = params.check(schema, params.drop_defaults(change), what)
    return merge(current, change, own)


def backend(current: Mapping[str, object], change: Mapping[str, object]) -> JsonObject:
    """Complete backend parameters; reset ones have their builtin value.

    Raises:
        ParameterError, OpPrereqError: a wrong name or value, or minmem above maxmem.
    """
    partial = _apply_change(BackendParams, current, params.expand_backend(change), "backend")
    full = params.check(BackendParams, partial, "backend", partial=False)
    _check_memory(full)
    return full


def group_backend(current: Mapping[str, object], change: Mapping[str, object]) -> JsonObject:
    """Backend parameters of a node group after a change; it can have those of recovery only.

    Raises:
        ParameterError: a wrong name or value.
    """
    other = sorted(change.keys() - set(params.GROUP_BACKEND_PARAMS))
    if other:
        raise errors.ParameterError(
            f"a node group has no backend parameter '{other[0]}'; choose from"
            f" {', '.join(params.GROUP_BACKEND_PARAMS)}"
        )
    return _apply_change(BackendParams, current, change, "backend")


def change_own_backend(
    config: Config, current: Mapping[str, object], change: Mapping[str, object]
) -> JsonObject:
    """Own backend parameters of an instance after a change; the others come from the cluster.

    Raises:
        ParameterError, OpPrereqError: a wrong name or value, or minmem above maxmem.
    """
    own = _apply_change(BackendParams, current, params.expand_backend(change), "backend")
    _check_memory(config.beparams_for(own))
    return own


def _check_memory(full: JsonObject) -> None:
    if full["minmem"] > full["maxmem"]:
        raise refuse(f"minmem {full['minmem']} is larger than maxmem {full['maxmem']}")


def nic(current: Mapping[str, object], change: Mapping[str, object]) -> JsonObject:
    """Complete parameters of NICs; OpPrereqError, ParameterError."""
    partial = _apply_change(NicParams, current, change, "NIC")
    full = params.check(NicParams, partial, "NIC", partial=False)
    check_nic(full)
    return full


def check_nic(full: Mapping[str, Any], what: str = "") -> None:
    """Refuse complete parameters of a NIC that do not fit together.

    ``what`` names the NIC at the start of the message, as in ``"NIC 0: "``.

    Raises:
        OpPrereqError: unknown mode, an invalid or missing link, an invalid VLAN, or one where
            NICs have none.
    """
    mode, link, vlan = full["mode"], full["link"], full["vlan"]
    if mode not in set(NicMode):
        raise refuse(f"{what}unknown NIC mode '{mode}'; choose from {', '.join(NicMode)}")
    if not _LINK.fullmatch(link):
        raise refuse(f"{what}NIC link {link!r} has blanks, line breaks or slashes")
    if mode in _SWITCHED and not link:
        raise refuse(f"{what}NIC mode {mode} needs a link: the name of a bridge or switch")
    if vlan and mode not in _SWITCHED:
        raise refuse(f"{what}NIC mode {mode} has no VLAN")
    if vlan and not _VLAN.fullmatch(vlan):
        raise refuse(
            f"{what}'{vlan}' is not a VLAN: expected a form like 10, .10, :10:20 or .10:20"
        )


def node(
    current: Mapping[str, object], change: Mapping[str, object], *, single: bool = False
) -> JsonObject:
    """Own node parameters of a group or (``single``) of a node after a change.

    Raises:
        ParameterError: an unknown name or a wrong value.
        OpPrereqError: a parameter that is the same for a whole group, given for one node.
    """
    wrong = sorted(set(change) & params.GLOBAL_NODE_PARAMS) if single else []
    if wrong:
        raise refuse(
            f"node parameters of a whole group or cluster, not of a node: {', '.join(wrong)}"
        )
    return _apply_change(NodeParams, current, change, "node")


def cluster_node(current: Mapping[str, object], change: Mapping[str, object]) -> JsonObject:
    """Complete node parameters of the cluster."""
    return params.check(NodeParams, node(current, change), "node", partial=False)


def hypervisor(
    name: str, current: Mapping[str, object], change: Mapping[str, object]
) -> JsonObject:
    """Complete parameters of one hypervisor; ParameterError."""
    driver = HYPERVISORS.get(name)
    what = f"hypervisor {name}"
    return params.check(
        driver.params, _apply_change(driver.params, current, change, what), what, partial=False
    )


def os_hypervisor(
    name: str, current: Mapping[str, object], change: Mapping[str, object]
) -> JsonObject:
    """Own hypervisor parameters of an OS; those of the whole cluster are refused."""
    driver = HYPERVISORS.get(name)
    wrong = sorted(set(change) & driver.traits.global_params)
    if wrong:
        raise refuse(f"parameters of the whole cluster, not of an OS: {', '.join(wrong)}")
    return _apply_change(driver.params, current, change, f"hypervisor {name}")


def disk(
    current: Mapping[str, Mapping[str, object]], change: Mapping[str, Mapping[str, object]]
) -> dict[str, JsonObject]:
    """Own disk parameters by template after a change; templates that have none are left out.

    Raises:
        OpPrereqError: an unknown template. ParameterError: an unknown name or a wrong value.
    """
    result = {str(name): dict(values) for name, values in current.items()}
    builtin = default_params()
    for name, given in change.items():
        known = builtin.get(str(name))
        if known is None:
            raise refuse(
                f"unknown disk template '{name}' in disk parameters; choose from"
                f" {', '.join(builtin)}"
            )
        for key in given:
            if key not in known:
                raise errors.ParameterError(
                    f"unknown parameter '{key}' of disk template {name}; choose from"
                    f" {', '.join(known) or 'none'}"
                )
        own = {
            key: _convert(value, type(known[key]), f"'{key}' of disk template {name}")
            for key, value in given.items()
            if value != params.VALUE_DEFAULT
        }
        result[str(name)] = _check_template(str(name), merge(result.get(str(name), {}), given, own))
    return {name: values for name, values in result.items() if values}


def _check_template(template: str, values: JsonObject) -> JsonObject:
    """The same parameters, if the template's driver can do something with them."""
    if template in TEMPLATES:
        try:
            typed.convert(values, TEMPLATES.get(template).params)
        except msgspec.ValidationError as err:
            raise errors.ParameterError(f"disk template {template}: {err}") from err
    return values


def cluster_disk(
    current: Mapping[str, Mapping[str, object]], change: Mapping[str, Mapping[str, object]]
) -> dict[str, JsonObject]:
    """Complete disk parameters of every template."""
    own = disk(current, change)
    return {name: {**values, **own.get(name, {})} for name, values in default_params().items()}


def _convert(value: object, wanted: type, what: str) -> Any:
    if wanted is bool and isinstance(value, str):
        return params.boolean(value, f"parameter {what}")
    try:
        return typed.convert(value, wanted, strict=False)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"parameter {what}: {err}") from err


# instance policy -----------------------------------------------------------------------------


# static state --------------------------------------------------------------------------------


def hv_state(current: Mapping[str, Any] | None, change: Mapping[str, object]) -> JsonObject:
    """State of hypervisors ``{hypervisor: {key: number}}`` after a change.

    Raises:
        ParameterError: an unknown hypervisor or key, or not an integer.
    """
    result: JsonObject = {name: dict(values) for name, values in (current or {}).items()}
    for name, given in change.items():
        HYPERVISORS.get(name)
        result[name] = _state(result.get(name, {}), given, HV_STATE_KEYS, f"state of {name}")
    return {name: values for name, values in result.items() if values}


def disk_state(current: Mapping[str, Any] | None, change: Mapping[str, object]) -> JsonObject:
    """State of volume groups ``{"plain": {name: {key: MiB}}}`` after a change.

    Raises:
        ParameterError: another kind of storage, an unknown key, or not an integer.
    """
    result: JsonObject = {
        kind: {unit: dict(values) for unit, values in units.items()}
        for kind, units in (current or {}).items()
    }
    for kind, units in change.items():
        if kind != VOLUMES:
            raise errors.ParameterError(
                f"storage state: only volume groups have one, as {VOLUMES}/NAME, not '{kind}'"
            )
        if not isinstance(units, Mapping):
            raise errors.ParameterError(f"storage state of {kind} must name storage units")
        table = result.setdefault(kind, {})
        for unit, given in units.items():
            what = f"state of {kind}/{unit}"
            table[unit] = _state(table.get(unit, {}), given, DISK_STATE_KEYS, what)
    return result


def _state(
    current: Mapping[str, object], given: object, known: Iterable[str], what: str
) -> JsonObject:
    if not isinstance(given, Mapping):
        raise errors.ParameterError(f"{what} must be a mapping of parameters")
    for key in given:
        if key not in known:
            raise errors.ParameterError(
                f"unknown parameter '{key}' in {what}{nearest(key, known)};"
                f" choose from {', '.join(known)}"
            )
    own = {
        key: _convert(value, int, f"'{key}' in {what}")
        for key, value in given.items()
        if value != params.VALUE_DEFAULT
    }
    for key, number in own.items():
        if number < 0:
            raise errors.ParameterError(f"'{key}' in {what} is {number}, which is below zero")
    return merge(current, given, own)
