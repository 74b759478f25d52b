"""Every request of the remote API against a running cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from local_cluster import Cluster
from rapi_server import Api

from ganeti.opcodes.base import id_of
from ganeti.ops import registry
from ganeti.rapi import routes

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "contract_rapi.json"
CONTRACT: dict[str, Any] = json.loads(RECORDED.read_text())
TABLE = routes.group_by_path()
PLACES = {
    "<instance>": "web.example.com",
    "<node>": "node2.example.com",
    "<group>": "default",
    "<network>": "nosuch",
    "<job_id>": "1",
    "<disk_index>": "0",
    "<resource>": "node",
}
ARGUMENTS = {
    "GET /2/nodes/<node>/storage": "output_fields=name&storage_type=file",
    "PUT /2/nodes/<node>/storage/modify": "storage_type=file&name=x&allocatable=1",
    "PUT /2/nodes/<node>/storage/repair": "storage_type=file&name=x",
    "PUT /2/instances/<instance>/prepare-export": "mode=local",
    "GET /2/query/<resource>": "fields=name,role",
    "PUT /2/query/<resource>": "fields=name,role",
}
CREATE = {
    "__version__": 1,
    "name": "new.example.com",
    "mode": "create",
    "disk_template": "file",
    "disks": [{"size": "8M"}],
    "nics": [],
    "pnode": "node1.example.com",
    "os": "noop",
}
BODIES: dict[str, Any] = {
    "POST /2/instances": CREATE,
    "POST /2/groups": {"name": "other"},
    "PUT /2/groups/<group>/assign-nodes": {"nodes": ["node2.example.com"]},
    "PUT /2/groups/<group>/rename": {"new_name": "first"},
    "POST /2/instances/<instance>/disk/<disk_index>/grow": {"amount": "1G"},
    "PUT /2/instances/<instance>/export": {"destination": "node1.example.com"},
    "PUT /2/instances/<instance>/modify": {"custom_beparams": {"maxmem": "256M"}},
    "PUT /2/instances/<instance>/rename": {"new_name": "other.example.com"},
    "POST /2/instances/<instance>/replace-disks": {"mode": "replace_auto", "disks": "0"},
    "POST /2/networks": {"name": "net", "network": "192.0.2.0/24"},
    "PUT /2/networks/<network>/connect": {
        "group_name": "default",
        "network_mode": "bridged",
        "network_link": "br0",
    },
    "PUT /2/networks/<network>/disconnect": {"group_name": "default"},
    "PUT /2/networks/<network>/rename": {"new_name": "other"},
    "POST /2/nodes/<node>/evacuate": {"mode": "all"},
    "PUT /2/nodes/<node>/role": "regular",
    "GET /2/jobs/<job_id>/wait": {"fields": ["status"]},
}
REQUESTS = [
    (method, path, facts)
    for path, resource in CONTRACT["resources"].items()
    for method, facts in resource["methods"].items()
    if not path.startswith("/2/filters")
]


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    assert cluster.add("web.example.com").code == 0
    return Api(cluster)


def shape_of(value: Any, text: str) -> bool:
    """Whether an answer has the recorded shape."""
    if text.startswith(("job id", "2 (integer)")):
        return isinstance(value, int) and not isinstance(value, bool)
    if text == "null":
        return value is None
    if text.startswith("[str]"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if text.startswith("[{"):
        keys = set(text[2 : text.index("}")].split(","))
        return isinstance(value, list) and all(set(item) == keys for item in value)
    if text.startswith("[bool, str]"):
        return [type(item) for item in value] == [bool, str]
    if text.startswith("{"):
        words = text[1 : text.index("}")].split(",")
        return set(value) == {word.partition(":")[0].strip() for word in words}
    if text.startswith("str"):
        return isinstance(value, str)
    assert text.startswith(("object", "InstanceConsole")), text
    return isinstance(value, dict)


@pytest.mark.parametrize(
    ("method", "path", "facts"), REQUESTS, ids=[f"{method} {path}" for method, path, _ in REQUESTS]
)
def test_every_request_is_answered_in_the_recorded_shape(api, method, path, facts):
    name = f"{method} {path}"
    route = TABLE[routes.shape(path.replace("<", "{").replace(">", "}"))][method]
    where = path
    for place, text in PLACES.items():
        where = where.replace(place, text)
    arguments = [ARGUMENTS[name]] if name in ARGUMENTS else []
    if "tag" in facts.get("query", ()):
        arguments.append("tag=a&tag=b")
    if route.opcode is not None and not facts.get("direct"):
        arguments.append("dry-run=1")
    body = BODIES.get(name, {} if route.body is not None else None)
    if "network" in path and method == "GET" and path != "/2/networks":
        assert api.ask(f"{method} {where}").status == 404
        return
    answer = api.ask(f"{method} {where}?{'&'.join(arguments)}", body)
    if route.opcode is not None and not registry.is_built(id_of(route.opcode)):
        assert answer.status == 501
        assert id_of(route.opcode) in answer.error
        return
    assert answer.status == 200, answer.body
    assert answer.body.endswith(b"\n")
    assert answer.headers["content-type"] == "application/json"
    assert shape_of(answer.value, facts["result"]), answer.body
    if path.endswith("/reinstall"):
        api.wait(answer.value)


def test_a_network_and_an_instance_with_an_address_of_it(api):
    net = {"name": "net1", "network": "198.51.100.0/28", "gateway": "198.51.100.1", "tags": ["t"]}
    link = {"group_name": "default", "network_mode": "bridged", "network_link": "br0"}
    card = {"network": "net1", "ip": "pool"}
    web = {**CREATE, "name": "web7", "disk_template": "diskless", "disks": [], "nics": [card]}
    api.run_job("POST /2/networks", net)
    api.run_job("PUT /2/networks/net1/connect", link)
    api.run_job("PUT /2/networks/net1/modify", {"add_reserved_ips": ["198.51.100.2"]})
    api.run_job("POST /2/instances", {**web, "start": False})
    found = api.get("/2/networks/net1")
    assert found["map"] == "XXXX...........X"
    assert found["inst_list"] == ["web7"]
    assert api.get("/2/instances/web7")["nic.ips"] == ["198.51.100.3"]
    api.run_job("DELETE /2/instances/web7")
    api.run_job("PUT /2/networks/net1/rename", {"new_name": "net2"})
    api.run_job("PUT /2/networks/net2/tags?tag=b")
    assert api.get("/2/networks/net2/tags") == ["b", "t"]
    api.run_job("PUT /2/networks/net2/disconnect", {"group_name": "default"})
    api.run_job("DELETE /2/networks/net2")
    assert api.get("/2/networks") == []


def test_lists_with_all_fields(api):
    lists = CONTRACT["field_lists"]
    for name in ("instances", "nodes", "groups"):
        rows = api.get(f"/2/{name}?bulk=1")
        assert rows
        assert all(set(row) == set(lists[name]) for row in rows)
    (row,) = api.get("/2/instances?bulk=1")
    assert row["beparams"]["memory"] == row["beparams"]["maxmem"] == 64
    assert row["status"] == "running"
    jobs = api.get("/2/jobs?bulk=1")
    assert all(set(job) == set(lists["jobs_bulk"]) for job in jobs)
    (system,) = [item for item in api.get("/2/os?bulk=1") if item["name"] == "noop"]
    assert set(system) == set(lists["os_bulk"])


def test_single_objects(api):
    lists = CONTRACT["field_lists"]
    assert set(api.get("/2/instances/web.example.com")) == set(lists["instances"])
    node = api.get("/2/nodes/node2.example.com")
    assert set(node) == {*lists["nodes"], "secondary_ip"}
    assert node["secondary_ip"] == node["sip"]
    assert api.get("/2/nodes/node2.example.com/role") == "master-candidate"
    info = api.get("/2/info")
    assert (info["vg_name"], info["drbd_helper"]) == (
        info["volume_group_name"],
        info["drbd_usermode_helper"],
    )
    unknown = api.get("/2/jobs/999999")
    assert unknown.pop("id") == 999999
    assert set(unknown.values()) == {None}


def test_filters_are_added_changed_and_removed(api):
    uuid = api.ask(
        "POST /2/filters",
        {"priority": 3, "action": "REJECT", "predicates": [["jobid", [">", "id", 100000]]]},
    ).value
    assert {"uuid": uuid, "uri": f"/2/filters/{uuid}"} in api.get("/2/filters")
    rule = api.get(f"/2/filters/{uuid}")
    assert (rule["priority"], rule["action"]) == (3, "REJECT")
    assert rule["reason_trail"][0][:2] == ["gnt:library:rlib2:filters", "alice"]
    assert api.ask(f"PUT /2/filters/{uuid}", {"priority": 4}).value == uuid
    assert api.get(f"/2/filters/{uuid}")["priority"] == 4
    assert set(api.get("/2/filters?bulk=1")[0]) == set(CONTRACT["field_lists"]["filters"])
    assert api.ask(f"DELETE /2/filters/{uuid}").value is None
    assert "rapi:alice" in api.cluster.ok("cluster history --limit 1").out
    assert api.ask(f"GET /2/filters/{uuid}").status == 404
    assert api.ask(f"DELETE /2/filters/{uuid}").status == 404
    assert "priority" in api.ask("POST /2/filters", {"priority": "x"}).error


# what was recorded from other servers, and what differs on purpose -------------------------------


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /2/nodes?bulk=x", 400),
        ("GET /2/jobs/abc", 404),
        ("GET /2/nodes/nosuch", 404),
        ("GET /2/nodes/nosuch/role", 404),
        ("GET /2/query/nosuch?fields=name", 404),
        ("GET /2/query/node", 400),
        ("GET /2/instances/nosuch/console", 404),
        ("GET /2/instances/nosuch/tags", 404),
        ("GET /2/instances?lock=1", 400),
        ("DELETE /2/nodes", 501),
        ("HEAD /2/nodes", 501),
        ("PATCH /2/nodes", 501),
        ("BREW /2/nodes", 501),
        ("GET /3", 404),
    ],
)
def test_statuses_of_wrong_requests(api, request_, status):
    answer = api.ask(request_)
    assert answer.status == status
    if not request_.startswith("HEAD"):
        assert answer.error
    if status == 501 and "BREW" not in request_:
        assert answer.headers["allow"] == "GET"


def test_bodies_that_cannot_be_used(api):
    send = api.send
    body = json.dumps(CREATE).encode()
    assert send("POST", "/2/instances", body).status == 415
    assert send("POST", "/2/instances", body, {"Content-Type": "text/plain"}).status == 415
    ours = {"Content-Type": "application/json"}
    assert "line 1 column 2" in send("POST", "/2/instances", b"{'a'", ours).error
    assert "UTF-8" in send("POST", "/2/instances", b"\xff", ours).error
    deep = send("POST", "/2/instances", b"[" * 100_000, ours)
    assert (deep.status, "deep" in deep.error) == (400, True)
    assert "object" in api.ask("POST /2/instances", [1]).error
    assert "__version__" in api.ask("POST /2/instances", {}).error
    assert "__version__" in api.ask("POST /2/instances", {**CREATE, "__version__": 2}).error
    assert "'bogus'" in api.ask("POST /2/instances", {**CREATE, "bogus": 1}).error
    assert "'OP_ID'" in api.ask("PUT /2/modify", {"OP_ID": "OP_CLUSTER_DESTROY"}).error
    assert "'reason'" in api.ask("PUT /2/modify", {"reason": []}).error
    assert "dry_run" in api.ask("POST /2/instances", {**CREATE, "dry_run": True}).error
    assert "'os' and 'os_type'" in api.ask("POST /2/instances", {**CREATE, "os_type": "x"}).error
    assert "disks" in api.ask("POST /2/instances", {**CREATE, "disks": 3}).error
    forbidden = api.ask("PUT /2/modify", {"compression_tools": ["gzip"]})
    assert (forbidden.status, "compression_tools" in forbidden.error) == (403, True)
    assert "body" in api.ask("PUT /2/instances/web.example.com/modify").error
    assert "role" in api.ask("PUT /2/nodes/node2.example.com/role", "master").error
    large = send("PUT", "/2/modify", b" " * (10 * 1024 * 1024 + 1), ours)
    assert (large.status, bool(large.error)) == (413, True)
    many = send("GET", "/version", headers={"X-Long": "a" * 70_000})
    assert (many.status, bool(many.error)) == (431, True)
    long = api.ask("GET /2/instances/" + "a" * 70_000)
    assert (long.status, bool(long.error)) == (414, True)


def test_a_misspelt_argument_does_not_do_the_real_thing(api):
    answer = api.ask("DELETE /2/instances/web.example.com?dry_run=1")
    assert answer.status == 400
    assert "did you mean dry-run" in answer.error
    assert api.get("/2/instances?_=1700000000")


@pytest.mark.parametrize(
    "path",
    [
        "/2/instances/..%2f..%2finfo",
        "/2/instances/../../etc/passwd",
        "/2/instances/a%00b",
        "/2/instances/%2e%2e",
        "/2//instances",
        "/2/instances/a%0d%0ab",
        "/2/instances/%ff%fe",
        "/2/instances/" + "a" * 5000,
        "/2/jobs/" + "9" * 5000,
        "/2/instances/a;b",
        "//2/info",
    ],
)
def test_paths_that_try_something(api, path):
    answer = api.ask(f"GET {path}")
    assert answer.status in (400, 404)


@pytest.mark.parametrize("request_", ["DELETE /2/tags?tag=a%00", "GET /2/instances?filter=%00"])
def test_a_zero_character_is_a_bad_request(api, request_):
    answer = api.ask(request_)
    assert answer.status == 400
    assert "\\u0000 is not a character that can be used" in answer.error


def test_permissions(api):
    query = "GET /2/query/node?fields=name"
    for request, statuses in (
        ("GET /2/info", {"": 200, "nobody": 200, "reader": 200, "Basic bm86": 401}),
        ("PUT /2/tags?tag=a&dry-run=1", {"": 401, "nobody": 403, "reader": 403, "alice": 200}),
        (query, {"": 401, "nobody": 403, "reader": 200, "alice": 200}),
    ):
        for user, status in statuses.items():
            answer = api.ask(request, Authorization=user)
            assert answer.status == status, (request, user)
            if status == 401:
                assert answer.headers["www-authenticate"] == 'Basic realm="Ganeti Remote API"'
            if status >= 400:
                assert answer.error


def test_a_disk_on_its_way_through_two_instances(api):
    two = {**CREATE, "name": "web8", "pnode": "node2.example.com", "start": False}
    api.run_job("POST /2/instances", two)
    disk = {"size": "8M", "name": "data"}
    new = {"disk_template": "file", "disk": disk, "nodes": ["node2.example.com"], "tags": ["t"]}
    [uuid] = api.run_job("POST /2/disks", new)["opresult"]
    assert {"uuid": uuid, "uri": f"/2/disks/{uuid}"} in api.get("/2/disks")
    assert [item["name"] for item in api.get("/2/disks?bulk=1")].count("data") == 1
    found = api.get("/2/disks/data")
    assert (found["instance"], found["size"], found["tags"]) == (None, 8, ["t"])
    assert found["nodes"] == ["node2.example.com"]
    api.run_job("PUT /2/disks/data/attach", {"instance_name": "web8", "index": 0})
    assert api.get("/2/disks/data")["instance"] == "web8"
    assert api.get("/2/instances/web8")["disk.uuids"][0] == uuid
    api.run_job("POST /2/disks/data/grow", {"amount": 8})
    api.run_job("PUT /2/disks/data/detach", {})
    api.run_job("PUT /2/disks/data/modify", {"mode": "ro"})
    api.run_job("PUT /2/disks/data/rename", {"new_name": "spare"})
    api.run_job("PUT /2/disks/spare/tags?tag=b")
    found = api.get("/2/disks/spare")
    assert (found["size"], found["mode"], found["tags"]) == (16, "ro", ["b", "t"])
    api.run_job("DELETE /2/disks/spare/tags?tag=t")
    assert api.get(f"/2/disks/{uuid}/tags") == ["b"]
    api.run_job("DELETE /2/disks/spare")
    assert api.ask("GET /2/disks/spare").status == 404
    api.run_job("DELETE /2/instances/web8")
