"""The table of routes has what clients of the interface rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ganeti.opcodes.base import id_of
from ganeti.rapi import cluster, jobs, reads, routes, writes
from ganeti.rapi.differences import difference
from ganeti.rapi.route import Route

RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "contract_rapi.json"
CONTRACT: dict[str, Any] = json.loads(RECORDED.read_text())
REQUESTS = [
    (method, path, facts)
    for path, resource in CONTRACT["resources"].items()
    for method, facts in resource["methods"].items()
]
TABLE = routes.group_by_path()


#: Fields of requests that only this implementation has.
OWN_FIELDS = {"auto_failover_after", "auto_fence_after", "master_vote", "proof"}


def route_of(method: str, path: str) -> Route:
    return TABLE[routes.shape(path.replace("<", "{").replace(">", "}"))][method]


def names(requests: list[tuple[str, str, Any]]) -> list[str]:
    return [f"{method} {path}" for method, path, _ in requests]


@pytest.mark.parametrize(("method", "path", "facts"), REQUESTS, ids=names(REQUESTS))
def test_every_request_of_the_interface_has_a_route(method, path, facts):
    route = route_of(method, path)
    assert sorted(route.access) == sorted(facts["access"])
    assert set(facts.get("query", ())) <= {arg.name for arg in route.query}


def test_what_is_open_to_anybody_besides_what_the_interface_opens():
    known = {(method, route_of(method, path).path) for method, path, _ in REQUESTS}
    own = {(route.method, route.path) for route in routes.ROUTES if not route.access} - known
    assert own == {
        ("GET", "/openapi.json"),
        ("GET", "/2/disks"),
        ("GET", "/2/disks/{disk_name}"),
        ("GET", "/2/disks/{name}/tags"),
        ("GET", "/2/health"),
        ("GET", "/2/images"),
        ("GET", "/2/images/{image_name}"),
        ("GET", "/2/instances/{instance_name}/samples"),
        ("GET", "/2/instances/{instance_name}/snapshots"),
        ("GET", "/2/consoles/{ticket}"),
        ("GET", "/2/login-methods"),
        ("GET", "/2/oidc/{provider}/callback"),
        ("GET", "/2/oidc/{provider}/login"),
        ("GET", "/2/nodes/{node_name}/samples"),
        ("POST", "/2/sessions"),
    }


CLOUD_INIT = {"ssh_keys", "password_hash", "user_data", "vendor_data", "network_config"}
#: Parameters that Ganeti does not have.
OWN = {
    "POST /2/groups": {"beparams"},
    "PUT /2/groups/<group>/modify": {"beparams"},
    "POST /2/instances": CLOUD_INIT | {"backup", "disk_sources", "image", "repository"},
    "PUT /2/instances/<instance>/migrate": {"bandwidth", "give_up_after"},
    "PUT /2/instances/<instance>/modify": CLOUD_INIT | {"bandwidth", "reseed"},
    "POST /2/networks": {"dns", "mtu"},
    "PUT /2/networks/<network>/modify": {"dns", "mtu"},
}


JOBS = [item for item in REQUESTS if "opcode" in item[2] and not item[2].get("direct")]


@pytest.mark.parametrize(("method", "path", "facts"), JOBS, ids=names(JOBS))
def test_requests_that_submit_a_job(method, path, facts):
    route = route_of(method, path)
    assert route.opcode is not None
    assert id_of(route.opcode) == facts["opcode"]
    handler = CONTRACT["resources"][path]["handler"]
    assert writes.handler_name(route.path) == handler.removeprefix("R_2_")
    assert route.body is not None
    if not isinstance(facts["body"], dict):
        return
    own = difference(f"{method} {route.path}")
    assert facts.get("body_rename", {}) == dict(own.rename)
    schema = route.body()
    common = {"depends", "comment", "priority", "debug_level", "dry_run", "hotplug_if_possible"}
    documented = set(facts["body"]) - set(facts.get("forbidden", ()))
    own_fields = OWN_FIELDS | OWN.get(f"{method} {path}", set())
    assert set(schema["properties"]) - common - own_fields == documented
    required = {name for name, text in facts["body"].items() if text.endswith("required")}
    if "forthcoming" not in documented:
        assert set(schema.get("required", ())) == required


def test_parameters_that_the_path_or_the_query_sets_are_not_taken_from_the_body():
    for method, path, facts in JOBS:
        if not isinstance(facts["body"], dict):
            continue
        route = route_of(method, path)
        assert route.body is not None
        assert not set(facts.get("static", ())) & set(route.body()["properties"]), path


def test_fields_of_lists_and_objects():
    lists = CONTRACT["field_lists"]
    for name in ("instances", "nodes", "networks", "groups", "filters"):
        (found,) = [item for item in reads.COLLECTIONS if item.path == f"/2/{name}"]
        assert list(found.fields) == lists[name]
    assert list(jobs.BULK_FIELDS) == lists["jobs_bulk"]
    assert list(jobs.FIELDS) == lists["job"]
    assert list(cluster.OS_FIELDS) == lists["os_bulk"]
    assert CONTRACT["features"] == cluster.FEATURES


def test_no_path_has_two_meanings():
    for shape, methods in TABLE.items():
        for route in methods.values():
            assert re.fullmatch(r"/[\w./{}-]*", shape), shape
            assert len(route.variables) == len(set(route.variables))
