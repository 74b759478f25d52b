"""The OpenAPI document is complete and says what the routes say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ganeti import errors
from ganeti.rapi import openapi, reference, routes

DOCUMENT = openapi.document(routes.ROUTES)
OPERATIONS = [
    (f"{method.upper()} {path}", operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_route_is_an_operation_with_a_name_of_its_own():
    assert len(OPERATIONS) == len(routes.ROUTES)
    names = [operation["operationId"] for _, operation in OPERATIONS]
    assert len(set(names)) == len(names)


def test_references_lead_somewhere():
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert set(references(DOCUMENT)) <= known
    json.dumps(DOCUMENT)


@pytest.mark.parametrize(("name", "operation"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_operations(name, operation):
    path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
    assert path == {part[1:-1] for part in name.split("/") if part.startswith("{")}
    assert {"200", "400", "401", "403", "404", "503"} <= set(operation["responses"])
    assert operation["summary"]
    body = operation.get("requestBody")
    submits = "x-ganeti-opcode" in operation
    if body is not None and submits:
        properties = body["content"]["application/json"]["schema"].get("properties", {})
        assert not {"OP_ID", "reason"} & set(properties)
    headers = {p["name"] for p in operation["parameters"] if p["in"] == "header"}
    assert ("Idempotency-Key" in headers) == submits


def test_the_reference_page_has_every_request():
    page = reference.page(routes.ROUTES)
    for name, _ in OPERATIONS:
        assert f"### {name}\n" in page


def test_the_page_explains_every_status():
    rows = [line.split("|")[1] for line in reference.page([]).splitlines() if line[:2] == "| "]
    shown = {int(word) for row in rows for word in row.split(",") if word.strip().isdigit()}
    known = {status for route in routes.ROUTES for status in openapi.statuses(route)}
    known |= {kind.http_status for kind in vars(errors).values() if hasattr(kind, "http_status")}
    assert known <= shown
