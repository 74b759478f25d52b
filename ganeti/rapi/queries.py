"""Queries of any kind of thing, with fields and filters of the client's choice."""

from __future__ import annotations

from ganeti.rapi import failures, schemas
from ganeti.rapi.route import ANYBODY, Arg, ArgKind, Call, Ready, Route

#: Kinds of queries; backup, cluster, os, extstorage and image go beyond the interface.
RESOURCES = (
    "backup", "cluster", "disk", "export", "extstorage", "filter", "group", "image", "instance",
    "job", "lock", "network", "node", "os",
)  # fmt: skip
_FIELDS = Arg("fields", ArgKind.LIST, "Fields to return, with commas between them")
_NEEDED = Arg("fields", ArgKind.LIST, "Fields to return, with commas between them", required=True)


def _resource(call: Call) -> str:
    name = call.path["resource"]
    if name not in RESOURCES:
        raise failures.make_not_found(
            f"'{name[:60]}' cannot be queried; choose from {', '.join(RESOURCES)}"
        )
    return name


def _get(call: Call) -> Ready:
    return Ready(call.luxi.fetch("Query", _resource(call), call.query["fields"], None))


def _put(call: Call) -> Ready:
    what, body = _resource(call), {} if call.body is None else call.body
    if not isinstance(body, dict):
        raise failures.make_bad_request("The body must be a JSON object")
    for name in body:
        if name not in ("fields", "qfilter", "filter"):
            raise failures.make_bad_request(f"unknown parameter '{name[:60]}'")
    if "qfilter" in body and body.get("filter", body["qfilter"]) != body["qfilter"]:
        raise failures.make_bad_request("'filter' and 'qfilter' differ; name one of them")
    fields = body.get("fields", call.query.get("fields"))
    if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
        raise failures.make_bad_request("'fields' must be given as a list of names")
    return Ready(call.luxi.fetch("Query", what, fields, body.get("qfilter", body.get("filter"))))


def _fields(call: Call) -> object:
    return Ready(call.luxi.fetch("QueryFields", _resource(call), call.query.get("fields")))


_ACCESS = ("read", "write")

ROUTES = (
    Route("GET", "/2/query/{resource}", "Query fields of all objects of a kind", _get,
          access=_ACCESS, query=(_NEEDED,), answer=schemas.QUERY, statuses=(404,)),
    Route("PUT", "/2/query/{resource}", "Query fields of the objects that pass a filter", _put,
          access=_ACCESS, query=(_FIELDS,), body=lambda: schemas.QUERY_BODY, safe=True,
          answer=schemas.QUERY, statuses=(404,)),
    Route("GET", "/2/query/{resource}/fields", "Describe the fields of a kind", _fields,
          access=ANYBODY, query=(_FIELDS,), answer=schemas.FIELDS, statuses=(404,)),
)  # fmt: skip
