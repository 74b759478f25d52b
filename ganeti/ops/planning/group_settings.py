"""Names of node groups, and the results of changes of their parameters. Pure."""

from __future__ import annotations

import re

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import parameters, policy_parameters
from ganeti.model.config import Config
from ganeti.model.enums import AllocPolicy
from ganeti.model.group import NodeGroup
from ganeti.opcodes.group import OpGroupAdd, OpGroupSetParams

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_NAME = 255


def check_name(config: Config, name: str, *, but: str | None = None) -> None:
    """Refuse a name that is taken (by another group than ``but``) or cannot be one."""
    if (
        len(name) > _MAX_NAME
        or name.startswith("-")
        or not name.isprintable()
        or any(char.isspace() or char in "/," for char in name)
        or _UUID.fullmatch(name)
    ):
        raise errors.make_invalid_error(
            f"'{name[:_MAX_NAME]}' cannot be the name of a node group: spaces, '/', ',' and a"
            " '-' at its beginning are not allowed, nor is the form of a UUID"
        )
    if any(group.name == name and group.uuid != but for group in config.groups.values()):
        raise errors.make_exists_error(f"there is a node group '{name}' already")


def values(config: Config, group: NodeGroup, op: OpGroupAdd | OpGroupSetParams) -> JsonObject:
    """Fields of the group that differ after the operation.

    Raises:
        OpPrereqError, ParameterError: a value that cannot be used.
    """
    found: JsonObject = {}
    if op.alloc_policy is not None:
        found["alloc_policy"] = AllocPolicy(str(op.alloc_policy))
    if op.ndparams is not None:
        found["ndparams"] = parameters.node(group.ndparams, op.ndparams)
    if op.beparams is not None:
        found["beparams"] = parameters.group_backend(group.beparams, op.beparams)
    if op.diskparams is not None:
        given = {str(name): change for name, change in op.diskparams.items()}
        found["diskparams"] = parameters.disk(group.diskparams, given)
    if op.ipolicy is not None:
        found["ipolicy"] = policy_parameters.group_policy(
            config.cluster.ipolicy, group.ipolicy, op.ipolicy
        )
    if op.hv_state is not None:
        found["hv_state_static"] = parameters.hv_state(group.hv_state_static, op.hv_state)
    if op.disk_state is not None:
        found["disk_state_static"] = parameters.disk_state(group.disk_state_static, op.disk_state)
    return {name: value for name, value in found.items() if getattr(group, name) != value}
