"""Differences of requests from the opcodes they stand for; data beside the rule in ``writes``.

The rule: the path and the query string set parameters of the opcode, the body is an object with
the others. An argument of the query string is called like its parameter with hyphens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.enums import ExportMode, MigrationMode, RebootType, StorageType
from ganeti.rapi import adapt
from ganeti.rapi.route import ANYBODY, Arg, ArgKind, Call

Prepare = Callable[[Call, JsonObject], JsonObject]


def _flag(name: str, doc: str, parameter: str = "") -> Arg:
    return Arg(name, ArgKind.FLAG, doc, parameter or name.replace("-", "_"))


def _text(name: str, doc: str, parameter: str = "", **more: Any) -> Arg:
    return Arg(name, ArgKind.TEXT, doc, parameter or name, **more)


@dataclass(frozen=True)
class Difference:
    """Differences of one request.

    ``rename`` maps names in the body to parameters, ``fixed`` are parameters nobody can set,
    ``forbidden`` ones that are refused although the opcode has them. ``prepare`` gets the call and
    the object to be, before it is checked, and returns the object. With ``body_ignored`` only
    ``depends`` is taken from a body.
    """

    query: tuple[Arg, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    prepare: Prepare | None = None
    body_ignored: bool = False
    body_required: bool = False
    access: tuple[str, ...] = ("write",)


DRY_RUN = _flag("dry-run", "1 to check only whether it could be done")
_FORCE = _flag("force", "1 to do it in spite of warnings")
_NO_REMEMBER = _flag("no_remember", "1 to leave the wanted state in the configuration as it is")
_STORAGE_TYPE = _text("storage_type", "Kind of the storage", choices=tuple(map(str, StorageType)))
_STORAGE_NAME = _text("name", "Name of the storage unit", required=True)
_PLAIN = Difference()
_DRY = Difference(query=(DRY_RUN,))


def _tags(kind: str) -> Difference:
    tag = Arg("tag", ArgKind.REPEATED, "The tags, one in each argument", "tags", required=True)
    return Difference(query=(tag, DRY_RUN), fixed={"kind": kind}, body_ignored=True)


#: By method and path; what is not listed follows the rule alone.
DIFFERENCES: Mapping[str, Difference] = {
    "PUT /2/modify": Difference(forbidden=frozenset({"compression_tools"})),
    # groups
    "POST /2/groups": Difference(query=(DRY_RUN,), rename={"name": "group_name"}),
    "DELETE /2/groups/{group_name}": Difference(query=(DRY_RUN,), body_ignored=True),
    "PUT /2/groups/{group_name}/assign-nodes": Difference(query=(DRY_RUN, _FORCE)),
    "PUT /2/groups/{group_name}/modify": Difference(
        rename={
            "custom_ndparams": "ndparams",
            "custom_ipolicy": "ipolicy",
            "custom_diskparams": "diskparams",
        }
    ),
    "PUT /2/groups/{group_name}/rename": _DRY,
    # disks
    "POST /2/disks": _DRY,
    "DELETE /2/disks/{disk_name}": Difference(query=(DRY_RUN,), body_ignored=True),
    # instances
    "POST /2/instances": Difference(
        query=(DRY_RUN,), rename=adapt.CREATE_NAMES, prepare=adapt.creation
    ),
    "POST /2/instances-multi-alloc": Difference(query=(DRY_RUN,), prepare=adapt.creations),
    "POST /2/instances/{instance_name}/create": Difference(
        query=(DRY_RUN,), rename=adapt.CREATE_NAMES, fixed={"commit": True}, prepare=adapt.commit
    ),
    "DELETE /2/instances/{instance_name}": Difference(
        query=(DRY_RUN,), fixed={"ignore_failures": False}
    ),
    "PUT /2/instances/{instance_name}/activate-disks": Difference(
        query=(_flag("ignore_size", "1 to continue although a disk has another size"),),
        body_ignored=True,
    ),
    "PUT /2/instances/{instance_name}/deactivate-disks": Difference(
        query=(_FORCE,), body_ignored=True
    ),
    "POST /2/instances/{instance_name}/disk/{disk}/grow": Difference(prepare=adapt.growth),
    "PUT /2/instances/{instance_name}/export": Difference(rename={"destination": "target_node"}),
    "GET /2/instances/{instances}/info": Difference(
        query=(_flag("static", "1 to ask no node"),), body_ignored=True, access=ANYBODY
    ),
    "PUT /2/instances/{instance_name}/modify": Difference(
        rename={"custom_beparams": "beparams", "custom_hvparams": "hvparams"},
        prepare=adapt.usb_devices,
        body_required=True,
    ),
    "PUT /2/instances/{instance_name}/prepare-export": Difference(
        query=(_text("mode", "Where the export goes", choices=tuple(map(str, ExportMode))),),
        body_ignored=True,
    ),
    "POST /2/instances/{instance_name}/reboot": Difference(
        query=(
            _text(
                "type", "How; hard without it", "reboot_type", choices=tuple(map(str, RebootType))
            ),
            _flag("ignore_secondaries", "1 to start although the secondary is missing"),
            DRY_RUN,
        ),
        prepare=adapt.reboot,
    ),
    "POST /2/instances/{instance_name}/replace-disks": Difference(
        query=tuple(
            Arg(name, ArgKind.TEXT, "As in the body, from old clients; then there is no body")
            for name in adapt.LEGACY_REPLACEMENT
        ),
        prepare=adapt.replacement,
    ),
    "PUT /2/instances/{instance_name}/shutdown": Difference(query=(_NO_REMEMBER, DRY_RUN)),
    "PUT /2/instances/{instance_name}/startup": Difference(
        query=(_FORCE, DRY_RUN, _NO_REMEMBER), body_ignored=True
    ),
    # snapshots
    "POST /2/instances/{instance_name}/snapshots": Difference(
        query=(DRY_RUN,), rename={"name": "snapshot_name"}
    ),
    "PUT /2/instances/{instance_name}/snapshots/{snapshot_name}/revert": _DRY,
    "DELETE /2/instances/{instance_name}/snapshots/{snapshot_name}": Difference(
        query=(
            _flag("ignore_failures", "1 to forget copies that could not be removed"),
            DRY_RUN,
        )
    ),
    # networks
    "POST /2/networks": Difference(query=(DRY_RUN,), rename={"name": "network_name"}),
    "DELETE /2/networks/{network_name}": _DRY,
    "PUT /2/networks/{network_name}/connect": _DRY,
    "PUT /2/networks/{network_name}/disconnect": _DRY,
    "PUT /2/networks/{network_name}/rename": _DRY,
    # notifications
    "POST /2/notifications": Difference(query=(DRY_RUN,), rename={"name": "notification_name"}),
    "PUT /2/notifications/{notification_name}/modify": _DRY,
    "DELETE /2/notifications/{notification_name}": _DRY,
    "POST /2/notifications/{notification_name}/test": _DRY,
    # images
    "POST /2/images": Difference(query=(DRY_RUN,), rename={"name": "image_name"}),
    "DELETE /2/images/{image_name}": _DRY,
    "PUT /2/images/{image_name}/rename": _DRY,
    # nodes
    "POST /2/nodes/{node_name}/evacuate": _DRY,
    "POST /2/nodes/{node_name}/migrate": Difference(
        query=(
            Arg("live", ArgKind.FLAG, "1 for live, 0 for non-live; then the body is ignored"),
            Arg(
                "mode",
                ArgKind.TEXT,
                "Kind of migration; then the body is ignored",
                choices=tuple(map(str, MigrationMode)),
            ),
        ),
        prepare=adapt.migration,
    ),
    "POST /2/nodes/{node_name}/powercycle": Difference(query=(_FORCE,)),
    "PUT /2/nodes/{node_name}/role": Difference(
        query=(
            _FORCE,
            _flag("auto-promote", "1 to promote another node if a candidate is missing"),
        ),
        prepare=adapt.role,
        body_required=True,
    ),
    "GET /2/nodes/{nodes}/storage": Difference(
        query=(
            _STORAGE_TYPE,
            Arg("output_fields", ArgKind.LIST, "Fields to return", "output_fields", required=True),
        ),
        body_ignored=True,
    ),
    "PUT /2/nodes/{node_name}/storage/modify": Difference(
        query=(
            _STORAGE_TYPE,
            _STORAGE_NAME,
            _flag("allocatable", "Whether new disks may use this storage unit; absent: unchanged"),
        ),
        prepare=adapt.storage_changes,
        body_ignored=True,
    ),
    "PUT /2/nodes/{node_name}/storage/repair": Difference(
        query=(_STORAGE_TYPE, _STORAGE_NAME), body_ignored=True
    ),
    # reservations
    "POST /2/reservations": Difference(query=(DRY_RUN,), prepare=adapt.reservations),
    # tags
    **{
        f"{method} {path}": _tags(kind)
        for method in ("PUT", "DELETE")
        for path, kind in (
            ("/2/tags", "cluster"),
            ("/2/disks/{name}/tags", "disk"),
            ("/2/groups/{name}/tags", "nodegroup"),
            ("/2/instances/{name}/tags", "instance"),
            ("/2/networks/{name}/tags", "network"),
            ("/2/nodes/{name}/tags", "node"),
        )
    },
}


def difference(request: str) -> Difference:
    """The difference of a request (``METHOD path``)."""
    return DIFFERENCES.get(request, _PLAIN)
