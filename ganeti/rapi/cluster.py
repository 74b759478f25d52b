"""Requests about the cluster as a whole: version, features, facts, OS definitions."""

from __future__ import annotations

from typing import Any

from ganeti import constants
from ganeti.base.json_types import JsonObject
from ganeti.rapi import schemas
from ganeti.rapi.route import ANYBODY, BULK, Call, Route

RAPI_VERSION = 2
#: Forms that creation, reinstallation, evacuation and migration accept; clients decide by it.
FEATURES = [
    "instance-create-reqv1",
    "instance-reinstall-reqv1",
    "node-evac-res1",
    "node-migrate-reqv1",
]
_INFO_ALIASES = {"volume_group_name": "vg_name", "drbd_usermode_helper": "drbd_helper"}
OS_FIELDS = (
    "name",
    "valid",
    "variants",
    "parameters",
    "api_versions",
    "blacklisted",
    "hidden",
    "trusted",
)


def _read_nothing(_call: Call) -> None:
    return None


def _version(_call: Call) -> int:
    return RAPI_VERSION


def _features(_call: Call) -> list[str]:
    return FEATURES


def _info(call: Call) -> JsonObject:
    facts = call.luxi.query_cluster_info()
    more = {new: facts[old] for old, new in _INFO_ALIASES.items() if old in facts}
    return {**facts, **more}


def _os(call: Call) -> list[Any]:
    found = call.luxi.query("os", OS_FIELDS).data
    rows = [dict(zip(OS_FIELDS, (value for _status, value in row), strict=True)) for row in found]
    if call.flag("bulk"):
        return rows
    usable = [row for row in rows if row["valid"] and not row["hidden"] and not row["blacklisted"]]
    return [name for row in usable for name in _expand_variants(row)]


def _expand_variants(row: JsonObject) -> list[str]:
    variants = row["variants"] or []
    return [f"{row['name']}+{variant}" for variant in variants] or [row["name"]]


_INFO_ANSWER = {
    "type": "object",
    "required": ["name", "master", "software_version", *_INFO_ALIASES, *_INFO_ALIASES.values()],
    "properties": {
        "name": schemas.TEXT,
        "master": schemas.TEXT,
        "software_version": {"const": constants.RELEASE_VERSION},
    },
}

ROUTES = (
    Route(
        "GET",
        "/",
        "Nothing; whether the server answers",
        _read_nothing,
        access=ANYBODY,
        answer=schemas.NULL,
    ),
    Route(
        "GET",
        "/2",
        "Nothing; whether version 2 is served",
        _read_nothing,
        access=ANYBODY,
        answer=schemas.NULL,
    ),
    Route(
        "GET",
        "/version",
        "Version of the remote API",
        _version,
        access=ANYBODY,
        answer={"const": RAPI_VERSION},
    ),
    Route(
        "GET",
        "/2/features",
        "What requests may use",
        _features,
        access=ANYBODY,
        answer=schemas.TEXTS,
    ),
    Route(
        "GET",
        "/2/info",
        "Settings and versions of the cluster",
        _info,
        access=ANYBODY,
        answer=_INFO_ANSWER,
    ),
    Route(
        "GET",
        "/2/os",
        "Guest OS definitions that can be installed",
        _os,
        access=ANYBODY,
        query=(BULK,),
        answer=schemas.listing(schemas.TEXTS, schemas.record(OS_FIELDS)),
    ),
)
