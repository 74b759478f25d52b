"""JSON schemas of answers and bodies that no opcode describes; data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NULL: Schema = {"type": "null"}
JOB_ID: Schema = {"type": "integer", "description": "Job id", "examples": [1234]}
TEXTS: Schema = {"type": "array", "items": TEXT}
OBJECT: Schema = {"type": "object"}
ERROR: Schema = {
    "type": "object",
    "required": ["code", "message", "explain"],
    "properties": {
        "code": {"type": "integer", "description": "HTTP status"},
        "message": {
            "type": "string",
            "description": "What was wrong; of 4xx but 400 and of 501 the phrase of HTTP",
        },
        "explain": {
            "type": "string",
            "description": "What the status means; what was wrong if message is a phrase",
        },
    },
}
#: Whether it worked, and a text for people.
DONE: Schema = {
    "type": "array",
    "items": {"type": ["boolean", "string"]},
    "minItems": 2,
    "maxItems": 2,
}
_FIELD = {
    "type": "object",
    "required": ["name", "title", "kind", "doc"],
    "properties": {"name": TEXT, "title": TEXT, "kind": TEXT, "doc": TEXT},
}
FIELDS: Schema = {
    "type": "object",
    "required": ["fields"],
    "properties": {"fields": {"type": "array", "items": _FIELD}},
}
QUERY: Schema = {
    "type": "object",
    "required": ["fields", "data"],
    "properties": {
        "fields": {"type": "array", "items": _FIELD},
        "data": {
            "type": "array",
            "description": "Per object and field: status (0 is normal) and value",
            "items": {
                "type": "array",
                "items": {"type": "array", "minItems": 2, "maxItems": 2},
            },
        },
    },
}
QUERY_BODY: Schema = {
    "type": "object",
    "properties": {
        "fields": {"type": "array", "items": TEXT, "description": "Fields to return"},
        "qfilter": {"type": ["array", "null"], "description": "Filter as nested lists"},
        "filter": {"type": ["array", "null"], "description": "Older name of qfilter"},
    },
    "additionalProperties": False,
}
FILTER_BODY: Schema = {
    "type": "object",
    "properties": {
        "priority": {"type": "integer", "minimum": 0, "default": 0},
        "predicates": {"type": "array", "default": [], "description": "What jobs it is for"},
        "action": {
            "type": ["string", "array"],
            "default": "CONTINUE",
            "description": "ACCEPT, CONTINUE, PAUSE, REJECT or [RATE_LIMIT, n]",
        },
        "reason": {"type": "array", "default": [], "description": "Reason trail"},
    },
    "additionalProperties": False,
}
ROLE: Schema = {"enum": ["regular", "master-candidate", "drained", "offline"]}
REINSTALL_BODY: Schema = {
    "type": "object",
    "properties": {
        "os": {"type": ["string", "null"], "description": "OS to install; unset for the same"},
        "start": {"type": "boolean", "default": True, "description": "Start it afterwards"},
        "osparams": {"type": ["object", "null"], "description": "OS parameters this time"},
    },
    "additionalProperties": False,
}


def references(key: str) -> Schema:
    """A list of objects by name or id, with the path of each."""
    kind = INTEGER if key == "number" else TEXT
    name = "id" if key == "number" else key
    item = {"type": "object", "required": [name, "uri"], "properties": {name: kind, "uri": TEXT}}
    return {"type": "array", "items": item}


def record(fields: tuple[str, ...], more: tuple[str, ...] = ()) -> Schema:
    """An object with these keys; see doc/reference/query-fields.md for their values."""
    names = (*fields, *more)
    return {
        "type": "object",
        "required": list(names),
        "properties": {name: {} for name in names},
    }


def listing(names: Schema, objects: Schema) -> Schema:
    """Schema of the answer of a list resource: names, or with ``bulk=1`` whole objects."""
    return {"anyOf": [names, {"type": "array", "items": objects}]}
