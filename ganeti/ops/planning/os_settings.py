"""New settings of the cluster for guest OSes."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.config import parameters
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import params
from ganeti.model.config import Config
from ganeti.opcodes.cluster import OpClusterSetParams, OsListChanges
from ganeti.opcodes.enums import DdmSimple
from ganeti.opcodes.hidden import reveal_all


def os_parameters(config: Config, op: OpClusterSetParams) -> JsonObject:
    cluster = config.cluster
    values: JsonObject = {}
    if op.os_hvp is not None:
        values["os_hvp"] = os_hypervisor_values(cluster.os_hvp, op.os_hvp)
    if op.osparams is not None:
        values["osparams"] = _merge_by_os(cluster.osparams, op.osparams)
    if op.osparams_private_cluster is not None:
        revealed = {name: reveal_all(given) for name, given in op.osparams_private_cluster.items()}
        values["osparams_private_cluster"] = _merge_by_os(
            cluster.osparams_private_cluster, revealed
        )
    public = values.get("osparams", cluster.osparams)
    for name, private in values.get(
        "osparams_private_cluster", cluster.osparams_private_cluster
    ).items():
        both = sorted(set(private) & set(public.get(name, {})))
        if both:
            raise parameters.refuse(
                f"OS parameters of {name} are public and private at once: {', '.join(both)}"
            )
    return values


def _merge_by_os(
    current: dict[str, JsonObject], change: dict[str, JsonObject]
) -> dict[str, JsonObject]:
    result: dict[str, JsonObject] = {name: dict(own) for name, own in current.items()}
    for name, given in change.items():
        own = params.drop_defaults(given)
        result[name] = parameters.merge(result.get(name, {}), given, own)
    return {name: own for name, own in result.items() if own}


def os_hypervisor_values(
    current: dict[str, dict[str, JsonObject]], change: dict[str, JsonObject]
) -> dict[str, dict[str, JsonObject]]:
    """Overrides by OS and hypervisor; null or false for a hypervisor removes its overrides."""
    result = {name: {hv: dict(own) for hv, own in by.items()} for name, by in current.items()}
    for os_name, by_hypervisor in change.items():
        table = result.setdefault(os_name, {})
        for hypervisor, given in by_hypervisor.items():
            HYPERVISORS.get(hypervisor)
            if given is None or given is False:
                table.pop(hypervisor, None)
            elif isinstance(given, dict):
                table[hypervisor] = parameters.os_hypervisor(
                    hypervisor, table.get(hypervisor, {}), given
                )
            else:
                raise parameters.refuse(
                    f"hypervisor parameters of OS {os_name} for {hypervisor} must be a mapping"
                )
    pruned = {name: {hv: own for hv, own in by.items() if own} for name, by in result.items()}
    return {name: by for name, by in pruned.items() if by}


def os_lists(config: Config, op: OpClusterSetParams, notes: list[str]) -> JsonObject:
    values: JsonObject = {}
    for field, change in (("hidden_os", op.hidden_os), ("blacklisted_os", op.blacklisted_os)):
        if change is not None:
            word = field.removesuffix("_os")
            values[field] = _edit(getattr(config.cluster, field), change, word, notes)
    return values


def _edit(
    current: tuple[str, ...], change: OsListChanges, word: str, notes: list[str]
) -> tuple[str, ...]:
    result = list(current)
    for action, name in change:
        if action is DdmSimple.ADD:
            if name in result:
                notes.append(f"OS {name} is {word} already")
            else:
                result.append(name)
        elif action is DdmSimple.REMOVE:
            if name in result:
                result.remove(name)
            else:
                notes.append(f"OS {name} is not {word}")
        else:
            raise parameters.refuse(
                f"invalid action '{action}' in {word}_os; choose from"
                f" {DdmSimple.ADD}, {DdmSimple.REMOVE}"
            )
    return tuple(result)
