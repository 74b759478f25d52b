"""Answers made of rows, ETags, and what conditions compare."""

from __future__ import annotations

import json

import pytest

from ganeti.rapi import conditional, routes
from ganeti.rapi.answers import Columns, format_list, repeat_under
from ganeti.rapi.route import Route

TABLE = routes.group_by_path()


def test_rows_become_objects():
    columns = Columns(
        ["name", "be", "n"],
        changes={"be": repeat_under("memory", "maxmem")},
        aliases={"n": "number"},
    )
    rows = [["a", {"maxmem": 5, "x": 'ü"'}, None], ["b", None, 1.5]]
    data = json.dumps(rows).encode()
    found = json.loads(format_list(columns.objects(data)))
    assert found == [
        {"name": "a", "be": {"maxmem": 5, "x": 'ü"', "memory": 5}, "n": None, "number": None},
        {"name": "b", "be": None, "n": 1.5, "number": 1.5},
    ]
    assert format_list(columns.objects(b"[]")) == b"[]"


def test_etags_have_a_version_and_a_hash():
    one, other = conditional.etag(b"1", "abc.3"), conditional.etag(b"2", "abc.3")
    assert one.startswith('"abc.3-')
    assert one != other
    assert one == conditional.etag(b"1", "abc.3")
    assert conditional.is_unchanged(one, f"{other}, W/{one}")
    assert conditional.is_unchanged(one, "*")
    assert not conditional.is_unchanged(one, other)
    assert not conditional.is_unchanged(one, None)


def route(request: str) -> Route:
    method, _, path = request.partition(" ")
    return TABLE[routes.shape(path)][method]


@pytest.mark.parametrize(
    ("request_", "compared"),
    [
        ("PUT /2/instances/{x}/modify", "/2/instances/{instance_name}"),
        ("POST /2/instances/{x}/disk/{d}/grow", "/2/instances/{instance_name}"),
        ("DELETE /2/nodes/{x}/tags", "/2/nodes/{name}/tags"),
        ("PUT /2/nodes/{x}/role", "/2/nodes/{node_name}/role"),
        ("DELETE /2/groups/{x}", "/2/groups/{group_name}"),
        ("POST /2/instances", "/2/instances"),
        ("DELETE /2/jobs/{x}", "/2/jobs/{job_id}"),
        ("PUT /2/modify", "/2/info"),
        ("PUT /2/redistribute-config", "/2/info"),
    ],
)
def test_what_a_change_is_compared_with(request_, compared):
    found = conditional.target(route(request_), TABLE)
    assert found is not None
    assert (found.method, found.path) == ("GET", compared)
