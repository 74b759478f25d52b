"""Requests that are answered without waking a thread of the pool."""

from __future__ import annotations

import threading

from ganeti import errors
from ganeti.master.service import Service

QUICK = ["instance", ["name"], ["==", "name", "web1"]]


def is_quick(name, args):
    return name == "Query" and args["what"] == "instance"


def test_quick_requests_need_no_thread_of_the_pool(serve, dial):
    release, begun = threading.Event(), threading.Barrier(3)

    def handle(method, args, peer, reply):
        if method != "Query":
            begun.wait(10)
            assert release.wait(10)
        reply.ok(threading.current_thread().name)

    serve(handle, workers=2, at_once=is_quick)
    busy = [dial(), dial()]
    for client in busy:
        client.ask("QueryClusterInfo")
    begun.wait(10)  # both threads of the pool are taken
    client = dial()
    for _ in range(3):
        client.ask("Query", *QUICK)
        assert client.answer()["result"] == "luxi-io"
    release.set()
    for client in busy:
        assert client.answer()["result"].startswith("luxi_")


def test_others_go_to_the_pool(serve, dial):
    serve(
        lambda method, args, peer, reply: reply.ok(threading.current_thread().name),
        at_once=is_quick,
    )
    client = dial()
    for args in (["node", ["name"], None], ["instance", ["x" * 3000], None]):
        client.ask("Query", *args)
        assert client.answer()["result"].startswith("luxi_")


def test_a_client_that_sends_many_at_once_gets_answers_in_order(serve, dial):
    serve(lambda method, args, peer, reply: reply.ok(args["fields"]), at_once=is_quick)
    client = dial()
    for number in range(12):
        client.ask("Query", "instance", [str(number)], None)
    assert [client.answer()["result"] for _ in range(12)] == [[str(n)] for n in range(12)]


def test_errors_of_quick_requests(serve, dial, caplog):
    def handle(method, args, peer, reply):
        if args["fields"] == ["bug"]:
            raise KeyError("oops")
        raise errors.ParameterError("no such thing")

    serve(handle, at_once=is_quick)
    client = dial()
    client.ask("Query", "instance", ["bug"], None)
    assert client.answer()["result"] == ["ProgrammerError", ["internal error: KeyError: 'oops'"]]
    client.ask("Query", "instance", [], None)
    assert client.answer()["result"] == ["ParameterError", ["no such thing"]]
    client.ask("Query", "too few")
    assert client.answer()["result"].startswith("Failed to parse request")
    assert "request failed with a bug" in caplog.text


def test_configuration_values_that_need_a_file_are_not_quick():
    assert Service.at_once("QueryConfigValues", {"fields": ["cluster_name", "master_node"]})
    for fields in (
        ["drain_flag"],
        ["cluster_name", "watcher_pause"],
        ["x"],
        "cluster_name",
        [7],
        ["cluster_name"] * 1000,
        None,
    ):
        assert not Service.at_once("QueryConfigValues", {"fields": fields})
