"""Events: what happens is told once, in order, from where a client left off."""

from __future__ import annotations

import threading

import pytest

from ganeti import errors
from ganeti.base import jsonio
from ganeti.config.changes import Author
from ganeti.master import events
from ganeti.master.events import Events, Filter
from ganeti.model import base

DELAY = {"OP_ID": "OP_TEST_DELAY", "duration": 0.0, "on_master": True, "reason": []}


def collect(client, after, until, wanted=None):
    """Events after a position until one passes ``until``."""
    found = []
    while not any(until(event) for event in found):
        answer = client.wait_for_events(after, 10, wanted)
        assert answer["events"], "no event within ten seconds"
        found += answer["events"]
        after = answer["last"]
    return found, after


def match_end(job_id):
    return lambda e: e["object"] == str(job_id) and e["data"].get("status") == "success"


def test_a_job_is_told_from_queue_to_archive(client):
    start = client.wait_for_events(None, 0)
    assert start["events"] == []
    assert not start["lost"]
    job = client.submit_job([DELAY])
    found, last = collect(client, start["last"], match_end(job))
    statuses = [e["data"]["status"] for e in found if e["change"] == "status"]
    assert statuses[0] == "queued"
    assert statuses[-1] == "success"
    assert found[0]["data"]["summary"] == ["TEST_DELAY(0 ns)"]
    numbers = [int(e["id"].rpartition("-")[2]) for e in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert client.archive_job(job)
    found, _last = collect(client, last, lambda e: e["change"] == "archived")
    assert found[-1]["object"] == str(job)


def test_a_client_goes_on_where_it_left_off_and_sees_each_event_once(client):
    start = client.wait_for_events(None, 0)["last"]
    jobs = [client.submit_job([DELAY]) for _ in range(5)]
    for job in jobs:  # they run side by side, and the last one may end first
        collect(client, start, match_end(job))
    found, last = collect(client, start, lambda _event: True)
    again, _last = collect(client, start, match_end(jobs[-1]))
    assert again[: len(found)] == found
    middle = found[3]["id"]
    rest = client.wait_for_events(middle, 5)["events"]
    assert rest[0] == found[4]
    assert client.wait_for_events(last, 0)["events"] == []


def test_filters_by_kind_and_object(master, client):
    start = client.wait_for_events(None, 0)["last"]
    job = client.submit_job([DELAY])
    collect(client, start, match_end(job))
    assert client.wait_for_events(start, 0, {"kind": ["node"]})["events"] == []
    only = client.wait_for_events(start, 5, {"object": [str(job)]})["events"]
    assert {e["object"] for e in only} == {str(job)}
    with pytest.raises(errors.RequestError, match="filter of events"):
        client.wait_for_events(start, 0, {"kind": "job"})


def test_changes_of_the_configuration_name_what_has_changed(master, client):
    start = client.wait_for_events(None, 0)["last"]
    group = master.core.store.current.group("default")
    new = base.replace(group, uuid="group-2", name="other")
    store = master.core.store
    store.change("Add group", Author(user="root"), lambda draft: draft.put(new))
    store.change("Tag", Author(user="root"), lambda draft: draft.update(new, tags=("a",)))
    store.change("Remove", Author(user="root"), lambda draft: draft.delete(new))
    found, _last = collect(client, start, lambda e: e["change"] == "removed")
    assert [(e["kind"], e["change"], e["objects"]) for e in found] == [
        ("group", change, ["other", "group-2"]) for change in ("added", "changed", "removed")
    ]
    assert found[1]["data"]["keys"] == ["tags"]


def test_another_run_of_the_master_and_too_old_positions_are_told(master, client):
    answer = client.wait_for_events("0123abcd-7", 0)
    assert answer["lost"]
    few = Events(master.core.queue, kept=10)
    first = few.read_after(None, Filter())["last"]
    for name in ("x", "y"):
        group = master.core.store.current.group("default")
        config = master.core.store.current
        for number in range(6):
            more = base.replace(group, uuid=f"{name}{number}", name=f"{name}{number}")
            after = config.apply([("nodegroups", more.uuid, more)], [], None, mtime=1.0)
            few.config_changed(config, after)
    late = few.read_after(first, Filter())
    assert late["lost"]
    assert jsonio.loads(bytes(late["events"][0]))["object"] == "x2"
    assert not few.read_after(late["last"], Filter())["lost"]
    for bad in ("", "x", "-", "a-b", 7):
        with pytest.raises(errors.RequestError):
            few.read_after(bad, Filter())


def test_a_long_job_tells_of_the_opcode_that_it_is_at(client):
    """With all opcodes in each event, a job of thousands would fill the memory."""
    start = client.wait_for_events(None, 0)["last"]
    ops = [{**DELAY, "reason": []} for _ in range(events.LONG_JOB)]
    tagged = {"OP_ID": "OP_TAGS_SET", "kind": "instance", "name": "no-such", "tags": ["a"]}
    job = client.submit_job([*ops, tagged])
    found, _last = collect(client, start, lambda e: e["data"].get("status") == "error")
    first, last = found[0]["data"], found[-1]["data"]
    assert first == {
        "status": "queued",
        "opcodes": events.LONG_JOB + 1,
        "op": 0,
        "summary": ["TEST_DELAY(0 ns)"],
    }
    assert (last["op"], last["opcodes"]) == (events.LONG_JOB, events.LONG_JOB + 1)
    assert max(len(str(event)) for event in found) < 1000
    named = client.wait_for_events(start, 0, {"object": ["no-such"]})["events"]
    assert {event["object"] for event in named} == {str(job)}


def test_events_are_forgotten_by_their_bytes(master, monkeypatch):
    monkeypatch.setattr(events, "KEPT_BYTES", 5000)
    kept = Events(master.core.queue)
    config = master.core.store.current
    group = config.group("default")
    for number in range(100):
        more = base.replace(group, uuid=f"g{number}", name=f"g{number}")
        kept.config_changed(
            config, config.apply([("nodegroups", more.uuid, more)], [], None, mtime=1.0)
        )
    found = kept.read_after(f"{kept.run}-0", Filter())
    assert found["lost"]
    assert 10 < len(found["events"]) < 50
    assert sum(len(bytes(event)) for event in found["events"]) <= 5000


def test_many_clients_wait_without_a_thread_each(master):
    """More waits than the LUXI server has threads; other requests go on meanwhile."""
    clients = [master.client() for _ in range(60)]
    start = clients[0].wait_for_events(None, 0)["last"]
    got: list[str] = []

    def wait(one):
        answer = one.wait_for_events(start, 20, {"kind": ["job"]})
        got.append(answer["events"][0]["data"]["status"])
        one.close()

    threads = [threading.Thread(target=wait, args=(one,)) for one in clients]
    for thread in threads:
        thread.start()
    with master.client() as other:
        assert other.query_cluster_info()["name"]
        other.submit_job([DELAY])
    for thread in threads:
        thread.join(20)
    assert got == ["queued"] * 60


def test_the_end_of_a_guest_is_told_with_its_node(client):
    start = client.wait_for_events(None, 0)["last"]
    with pytest.raises(errors.OpPrereqError):
        client.note_guest_end("nobody", "node1.example.com", "ERROR_down")
    assert client.wait_for_events(start, 0, {"kind": ["instance"]})["events"] == []
