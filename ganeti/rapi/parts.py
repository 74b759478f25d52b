"""Parts of single objects: tags, the role of a node, the console of an instance."""

from __future__ import annotations

from functools import partial

from ganeti.rapi import failures, schemas
from ganeti.rapi.adapt import ROLES
from ganeti.rapi.reads import NODES
from ganeti.rapi.route import ANYBODY, LOCK, Call, Route

#: Roles by the letter that queries answer with.
_ROLE_OF = {"M": "master", "C": "master-candidate", "R": "regular", "D": "drained", "O": "offline"}
#: Status of a value that a node which is marked offline would have to tell.
_OFFLINE = 4
_TAGGED = {
    "/2/tags": "cluster",
    "/2/disks/{name}/tags": "disk",
    "/2/groups/{name}/tags": "nodegroup",
    "/2/instances/{name}/tags": "instance",
    "/2/networks/{name}/tags": "network",
    "/2/nodes/{name}/tags": "node",
}


def _tags(kind: str, call: Call) -> list[str]:
    return call.luxi.query_tags(kind, call.path.get("name", ""))


def _role(call: Call) -> str:
    rows = call.luxi.query_nodes([call.name()], ["role"])
    if not rows:
        raise failures.make_not_found(f"There is no {NODES.noun} '{call.name()}'")
    return _ROLE_OF[rows[0][0]]


def _snapshots(call: Call) -> object:
    rows = call.luxi.query_instances([call.name()], ["snapshots"])
    if not rows:
        raise failures.make_not_found(f"There is no instance '{call.name()}'")
    return rows[0][0]


def _console(call: Call) -> object:
    name = call.name()
    wanted = ["console", "oper_state"]
    ((status, value), (_, runs)) = call.luxi.query("instance", wanted, ["==", "name", name]).data[0]
    if value is None or not runs:
        reason = "its node is offline" if status == _OFFLINE else "it does not run"
        raise failures.Refused(503, f"Instance '{name}' has no console now: {reason}")
    return value


ROUTES = (
    *(
        Route(
            "GET",
            path,
            f"Tags of the {kind}",
            partial(_tags, kind),
            access=ANYBODY,
            answer=schemas.TEXTS,
            statuses=(404,) if "{" in path else (),
        )
        for path, kind in _TAGGED.items()
    ),
    Route(
        "GET",
        "/2/nodes/{node_name}/role",
        "Role of a node",
        _role,
        access=ANYBODY,
        query=(LOCK,),
        answer={"enum": ["master", *ROLES]},
        statuses=(404,),
    ),
    Route(
        "GET",
        "/2/instances/{instance_name}/snapshots",
        "Snapshots of an instance, the oldest first",
        _snapshots,
        access=ANYBODY,
        answer={"type": "array", "items": schemas.OBJECT},
        statuses=(404,),
    ),
    Route(
        "GET",
        "/2/instances/{instance_name}/console",
        "How to reach the console",
        _console,
        access=("read", "write"),
        answer=schemas.OBJECT,
        statuses=(404,),
    ),
)
