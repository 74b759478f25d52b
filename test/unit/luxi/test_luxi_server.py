"""The LUXI server against well and badly behaved clients."""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import stat
import threading
from pathlib import Path

import pytest
from raw_luxi import Raw, echo

from ganeti import constants, errors
from ganeti.luxi.server import LuxiServer


def is_served(client: Raw, name: str = "x") -> bool:
    """Whether one request gets its right answer."""
    wanted = ["QueryTags", {"kind": "node", "name": name}]
    return bool(client.result("QueryTags", "node", name) == wanted)


# the wire ----------------------------------------------------------------------------------


def test_requests_and_answers_in_turn(serve, dial):
    serve(echo)
    client = dial()
    for number in range(20):
        assert is_served(client, str(number))


def test_the_answer_has_two_keys_and_the_version_of_a_request_does_not_matter(serve, dial):
    serve(echo)
    client = dial()
    client.ask("QueryClusterInfo", version=2_090_000)
    assert client.answer() == {"success": True, "result": ["QueryClusterInfo", {}]}
    client.ask("QueryClusterInfo", version="any", extra=[1])
    assert client.answer()["success"]


def test_a_request_may_come_byte_by_byte(serve, dial):
    serve(echo)
    client = dial()
    request = json.dumps({"method": "QueryTags", "args": ["node", "grün"]}).encode() + b"\x03"
    for position in range(len(request)):
        client.send(request[position : position + 1])
    assert client.answer()["result"][1]["name"] == "grün"


def test_several_requests_at_once_are_answered_in_order(serve, dial):
    serve(echo)
    client = dial()
    requests = [json.dumps({"method": "QueryTags", "args": ["node", str(n)]}) for n in range(10)]
    client.send(b"".join(r.encode() + b"\x03" for r in requests))
    assert [client.answer()["result"][1]["name"] for _ in range(10)] == [str(n) for n in range(10)]


def test_large_messages_go_both_ways(serve, dial):
    serve(echo)
    text = "x" * 5_000_000
    assert dial().result("QueryTags", "node", text)[1]["name"] == text


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"hello",
        b"[]",
        b'{"method": 1, "args": []}',
        b'{"method": "QueryTags"}',
        b'{"method": "QueryTags", "args": {}}',
        b"\xff\xfe",
        b'{"a":' * 100_000,
        b"GET / HTTP/1.1",
    ],
)
def test_garbage_is_answered_in_plain_text_and_the_line_is_cut(serve, dial, garbage):
    serve(echo)
    good = dial()
    bad = dial()
    bad.send(garbage + b"\x03")
    answer = bad.answer()
    assert answer["success"] is False
    assert answer["result"].startswith("Failed to parse request: ")
    assert bad.hung_up()
    assert is_served(good)


@pytest.mark.parametrize(
    ("method", "args", "text"),
    [
        ("QueryTag", [], "'QueryTag'"),
        ("QueryTags", ["node"], "QueryTags takes 2 arguments (kind, name), got 1"),
        ("CancelJob", [1, True, 3], "CancelJob takes 1 to 2 arguments (job, kill), got 3"),
    ],
)
def test_what_is_not_in_the_protocol_is_refused(serve, dial, method, args, text):
    serve(echo)
    client = dial()
    client.ask(method, *args)
    assert text in client.answer()["result"]
    assert client.hung_up()


def test_a_message_over_the_limit_is_refused(serve, dial):
    serve(echo)
    good, bad = dial(), dial()
    piece = b" " * (1 << 20)
    refused = False
    try:
        for _ in range(constants.LUXI_MAX_MESSAGE // len(piece) + 2):
            bad.send(piece)
    except OSError:
        refused = True
    if not refused:
        assert "larger than" in bad.answer()["result"]
        assert bad.hung_up()
    assert is_served(good)


def test_who_asks_without_waiting_is_cut_off(serve, dial):
    gate = threading.Event()

    def slow(method, args, peer, reply):
        gate.wait(20)
        reply.ok(None)

    serve(slow)
    bad = dial()
    bad.send(b'{"method": "QueryClusterInfo", "args": []}\x03' * 100)
    assert "too many requests" in bad.answer()["result"]
    gate.set()
    assert bad.hung_up()


# bad neighbours ----------------------------------------------------------------------------


def test_silent_and_slow_clients_harm_nobody(serve, dial):
    serve(echo, workers=2)
    for _ in range(50):
        dial()
    for _ in range(50):
        dial().send(b'{"method": "Que')
    greedy = [dial() for _ in range(10)]
    for client in greedy:  # ask for much, and read nothing
        client.ask("QueryTags", "node", "x" * 3_000_000)
    leaving = [dial() for _ in range(50)]
    for client in leaving:
        client.ask("QueryTags", "node", "gone")
        client.close()
    good = dial()
    for number in range(20):
        assert is_served(good, str(number))
    assert len(greedy[0].answer()["result"][1]["name"]) == 3_000_000


def test_two_hundred_clients_at_once(serve, dial):
    serve(echo)
    clients = [dial() for _ in range(200)]
    for turn in range(3):
        for number, client in enumerate(clients):
            client.ask("QueryTags", "node", f"{turn}-{number}")
        for number, client in enumerate(clients):
            assert client.answer()["result"][1]["name"] == f"{turn}-{number}"


def test_waiting_clients_hold_no_thread(serve, dial):
    """More clients wait for an answer than there are workers."""
    held = []

    def answer_later(method, args, peer, reply):
        if method == "WaitForJobChange":
            held.append(reply)
        else:
            reply.ok(method)

    serve(answer_later, workers=2)
    waiting = [dial() for _ in range(100)]
    for client in waiting:
        client.ask("WaitForJobChange", 1, [], None, None, 60)
    assert dial().result("QueryClusterInfo") == "QueryClusterInfo"
    other = dial()
    while len(held) < 100:  # each request is a round trip, no busy loop
        other.result("QueryClusterInfo")
    for number, reply in enumerate(held):
        reply.ok(number)
    assert sorted(client.answer()["result"] for client in waiting) == list(range(100))


# answers -----------------------------------------------------------------------------------


def test_an_error_arrives_with_its_class_and_the_connection_lives(serve, dial):
    def fail(method, args, peer, reply):
        if method == "QueryTags":
            raise errors.OpPrereqError("no such node", errors.ErrorCode.NOENT)
        reply.fail(errors.JobLost("job 9 is gone"))

    serve(fail)
    client = dial()
    client.ask("QueryTags", "node", "x")
    assert client.answer() == {
        "success": False,
        "result": ["OpPrereqError", ["no such node", "unknown_entity"]],
    }
    client.ask("ArchiveJob", 9)
    assert client.answer()["result"] == ["JobLost", ["job 9 is gone"]]


def test_a_bug_in_the_server_is_told_and_logged(serve, dial, caplog):
    def bug(method, args, peer, reply):
        raise KeyError("oops")

    serve(bug)
    client = dial()
    for _ in range(2):
        client.ask("QueryClusterInfo")
        name, args = client.answer()["result"]
        assert (name, args) == ("ProgrammerError", ["internal error: KeyError: 'oops'"])
    assert "request failed with a bug" in caplog.text


def test_an_answer_that_is_no_json_is_a_bug_too(serve, dial, caplog):
    serve(lambda method, args, peer, reply: reply.ok(object()))
    client = dial()
    with caplog.at_level(logging.CRITICAL):
        client.ask("QueryClusterInfo")
        assert client.answer()["result"][0] == "ProgrammerError"


def test_only_the_first_answer_counts(serve, dial):
    def answer_twice(method, args, peer, reply):
        reply.ok(1)
        reply.ok(2)
        reply.fail(errors.GenericError("x"))

    serve(answer_twice)
    client = dial()
    assert [client.result("QueryClusterInfo") for _ in range(3)] == [1, 1, 1]


def test_a_request_that_takes_too_long_is_a_timeout(serve, dial):
    replies, abandoned = [], threading.Event()

    def answer_never(method, args, peer, reply):
        if method == "QueryTags":
            reply.ok("quick")
            return
        reply.on_abandoned = abandoned.set
        replies.append(reply)

    serve(answer_never, timeout=0.05)
    client = dial()
    client.ask("QueryClusterInfo")
    name, args = client.answer()["result"]
    assert name == "LuxiError"
    assert "no answer within" in args[0]
    assert abandoned.wait(20)
    replies[0].ok("too late")
    assert client.result("QueryTags", "node", "x") == "quick"


def test_the_handler_hears_that_its_client_left(serve, dial):
    arrived, abandoned = threading.Event(), threading.Event()

    def wait(method, args, peer, reply):
        reply.on_abandoned = abandoned.set
        arrived.set()

    serve(wait)
    client = dial()
    client.ask("QueryClusterInfo")
    assert arrived.wait(20)
    client.close()
    assert abandoned.wait(20)


# clients that end their sending side after the last request ----------------------------------


def test_all_that_was_asked_before_the_end_of_input_is_answered(serve, dial):
    """Also what takes long, in turn, and when the client is slow to read it."""
    ended = threading.Event()

    def answer_later(method, args, peer, reply):
        assert ended.wait(20)
        reply.ok([args["name"], "x" * 3_000_000])

    serve(answer_later)
    client = dial()
    for name in ("one", "two"):
        client.ask("QueryTags", "node", name)
    client.sock.shutdown(socket.SHUT_WR)
    ended.set()
    replies = [client.answer()["result"] for _ in range(2)]
    assert replies == [["one", "x" * 3_000_000], ["two", "x" * 3_000_000]]
    assert client.hung_up()


def test_a_client_that_asked_nothing_and_sends_no_more_is_hung_up_on(serve, dial):
    serve(echo)
    client = dial()
    client.sock.shutdown(socket.SHUT_WR)
    assert client.hung_up()


def test_a_request_without_its_last_byte_is_told_so(serve, dial):
    serve(echo)
    client = dial()
    client.ask("QueryTags", "node", "x")
    client.send(b'{"method": "QueryClusterInfo", "args": []}')
    client.sock.shutdown(socket.SHUT_WR)
    assert client.answer()["success"]
    assert "each ends with the byte 0x03" in client.answer()["result"]
    assert client.hung_up()


def test_the_handler_hears_that_a_client_left_that_sent_no_more(serve, dial):
    arrived, abandoned = threading.Event(), threading.Event()

    def wait(method, args, peer, reply):
        reply.on_abandoned = abandoned.set
        arrived.set()

    serve(wait)
    other, client = dial(), dial()
    client.ask("QueryClusterInfo")
    client.sock.shutdown(socket.SHUT_WR)
    assert arrived.wait(20)
    other.ask("QueryClusterInfo")
    assert not abandoned.is_set()
    client.close()
    assert abandoned.wait(20)


def test_a_client_that_waits_after_its_end_of_input_costs_no_time(serve, dial):
    """Its input is always ready, which must not keep the I/O thread busy."""
    arrived = threading.Event()

    def wait(method, args, peer, reply):
        arrived.set()

    server = serve(wait)
    client = dial()
    client.ask("QueryClusterInfo")
    client.sock.shutdown(socket.SHUT_WR)
    assert arrived.wait(20)
    thread = Path(f"/proc/self/task/{server._thread.native_id}/schedstat")
    before = int(thread.read_text().split()[0])
    assert select.select([client.sock], [], [], 0.3) == ([], [], [])
    assert int(thread.read_text().split()[0]) - before < 50_000_000  # nanoseconds


def test_the_kernel_says_who_asks(serve, dial):
    serve(lambda method, args, peer, reply: reply.ok([peer.pid, peer.uid, peer.gid]))
    assert dial().result("QueryClusterInfo") == [os.getpid(), os.getuid(), os.getgid()]


# the socket --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_the_socket_has_its_mode(serve, path, mode):
    serve(echo, mode=mode, gid=os.getgid())
    found = path.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == mode
    assert found.st_gid == os.getgid()


def test_the_group_may_use_the_socket_unless_told_otherwise(serve, path):
    serve(echo)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_the_socket_of_a_dead_master_is_replaced(serve, dial, path):
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    serve(echo)
    assert is_served(dial())


def test_the_socket_of_a_living_master_is_not_taken(serve, dial, path):
    serve(echo)
    second = LuxiServer(path, echo)
    with pytest.raises(errors.LuxiError, match="another process does"):
        second.start()
    assert is_served(dial())


def test_a_stop_ends_everything(serve, dial, path):
    server = LuxiServer(path, lambda method, args, peer, reply: None)
    server.start()
    silent, waiting = dial(), dial()
    waiting.ask("QueryClusterInfo")
    server.stop()
    assert silent.hung_up()
    assert waiting.hung_up()
    assert not path.exists()
    serve(echo)
    assert is_served(dial())
