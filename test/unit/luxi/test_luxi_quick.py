"""Requests that are answered without waking a thread of the pool."""

from __future__ import annotations

import select
import threading

from ganeti import errors
from ganeti.luxi import server as luxi_server
from ganeti.master.service import Service

QUICK = ["instance", ["name"], ["==", "name", "web1"]]


def answer_quickly(method, args):
    if method == "Query" and args["what"] == "instance":
        return lambda: [threading.current_thread().name, args["fields"]]
    return None


def name_the_thread(method, args, peer, reply):
    reply.ok(threading.current_thread().name)


def test_quick_requests_need_no_thread_of_the_pool(serve, dial):
    release, begun = threading.Event(), threading.Barrier(3)

    def handle(method, args, peer, reply):
        begun.wait(10)
        assert release.wait(10)
        reply.ok(threading.current_thread().name)

    serve(handle, workers=2, quick=answer_quickly)
    busy = [dial(), dial()]
    for client in busy:
        client.ask("QueryClusterInfo")
    begun.wait(10)  # both threads of the pool are taken
    client = dial()
    for _ in range(3):
        client.ask("Query", *QUICK)
        assert client.answer()["result"] == ["luxi-io", ["name"]]
    release.set()
    for client in busy:
        assert client.answer()["result"].startswith("luxi_")


def test_others_go_to_the_pool(serve, dial):
    serve(name_the_thread, quick=answer_quickly)
    client = dial()
    for args in (["node", ["name"], None], ["instance", ["x" * 3000], None]):
        client.ask("Query", *args)
        assert client.answer()["result"].startswith("luxi_")


def test_a_client_that_sends_many_at_once_gets_answers_in_order(serve, dial):
    serve(
        lambda method, args, peer, reply: reply.ok(["pool", args["fields"]]), quick=answer_quickly
    )
    client = dial()
    for number in range(12):
        client.ask("Query", "instance", [str(number)], None)
    assert [client.answer()["result"][1] for _ in range(12)] == [[str(n)] for n in range(12)]


def test_the_same_request_gets_the_answer_of_its_time(serve, dial):
    values = iter(range(3))
    serve(name_the_thread, quick=lambda method, args: lambda: next(values))
    client = dial()
    for number in range(3):
        client.ask("QueryConfigValues", ["cluster_name"])
        assert client.answer()["result"] == number


def test_what_fails_is_reported_by_the_handler(serve, dial, caplog):
    def handle(method, args, peer, reply):
        if args["fields"] == ["bug"]:
            raise KeyError("oops")
        raise errors.ParameterError("no such thing")

    def find_failing(method, args):
        def answer():
            raise ValueError

        return answer

    serve(handle, quick=find_failing)
    client = dial()
    client.ask("Query", "instance", ["bug"], None)
    assert client.answer()["result"] == ["ProgrammerError", ["internal error: KeyError: 'oops'"]]
    client.ask("Query", "instance", [], None)
    assert client.answer()["result"] == ["ParameterError", ["no such thing"]]
    client.ask("Query", "too few")
    assert client.answer()["result"].startswith("Failed to parse request")
    assert "request failed with a bug" in caplog.text


def test_a_large_answer_that_does_not_fit_arrives_whole(serve, dial):
    large = "x" * 5_000_000
    serve(name_the_thread, quick=lambda method, args: lambda: large)
    client = dial()
    for _ in range(2):
        client.ask("QueryConfigValues", ["cluster_name"])
        assert client.answer()["result"] == large


def test_a_client_that_reads_nothing_is_dropped(serve, dial, monkeypatch):
    monkeypatch.setattr(luxi_server, "WRITE_TIMEOUT", 0.05)
    monkeypatch.setattr(luxi_server, "_LOOK", 0.05)
    serve(name_the_thread, quick=lambda method, args: lambda: "x" * 5_000_000)
    client = dial()
    client.ask("QueryConfigValues", ["cluster_name"])
    poll = select.poll()
    poll.register(client.sock, 0)  # tells of the other side's end only
    assert poll.poll(10_000)


def test_configuration_values_that_need_a_file_are_not_quick():
    service = object.__new__(Service)
    assert service.answer_quickly("QueryConfigValues", {"fields": ["cluster_name", "master_node"]})
    for fields in (
        ["drain_flag"],
        ["cluster_name", "watcher_pause"],
        ["x"],
        "cluster_name",
        [7],
        ["cluster_name"] * 1000,
        None,
    ):
        assert service.answer_quickly("QueryConfigValues", {"fields": fields}) is None
