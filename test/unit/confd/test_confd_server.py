"""ganeti-confd on a socket: packets that are answered, and those that are not."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confd_cluster import config

from ganeti import errors
from ganeti.base import files, journal
from ganeti.confd import client, messages, server
from ganeti.confd.answers import View
from ganeti.confd.follow import INTERVAL, Follower
from ganeti.confd.messages import Kind, Request, Status
from ganeti.config import store
from ganeti.config.changes import Author
from ganeti.paths import Paths

KEY = b"key of the cluster\n"
NOW = 1_700_000_000.0


class SetClock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> float:
        return self.time

    monotonic = now

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "hmac.key"
    path.write_bytes(KEY)
    return path


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def responder(key_file: Path, clock: SetClock) -> server.Responder:
    view = View(config())
    return server.Responder(key_file, lambda: view, clock)


def packet(kind: int = Kind.PING, *, salt: str = f"{NOW:.0f}", key: bytes = KEY, rsalt: str = "r"):
    return messages.seal(Request(protocol=1, type=kind, rsalt=rsalt), salt, key)


def envelope(**parts: Any) -> bytes:
    return messages.MAGIC + json.dumps(parts).encode()


def signed(text: str, salt: str = f"{NOW:.0f}") -> bytes:
    return envelope(msg=text, salt=salt, hmac=messages._sign(salt, text, KEY))


def test_a_signed_question_gets_a_signed_answer(responder: server.Responder) -> None:
    answer = responder.respond(packet())
    assert answer is not None
    assert answer.startswith(b"plj0{")
    reply = messages.reply(messages.unseal(answer, KEY), "r")
    assert (reply.status, reply.serial) == (Status.OK, 7)
    with pytest.raises(errors.ParseError, match="another request"):
        messages.reply(messages.unseal(answer, KEY), "other")


@pytest.mark.parametrize(
    "found",
    [
        b"",
        b"plj0",
        b"plj0null",
        b"plj0[]",
        b"plj0{",
        b"plj1" + packet()[4:],
        packet(key=b"another key"),
        packet()[:-1],
        b"plj0" + b"[" * 60000,
        b'plj0{"msg":"\\ud800","salt":"1","hmac":""}',
        envelope(msg="{}", salt="1"),
        envelope(msg={}, salt="1", hmac="x"),
        envelope(msg="{}", salt=f"{NOW:.0f}", hmac=7),
        envelope(msg="{}", salt=f"{NOW:.0f}", hmac="ä"),
        signed("[]"),
        signed("{}"),
        signed("not JSON"),
        signed('{"protocol":1,"type":"0","rsalt":"r"}'),
        signed('{"protocol":1,"type":0,"rsalt":7}'),
        signed('{"protocol":1,"type":0}'),
        packet(salt=f"{NOW - 301:.0f}"),
        packet(salt=f"{NOW + 301:.0f}"),
        packet(salt="now"),
        packet(salt=""),
        packet(salt="1700000000.0"),
        packet(salt="9" * 500),
    ],
)
def test_what_deserves_no_answer(responder: server.Responder, found: bytes) -> None:
    assert responder.respond(found) is None
    assert responder.respond(packet()) is not None


@pytest.mark.parametrize("shift", [-300, 0, 300])
def test_clocks_may_differ_a_little(responder: server.Responder, shift: int) -> None:
    assert responder.respond(packet(salt=f"{NOW + shift:.0f}")) is not None


def test_a_packet_is_answered_once(
    responder: server.Responder, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = packet()
    assert responder.respond(first) is not None
    assert responder.respond(first) is None
    clock.time += 200
    assert responder.respond(first) is None
    monkeypatch.setattr(server, "REMEMBERED", 3)
    for number in range(10):
        assert responder.respond(packet(rsalt=str(number), salt=f"{clock.time:.0f}")) is not None
    assert len(responder._seen) <= 3


def test_a_new_key_counts_at_once(responder: server.Responder, key_file: Path) -> None:
    files.write_atomic(key_file, b"another key\n")
    assert responder.respond(packet()) is None
    assert responder.respond(packet(key=b"another key\n")) is not None
    files.write_atomic(key_file, b"\n")
    assert responder.respond(packet(key=b"\n")) is None
    key_file.unlink()
    assert responder.respond(packet(key=b"\n")) is None


def test_an_answer_that_is_too_long_says_so(
    responder: server.Responder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MAX_PACKET", 150)
    answer = responder.respond(packet(Kind.DATA_COLLECTORS))
    assert answer is not None
    reply = messages.reply(messages.unseal(answer, KEY), "r")
    assert (reply.status, "more than the 150" in reply.answer) == (Status.ERROR, True)


# the socket --------------------------------------------------------------------------------------


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path / "root")
    paths.data.mkdir(parents=True)
    paths.hmac_key.write_bytes(KEY)
    store.write_checkpoint(config(), paths)
    return paths


@pytest.fixture
def port(paths: Paths) -> Iterator[int]:
    made = server.make(("127.0.0.1", 0), paths.hmac_key, Follower(paths).view)
    made.start()
    yield made.port
    made.stop()


def test_client_and_server(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"hello", ("127.0.0.1", port))
        stranger.sendto(b"", ("127.0.0.1", port))
    reply = client.ask(["127.0.0.1"], port, KEY, Kind.CLUSTER_MASTER, timeout=10)
    assert reply.answer == "node1.example.com"
    with pytest.raises(errors.RpcError, match="no reply from 127"):
        client.ask(["127.0.0.1"], port, b"wrong", Kind.PING, timeout=0.1)


def test_the_newest_answer_counts(port: int, paths: Paths, tmp_path: Path) -> None:
    other = Paths(tmp_path / "other")  # without a configuration
    made = server.make(("127.0.0.2", port), paths.hmac_key, Follower(other).view)
    made.start()
    try:
        addresses = ["127.0.0.2", "127.0.0.1"]
        reply = client.ask(addresses, port, KEY, Kind.PING, everybody=True, timeout=10)
        assert (reply.status, reply.serial) == (Status.OK, 7)
        assert client.ask(addresses[:1], port, KEY, Kind.PING, timeout=10).status == Status.ERROR
    finally:
        made.stop()


# following the configuration ---------------------------------------------------------------------


def names(follower: Follower, clock: SetClock) -> list[str] | None:
    clock.time += INTERVAL
    view = follower.view()
    return None if view is None else sorted(view.nodes)


def test_changes_are_seen(paths: Paths, clock: SetClock) -> None:
    follower = Follower(paths, clock)
    kept = store.Store(paths)

    def tag(text: str) -> None:
        node = kept.current.node("node1.example.com")
        kept.change("tags-set", Author(), lambda draft: draft.update(node, tags=(text,)))

    def read_tags() -> str:
        clock.time += INTERVAL
        view = follower.view()
        assert view is not None
        return "".join(view.nodes["node1.example.com"].tags)

    assert read_tags() == ""
    for number in range(3):
        tag(f"t{number}")
        assert read_tags() == f"t{number}"
    kept.checkpoint()
    assert read_tags() == "t2"
    tag("after")
    assert read_tags() == "after"
    tag("soon")
    view = follower.view()
    assert view is not None
    assert view.nodes["node1.example.com"].tags == ("after",)  # not looked at so soon again
    kept.close()
    assert read_tags() == "soon"


def test_a_node_that_is_no_candidate_any_more(paths: Paths, clock: SetClock) -> None:
    follower = Follower(paths, clock)
    assert names(follower, clock) is not None
    data = paths.config_file.read_bytes()
    paths.config_file.unlink()
    assert names(follower, clock) is None
    paths.config_file.write_bytes(data)
    assert names(follower, clock) is not None


def test_a_damaged_file_leaves_the_last_state(paths: Paths, clock: SetClock) -> None:
    follower = Follower(paths, clock)
    before = names(follower, clock)
    paths.journal_file.write_bytes(b"nonsense\n" * 3)
    assert names(follower, clock) == before
    paths.journal_file.write_bytes(journal.encode({"serial": 99, "time": 1.0}))
    assert names(follower, clock) == before
    paths.journal_file.unlink()
    assert names(follower, clock) == before
