"""Who may do what over the remote API: every route, every kind of user, tokens and their scope."""

from __future__ import annotations

import http.client
import math
import os
import re
import signal
import socket
import stat
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from https_server import serve
from identity_provider import Idp
from local_cluster import Cluster
from needs import needs_root
from rapi_daemon import Got, RapiDaemon
from waiting import wait_for

from ganeti.net import certs
from ganeti.rapi import passwords
from ganeti.rapi.identity import permission_of
from ganeti.rapi.route import KNOWN
from ganeti.rapi.routes import ROUTES

pytestmark = pytest.mark.long

USERS = """\
nobody pw
reader pw read
writer pw write
admin2 pw @admin
operator pw @operator
starter pw +instance.startup
family pw instance.*
careful pw write,-instance.*
"""
#: Kind of user -> which routes it may use: by access list and name of the single permission.
MAY = {
    "anonymous": lambda access, name: not access,
    "nobody": lambda access, name: not access,
    "reader": lambda access, name: not access or "read" in access,
    "writer": lambda access, name: True,
    "admin2": lambda access, name: True,
    "operator": lambda access, name: (
        not access
        or "read" in access
        or name
        in {
            "instance.startup",
            "instance.shutdown",
            "instance.reboot",
            "instance.migrate",
            "instance.failover",
            "instance.console",
            "job.wait",
            "job.cancel",
        }
    ),
    "starter": lambda access, name: not access or name == "instance.startup",
    "family": lambda access, name: not access or name.startswith("instance."),
    "careful": lambda access, name: not access or not name.startswith("instance."),
}


@pytest.fixture(scope="module")
def rapi(cluster: Cluster) -> RapiDaemon:
    made = RapiDaemon(cluster)
    path = made.paths.rapi_users
    path.write_text(path.read_text() + USERS)
    wait_for(lambda: f"{len(USERS.splitlines()) + 1} users" in made.log(), "users file is followed")
    for name, node in (("web1.example.com", "node2"), ("web2.example.com", "node3")):
        assert cluster.add(name, node=node).code == 0
    return made


def concrete(path: str) -> str:
    """A path with values that fit and that nothing has."""
    numbers = re.sub(r"\{(disk|job_id)\}", "999999", path)
    return re.sub(r"\{\w+\}", "nosuch", numbers)


@pytest.mark.parametrize("who", MAY)
def test_every_route_lets_in_whom_it_should(rapi: RapiDaemon, who: str) -> None:
    """What is allowed continues to arguments, of which one is wrong, so that nothing happens."""
    credentials = None if who == "anonymous" else (who, "pw")
    wrong = []
    for route in ROUTES:
        path = concrete(route.path) + "?nonsense=1"
        got = rapi.ask(route.method, path, credentials, read=route.path != "/2/events")
        refused = 401 if who == "anonymous" else 403
        if route.access == KNOWN:
            allowed = who != "anonymous"
        else:
            allowed = MAY[who](route.access, permission_of(route.method, route.path))
        if (got.status == refused) == allowed or (not allowed and got.status != refused):
            wrong.append((route.method, route.path, got.status))
    assert wrong == []
    assert len(ROUTES) > 80


def test_a_wrong_password_gets_in_nowhere(rapi: RapiDaemon) -> None:
    for route in ROUTES:
        got = rapi.ask(
            route.method, concrete(route.path), ("writer", "wrong"), source=rapi.fresh_address()
        )
        assert got.status == 401, route.path
        assert got.headers["www-authenticate"] == 'Basic realm="Ganeti Remote API"'
        assert set(got.value) == {"code", "message", "explain"}


# guessing


def test_guesses_from_one_address_are_slowed_down_for_it_alone(rapi: RapiDaemon) -> None:
    guesser = rapi.fresh_address()
    began = time.monotonic()
    seen = [
        rapi.ask("GET", "/2/info", ("writer", f"guess{number}"), source=guesser)
        for number in range(200)
    ]
    counts = {status: sum(got.status == status for got in seen) for status in (401, 429)}
    assert counts[401] + counts[429] == 200
    # Three are free; after each further one the guesser waits 1, 2, 4, ... seconds.
    assert counts[401] <= 4 + math.log2(1 + time.monotonic() - began)
    # Others behind the same address do not notice.
    assert rapi.ask("GET", "/2/info", ("reader", "pw"), source=guesser).status == 200
    # The right password does not help as long as one has to wait, and nobody else notices.
    number = 200
    while (last := rapi.ask("GET", "/2/info", ("writer", f"guess{number}"), source=guesser)) and (
        last.status != 429 or int(last.headers["retry-after"]) < 3
    ):
        number += 1
    assert rapi.ask("GET", "/2/info", ("writer", "pw"), source=guesser).status == 429
    assert rapi.ask("GET", "/2/info", ("writer", "pw")).status == 200
    log = rapi.log() + rapi.log("rapi-access.log")
    assert guesser in log
    assert "guess1" not in log
    assert rapi.password not in log


def test_unknown_users_cannot_be_told_from_known_ones_by_time(rapi: RapiDaemon) -> None:
    def seconds(user: str) -> float:
        address = rapi.fresh_address()
        began = time.perf_counter()
        assert rapi.ask("GET", "/2/info", (user, "wrong"), source=address).status == 401
        return time.perf_counter() - began

    path = rapi.paths.rapi_users
    good = path.read_text()
    # One comparison takes some 50 ms, many times what the rest of a request takes.
    path.write_text(f"{good}slow {passwords.store('pw', cost=10)} read\n")
    wait_for(lambda: rapi.ask("GET", "/2/info", ("slow", "pw")).status == 200, "the new user")
    rounds = [(seconds("slow"), seconds("writer"), seconds("ghost")) for _ in range(10)]
    path.write_text(good)
    slow, plain, unknown = (min(column) for column in zip(*rounds[1:]))
    assert 0.5 < plain / unknown < 2
    assert 0.5 < slow / unknown < 2


# the users file


def test_a_broken_file_changes_nothing_and_no_request_is_lost(rapi: RapiDaemon) -> None:
    path = rapi.paths.rapi_users
    good = path.read_text()
    with rapi.client(username="writer", password="pw") as client:
        path.write_text(good.replace("reader pw read", "reader pw raed") + "late pw read\n")
        wait_for(lambda: "'raed' is not a permission" in rapi.log(), "the error is told")
        assert "line 3: user 'reader'" in rapi.log()
        assert client.GetInfo()["name"] == "cluster.example.com"
        assert rapi.ask("GET", "/2/info", ("late", "pw"), source=rapi.fresh_address()).status == 401
        for number in range(30):
            # Replaced as a whole, as gnt-rapi and editors do; the next one comes at once.
            new = path.with_name("users.new")
            new.write_text(f"{good}late{number} pw read\n")
            new.chmod(stat.S_IMODE(path.stat().st_mode))
            new.rename(path)
            assert client.GetInfo()["name"] == "cluster.example.com"
        wait_for(
            lambda: (
                rapi.ask("GET", "/2/info", ("late29", "pw"), source=rapi.fresh_address()).status
                == 200
            ),
            "the file counts again",
        )
    path.write_text(good)


def test_the_password_of_the_cluster_tool_is_for_its_owner_only(rapi: RapiDaemon) -> None:
    for path in (rapi.cluster.directory / "rapi-password", rapi.paths.rapi_users):
        assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0


# tokens


def test_a_token_works_until_it_is_revoked_or_over(rapi: RapiDaemon) -> None:
    token = rapi.gnt("gnt-rapi token add --permissions read --expires 1h ci").out.strip()
    ask = lambda **more: rapi.ask("GET", "/2/query/node?fields=name", **more)  # noqa: E731
    wait_for(lambda: ask(who=token, source=rapi.fresh_address()).status == 200, "token is known")
    assert ask(who=("whoever", token)).status == 200
    assert rapi.ask("PUT", "/2/redistribute-config", token).status == 403
    assert "token:ci" in rapi.log("rapi-access.log")
    assert token not in rapi.log() + rapi.log("rapi-access.log")
    for node in ("node2", "node3"):
        copy = rapi.cluster.paths(node).rapi_tokens
        assert copy.read_text() == rapi.paths.rapi_tokens.read_text()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    rapi.gnt("gnt-rapi token revoke ci")
    wait_for(lambda: ask(who=token, source=rapi.fresh_address()).status == 401, "revocation")
    short = rapi.gnt("gnt-rapi token add --permissions read --expires 1s short").out.strip()
    wait_for(lambda: ask(who=short, source=rapi.fresh_address()).status == 401, "end")


def test_a_token_for_a_tag_knows_only_its_instances(rapi: RapiDaemon) -> None:
    rapi.cluster.ok("instance add-tags", "web1.example.com", "mine")
    token = rapi.gnt("gnt-rapi token add --permissions write --tag mine tenant").out.strip()
    wait_for(
        lambda: rapi.ask("GET", "/version", token, source=rapi.fresh_address()).status == 200,
        "token is known",
    )
    ask = lambda method, path, **more: rapi.ask(method, path, token, **more)  # noqa: E731
    names = [item["id"] for item in ask("GET", "/2/instances").value]
    assert names == ["web1.example.com"]
    assert len(ask("GET", "/2/instances?bulk=1").value) == 1
    assert ask("GET", "/2/instances/web1.example.com").status == 200
    assert ask("GET", "/2/instances/web2.example.com").status == 404
    assert ask("GET", "/2/nodes").value == []
    found = ask("PUT", "/2/query/instance", body={"fields": ["name"], "qfilter": None}).value
    assert found["data"] == [[[0, "web1.example.com"]]]
    sly = {
        "fields": ["name"],
        "qfilter": ["|", ["==", "name", "web2.example.com"], ["==", "name", "web1.example.com"]],
    }
    assert len(ask("PUT", "/2/query/instance", body=sly).value["data"]) == 1
    job = ask("PUT", "/2/instances/web1.example.com/shutdown").value
    done = ask("GET", f"/2/jobs/{job}/wait?timeout=20").value
    assert done["status"] == "success"
    assert [item["id"] for item in ask("GET", "/2/jobs").value] == [job]
    foreign = rapi.admin("PUT", "/2/instances/web2.example.com/shutdown").value
    refused = [
        ask("GET", f"/2/jobs/{foreign}"),
        ask("GET", f"/2/jobs/{foreign}/wait"),
        ask("DELETE", f"/2/jobs/{foreign}"),
        ask("PUT", "/2/instances/web2.example.com/shutdown"),
        ask("DELETE", "/2/instances/web2.example.com"),
        ask("GET", "/2/instances/web2.example.com/tags"),
        ask("POST", "/2/nodes/node2.example.com/powercycle"),
        ask("PUT", "/2/modify", body={"candidate_pool_size": 3}),
        ask("PUT", "/2/redistribute-config"),
        ask("GET", "/2/filters"),
        ask("GET", "/2/networks"),
        ask("GET", "/2/query/lock?fields=name"),
        ask("GET", "/2/events"),
        ask(
            "POST",
            "/2/instances",
            body={
                "__version__": 1,
                "mode": "create",
                "name": "web3.example.com",
                "os": "noop",
                "disk_template": "diskless",
                "disks": [],
                "nics": [],
                "pnode": "node2.example.com",
            },
        ),
    ]
    assert [got.status for got in refused] == [403] * len(refused)
    assert "limited to tag 'mine'" in refused[0].value["explain"]
    assert {got.value["message"] for got in refused} == {"Forbidden"}


def test_a_token_with_limits_reaches_nothing_on_a_node(rapi: RapiDaemon) -> None:
    """What would run a script as root, or read the disk of somebody else, makes no job."""
    cluster, ran = rapi.cluster, rapi.cluster.directory / "script-ran"
    cluster.ok("instance add-tags", "web1.example.com", "shop")
    token = rapi.gnt("gnt-rapi token add --permissions write --tag shop shop").out.strip()
    wait_for(
        lambda: rapi.ask("GET", "/version", token, source=rapi.fresh_address()).status == 200,
        "token is known",
    )
    script = cluster.directory / "qemu-ifup"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    web1, evil = "/2/instances/web1.example.com", f"-netdev tap,id=x,script={script}"
    jobs = rapi.admin("GET", "/2/jobs").value
    new = {
        "__version__": 1,
        "mode": "create",
        "name": "web5.example.com",
        "os_type": "noop",
        "disk_template": "diskless",
        "disks": [],
        "nics": [],
        "pnode": "node2.example.com",
        "tags": ["shop"],
    }
    for method, path, body in (
        ("PUT", f"{web1}/modify", {"hvparams": {"kvm_extra": evil}}),
        ("PUT", f"{web1}/modify", {"hvparams": {"cdrom_image_path": "/srv/ganeti/x"}}),
        ("PUT", f"{web1}/modify", {"nics": [["add", -1, {"link": "br-of-others"}]]}),
        ("PUT", f"{web1}/modify", {"osparams": {"x": "y"}}),
        ("POST", "/2/instances", {**new, "hvparams": {"kvm_extra": evil}}),
        ("POST", "/2/instances", {**new, "disks": [{"size": 4, "vg": "x"}]}),
        ("POST", "/2/instances", {**new, "file_storage_dir": "../../etc"}),
        ("POST", "/2/instances", {**new, "iallocator": "../../x"}),
        ("POST", "/2/instances-multi-alloc", {"instances": [{**new, "__version__": 1}]}),
        ("POST", "/2/reservations", {"instances": [new]}),
        ("DELETE", f"{web1}/tags?tag=shop", None),
        ("POST", f"{web1}/reinstall", {"os": "noop", "osparams": {"x": "y"}}),
    ):
        got = rapi.ask(method, path, token, body=body)
        assert got.status == 403, (path, body, got.value)
        assert "limited to tag 'shop'" in got.value["explain"]
    assert rapi.admin("GET", "/2/jobs").value == jobs
    assert not ran.exists()
    job = rapi.ask("PUT", f"{web1}/modify", token, body={"beparams": {"maxmem": 160}}).value
    assert rapi.ask("GET", f"/2/jobs/{job}/wait?timeout=20", token).value["status"] == "success"


def test_limits_hold_when_a_job_runs(rapi: RapiDaemon) -> None:
    """What was in the limits when a job was handed in may be somebody else's when it runs."""
    cluster = rapi.cluster
    cluster.ok("instance add-tags", "web1.example.com", "lent")
    token = rapi.gnt("gnt-rapi token add --permissions write --tag lent lent").out.strip()
    wait_for(
        lambda: rapi.ask("GET", "/version", token, source=rapi.fresh_address()).status == 200,
        "token is known",
    )
    before = cluster.ok("debug delay --no-locks --submit 120").err.split()[-1]
    body = {"depends": [[int(before), ["canceled", "success"]]]}
    job = rapi.ask("DELETE", "/2/instances/web1.example.com", token, body=body)
    assert job.status == 200, job.value
    cluster.ok("instance remove-tags", "web1.example.com", "lent")
    assert rapi.admin("DELETE", f"/2/jobs/{before}").status == 200
    done = rapi.admin("GET", f"/2/jobs/{job.value}/wait?timeout=30").value
    assert done["status"] == "error"
    assert "token:lent is limited to tag 'lent'" in str(done["opresult"])
    assert rapi.admin("GET", "/2/instances/web1.example.com").status == 200


def test_a_quota_holds_for_all_jobs_of_a_token(rapi: RapiDaemon) -> None:
    token = rapi.gnt(
        "gnt-rapi token add --permissions write --tag few --quota instances=1,disk=24m few"
    ).out.strip()
    assert "instances=1,disk=24" in rapi.gnt("gnt-rapi token list").out
    wait_for(
        lambda: rapi.ask("GET", "/version", token, source=rapi.fresh_address()).status == 200,
        "token is known",
    )

    def await_end(got: Got) -> tuple[str, str]:
        assert got.status == 200, got.value
        done = rapi.ask("GET", f"/2/jobs/{got.value}/wait?timeout=30", token).value
        return done["status"], str(done["opresult"])

    new = {
        "__version__": 1,
        "mode": "create",
        "os_type": "noop",
        "disk_template": "file",
        "nics": [],
        "pnode": "node2.example.com",
        "tags": ["few"],
    }
    together = [
        rapi.ask(
            "POST",
            "/2/instances",
            token,
            body={**new, "name": f"few{number}.example.com", "disks": [{"size": 16}]},
        )
        for number in (1, 2)
    ]
    ends = dict(await_end(got) for got in together)
    assert set(ends) == {"success", "error"}
    assert "quota of token:few: instances: 1 used, 1 more wanted, the limit is 1" in ends["error"]
    [mine] = [item["id"] for item in rapi.ask("GET", "/2/instances", token).value]
    grow = f"/2/instances/{mine}/disk/0/grow"
    status, text = await_end(rapi.ask("POST", grow, token, body={"amount": 12}))
    assert (status, "disk: 16 MiB used, 12 MiB more wanted" in text) == ("error", True), text
    assert await_end(rapi.ask("POST", grow, token, body={"amount": 8}))[0] == "success"
    refused = rapi.cluster.gnt("gnt-rapi token add --quota instances=1 nobody")
    assert refused.code == 1
    assert "A quota needs a node group or a tag" in refused.err


def test_a_token_for_a_group_knows_only_its_nodes_and_instances(rapi: RapiDaemon) -> None:
    cluster = rapi.cluster
    cluster.ok("group add", "side")
    cluster.ok("group assign-nodes --force", "side", "node3.example.com")
    token = rapi.gnt("gnt-rapi token add --permissions write --group side half").out.strip()
    wait_for(
        lambda: rapi.ask("GET", "/version", token, source=rapi.fresh_address()).status == 200,
        "token is known",
    )
    ids = lambda path: [item["id"] for item in rapi.ask("GET", path, token).value]  # noqa: E731
    assert ids("/2/nodes") == ["node3.example.com"]
    assert ids("/2/instances") == ["web2.example.com"]
    assert [item["name"] for item in rapi.ask("GET", "/2/groups", token).value] == ["side"]
    assert rapi.ask("GET", "/2/nodes/node2.example.com", token).status == 404
    for method, path, body in (
        ("POST", "/2/nodes/node2.example.com/modify", {"drained": True}),
        ("PUT", "/2/groups/default/modify", {}),
        ("DELETE", "/2/groups/side", None),
        ("PUT", "/2/instances/web1.example.com/startup", None),
    ):
        assert rapi.ask(method, path, token, body=body).status == 403, path
    got = rapi.ask(
        "POST",
        "/2/instances",
        token,
        body={
            "__version__": 1,
            "mode": "create",
            "name": "web4.example.com",
            "os": "noop",
            "disk_template": "diskless",
            "disks": [],
            "nics": [],
            "pnode": "node3.example.com",
        },
    )
    assert got.status == 200
    done = rapi.ask("GET", f"/2/jobs/{got.value}/wait?timeout=20", token).value
    assert done["status"] == "success"


# what may have a password in it


def test_kernel_arguments_are_shown_to_those_who_may_set_them(rapi: RapiDaemon) -> None:
    secret, cluster = "password=hunter2", rapi.cluster
    cluster.ok(
        "cluster modify --force --enabled-hypervisors fake,kvm -H",
        f"kvm:kernel_path=,kernel_args=ro {secret}",
    )
    cluster.ok(
        "instance add --forthcoming -t diskless --no-nics -n node2 --no-install",
        "-H",
        f"kvm:kernel_args=rw {secret}",
        "secretive.example.com",
    )
    path = "/2/instances/secretive.example.com"
    query = "/2/query/instance?fields=name,hv/kernel_args,custom_hvparams"
    [job] = [
        item
        for item in rapi.admin("GET", "/2/jobs?bulk=1").value
        if "secretive" in str(item["summary"])
    ]
    paths = ["/2/info", path, "/2/instances?bulk=1", "/2/jobs?bulk=1", f"/2/jobs/{job['id']}"]
    reading = [query, f"/2/jobs/{job['id']}/wait"]
    operator, reader, writer = ("operator", "pw"), ("reader", "pw"), ("writer", "pw")
    for who, asked in (
        (None, paths),
        (operator, paths + reading),
        (reader, [*paths, query]),
        (("careful", "pw"), ["/2/info"]),
    ):
        for place in asked:
            got = rapi.ask("GET", place, who)
            assert got.status == 200, (who, place, got.value)
            assert b"hunter2" not in got.body, (who, place)
            assert b"<redacted>" in got.body, (who, place)
    for place in paths + reading:
        assert b"hunter2" in rapi.ask("GET", place, writer).body, place
        assert b"<redacted>" not in rapi.ask("GET", place, writer).body, place
    guess = {"fields": ["name"], "qfilter": ["=~", "hv/kernel_args", secret]}
    names = [rapi.ask("PUT", "/2/query/instance", who, body=guess).body for who in (reader, writer)]
    assert [b"secretive" in found for found in names] == [False, True]


# starting and stopping


def test_sighup_and_a_clean_stop(rapi: RapiDaemon) -> None:
    pid = rapi.pid()
    os.kill(pid, signal.SIGHUP)
    assert rapi.admin("GET", "/2/info").status == 200
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: rapi.cluster.pid("ganeti-rapi") is None, "the daemon ends")
    assert "Remote API stops" in rapi.log()
    refused = rapi.start("-b", "0.0.0.0", "--no-ssl")
    assert refused.code == 2
    assert "in the clear" in refused.err
    assert rapi.start("--require-authentication").code == 0
    assert rapi.ask("GET", "/2/nodes").status == 401
    assert rapi.admin("GET", "/2/nodes").status == 200
    assert "already running" in rapi.start().err
    assert rapi.pid() != pid


def test_other_nodes_have_no_remote_api(rapi: RapiDaemon) -> None:
    refused = rapi.cluster.start_daemon("ganeti-rapi", "node2")
    assert refused.code == 11
    assert "node1.example.com" in refused.err


@contextmanager
def passable(directory: Path) -> Iterator[None]:
    """Let other users through to a directory below the one of the tests."""
    closed = [
        (path, path.stat().st_mode)
        for path in directory.parents
        if path.owner() == directory.owner() and not path.stat().st_mode & 0o001
    ]
    for path, mode in closed:
        path.chmod(mode | 0o011)
    try:
        yield
    finally:
        for path, mode in closed:
            path.chmod(mode)


@pytest.mark.root
@needs_root("to give it up")
def test_the_daemon_gives_up_root(rapi: RapiDaemon) -> None:
    os.kill(rapi.pid(), signal.SIGTERM)
    wait_for(lambda: rapi.cluster.pid("ganeti-rapi") is None, "the daemon ends")
    with passable(rapi.cluster.directory):
        started = rapi.start("--user", "nobody")
        assert started.code == 0, started.err
        status = Path(f"/proc/{rapi.pid()}/status").read_text()
        assert re.search(r"^Uid:\s+(?!0\b)(\d+)\s+\1\s+\1", status, re.MULTILINE)
        assert rapi.ask("GET", "/version").status == 200
        users = rapi.paths.rapi_users
        users.write_text(users.read_text() + "last pw read\n")
        wait_for(
            lambda: (
                rapi.ask("GET", "/2/info", ("last", "pw"), source=rapi.fresh_address()).status
                != 401
            ),
            "users are followed",
        )
        page, _number = log_in(rapi, "last")
        os.kill(rapi.pid(), signal.SIGTERM)
        wait_for(lambda: rapi.cluster.pid("ganeti-rapi") is None, "the daemon ends")
    assert rapi.start().code == 0
    assert rapi.ask("GET", "/2/info", **page).status == 200, "it could keep its sessions"
    with socket.create_connection((rapi.host, rapi.port), 5):
        pass


# sessions of browsers


def log_in(rapi: RapiDaemon, user: str, password: str = "pw") -> tuple[dict[str, str], str]:
    """Headers of a browser that has logged in, and the id of its session."""
    got = rapi.ask("POST", "/2/sessions", body={"user": user, "password": password})
    assert got.status == 200, got.value
    cookie = got.headers["set-cookie"]
    assert cookie.endswith("; Secure; HttpOnly; SameSite=Strict; Path=/")
    assert got.headers["cache-control"] == "no-store"
    return {"Cookie": cookie.partition(";")[0], "X-Ganeti-CSRF": got.value["csrf"]}, got.value["id"]


def test_a_session_does_what_its_user_may(rapi: RapiDaemon) -> None:
    page, _number = log_in(rapi, "operator")
    cookie = {"Cookie": page["Cookie"]}
    assert rapi.ask("GET", "/2/query/node?fields=name", **cookie).status == 200
    current = rapi.ask("GET", "/2/sessions/current", **cookie).value
    assert current["csrf"] == page["X-Ganeti-CSRF"]
    assert "instance.console" in current["access"]["permissions"]
    assert rapi.ask("PUT", "/2/redistribute-config", **page).status == 403
    for wrong in ({}, {"X-Ganeti-CSRF": "guess"}):
        got = rapi.ask("POST", "/2/instances/web1.example.com/reboot", **cookie, **wrong)
        assert got.status == 403
        assert "X-Ganeti-CSRF" in got.value["explain"]
    # A password or token counts as it did, whatever cookie comes with it.
    assert rapi.ask("GET", "/2/info", ("reader", "pw"), Cookie="__Host-ganeti=old").status == 200
    jobs = rapi.admin("GET", "/2/jobs").value
    assert rapi.ask("POST", "/2/instances/web1.example.com/reboot", **page).status == 200
    assert len(rapi.admin("GET", "/2/jobs").value) == len(jobs) + 1


def test_sessions_are_listed_and_ended(rapi: RapiDaemon) -> None:
    (mine, number), (other, theirs) = log_in(rapi, "reader"), log_in(rapi, "writer")
    seen = rapi.ask("GET", "/2/sessions", **mine).value
    assert {item["user"] for item in seen} == {"reader"}
    assert [item["id"] for item in seen if item["current"]] == [number]
    assert rapi.ask("DELETE", f"/2/sessions/{theirs}", **mine).status == 404
    assert {number, theirs} <= {item["id"] for item in rapi.admin("GET", "/2/sessions").value}
    assert rapi.ask("DELETE", f"/2/sessions/{number}", **other).status == 200
    for headers in ({}, {"X-Requested-With": "ui"}):
        got = rapi.ask("GET", "/2/info", **mine, **headers)
        assert got.status == 401
        assert ("www-authenticate" in got.headers) != bool(headers)
    got = rapi.ask("DELETE", "/2/sessions/current", **other)
    assert got.status == 200
    assert "Max-Age=0" in got.headers["set-cookie"]
    assert rapi.ask("GET", "/2/sessions/current", **other).status == 401


def test_a_restart_ends_no_session_but_what_was_revoked(rapi: RapiDaemon) -> None:
    (page, _number), (other, theirs) = log_in(rapi, "reader"), log_in(rapi, "reader")
    assert rapi.ask("DELETE", f"/2/sessions/{theirs}", **page).status == 200
    kept = rapi.paths.rapi_sessions
    assert not kept.exists()
    os.kill(rapi.pid(), signal.SIGTERM)
    wait_for(lambda: rapi.cluster.pid("ganeti-rapi") is None, "the daemon ends")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert page["Cookie"].partition("=")[2] not in kept.read_text()
    assert rapi.start().code == 0
    assert not kept.exists()
    assert rapi.ask("GET", "/2/sessions/current", **page).value["user"] == "reader"
    assert rapi.ask("GET", "/2/info", **other).status == 401
    assert rapi.ask("DELETE", "/2/sessions/current", **page).status == 200


def test_no_page_of_another_site_logs_in_and_no_secret_is_chosen(rapi: RapiDaemon) -> None:
    body = {"user": "reader", "password": "pw"}
    fixed = {"Cookie": "__Host-ganeti=chosen-by-somebody"}
    got = rapi.ask("POST", "/2/sessions", body=body, **fixed)
    assert "chosen-by-somebody" not in got.headers["set-cookie"]
    assert rapi.ask("GET", "/2/info", **fixed).status == 401
    strange = {"Sec-Fetch-Site": "cross-site"}
    assert rapi.ask("POST", "/2/sessions", body=body, **strange).status == 403
    form = {"Content-Type": "text/plain"}
    assert rapi.ask("POST", "/2/sessions", **form).status in (400, 415)
    address = rapi.fresh_address()
    wrong = {"user": "reader", "password": "guess"}
    seen = [rapi.ask("POST", "/2/sessions", body=wrong, source=address).status for _ in range(6)]
    assert (seen[0], seen[-1]) == (401, 429)


def test_a_changed_user_loses_sessions_at_once(rapi: RapiDaemon) -> None:
    path = rapi.paths.rapi_users
    good = path.read_text()
    path.write_text(good + "brief pw read\n")
    wait_for(
        lambda: (
            rapi.ask("POST", "/2/sessions", body={"user": "brief", "password": "pw"}).status == 200
        ),
        "the user is known",
    )
    page, _number = log_in(rapi, "brief")
    path.write_text(good + "brief other read\n")
    wait_for(lambda: rapi.ask("GET", "/2/info", **page).status == 401, "the session ends")
    path.write_text(good)
    token = rapi.gnt("gnt-rapi token add --permissions read page").out.strip()
    wait_for(
        lambda: rapi.ask("POST", "/2/sessions", body={"token": token}).status == 200,
        "token is known",
    )
    got = rapi.ask("POST", "/2/sessions", body={"token": token})
    cookie = {"Cookie": got.headers["set-cookie"].partition(";")[0]}
    assert rapi.ask("GET", "/2/sessions/current", **cookie).value["user"] == "token:page"
    rapi.gnt("gnt-rapi token revoke page")
    wait_for(lambda: rapi.ask("GET", "/2/info", **cookie).status == 401, "the session ends")
    assert token not in rapi.log() + rapi.log("rapi-access.log")


# identity providers


def follow(rapi: RapiDaemon, path: str, cookie: str = "") -> tuple[str, str]:
    """Where a browser is sent, and the cookie that it gets."""
    got = rapi.ask("GET", path, **({"Cookie": cookie} if cookie else {}))
    assert got.status == 303, got.body
    return got.headers["location"], got.headers["set-cookie"].partition(";")[0]


def test_a_browser_logs_in_by_an_identity_provider(rapi: RapiDaemon, tmp_path: Path) -> None:
    idp, file = Idp(), rapi.paths.rapi_login
    with serve(tmp_path, idp.answer) as server:
        idp.url = server.url
        (tmp_path / "ca.pem").write_text(server.authority)
        text = f"""
[oidc.corp]
title = "Corp <b>"
issuer = "{server.url}"
client_id = "ganeti"
client_secret = "s3cr/et"
redirect_uri = "https://localhost:5080/2/oidc/corp/callback"
ca_file = "{tmp_path}/ca.pem"
[oidc.corp.groups]
ops = "@readonly"
"""
        file.write_text(text)
        corp = {"name": "oidc", "title": "Corp <b>", "url": "/2/oidc/corp/login"}
        wait_for(
            lambda: rapi.ask("GET", "/2/login-methods").value == [{"name": "password"}, corp],
            "the settings are read",
        )
        place, cookie = follow(rapi, "/2/oidc/corp/login?next=https://evil.example.com/")
        assert place.startswith(f"{server.url}/authorize?")
        assert "evil" not in place
        query = urllib.parse.urlencode(idp.approve(place))
        callback = f"/2/oidc/corp/callback?{query}"
        assert follow(rapi, callback)[0] == "/ui/?login=expired"
        place, cookie = follow(rapi, "/2/oidc/corp/login")
        query = urllib.parse.urlencode(idp.approve(place))
        callback = f"/2/oidc/corp/callback?{query}&next=https://evil.example.com/"
        place, session = follow(rapi, callback, cookie)
        assert place == "/ui/"
        assert follow(rapi, callback, cookie)[0] == "/ui/?login=expired"
        current = rapi.ask("GET", "/2/sessions/current", Cookie=session).value
        assert (current["user"], current["access"]["permissions"]) == ("corp:anna", ["read"])
        page = {"Cookie": session, "X-Ganeti-CSRF": current["csrf"]}
        assert rapi.ask("PUT", "/2/redistribute-config", **page).status == 403
        file.write_text(text.replace("ops =", "nobody = "))
        wait_for(
            lambda: rapi.ask("GET", "/2/sessions/current", Cookie=session).status == 401,
            "the session ends with the rights of its group",
        )
        file.write_text(text.replace("client_id", "klient_id"))
        wait_for(lambda: "login.toml is refused" in rapi.log(), "the refusal in the log")
        assert corp in rapi.ask("GET", "/2/login-methods").value
        logs = rapi.log() + rapi.log("rapi-access.log")
        assert "s3cr" not in logs
        assert idp.last_code not in logs
    file.unlink()


# scrapes by client certificate


def test_a_scraper_with_a_certificate_gets_metrics_and_nothing_else(
    rapi: RapiDaemon, tmp_path: Path
) -> None:
    authority, other = certs.create_ca("Scrapers"), certs.create_ca("Others")
    for name, signer in (("prometheus", authority), ("grafana", authority), ("stranger", other)):
        certs.write(tmp_path / f"{name}.pem", certs.issue_client(signer, name))
    (tmp_path / "ca.pem").write_bytes(authority.cert)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def ask(who: str, path: str) -> int:
        context = rapi.tls()
        if who:
            context.load_cert_chain(tmp_path / f"{who}.pem")
        link = http.client.HTTPSConnection(rapi.host, port, timeout=20, context=context)
        try:
            link.request("GET", path)
            answer = link.getresponse()
            body = answer.read()
        finally:
            link.close()
        assert (b"ganeti_cluster_info" in body) == (answer.status == 200)
        return answer.status

    os.kill(rapi.pid(), signal.SIGTERM)
    wait_for(lambda: rapi.cluster.pid("ganeti-rapi") is None, "the daemon ends")
    options = ["--scrape-ca", str(tmp_path / "ca.pem"), "--scrape-names", "prometheus"]
    started = rapi.start("--scrape-port", str(port), *options)
    assert started.code == 0, started.err
    assert ask("prometheus", "/metrics") == 200
    assert ask("prometheus", "/2/nodes") == 404
    assert ask("grafana", "/metrics") == 403
    for who in ("stranger", ""):
        with pytest.raises(OSError):
            ask(who, "/metrics")
    assert rapi.ask("GET", "/version").status == 200
