"""Queries nobody should send: clear errors of the right class, and other clients notice nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster

from ganeti import errors
from ganeti.base import jsonio
from ganeti.luxi import calls
from ganeti.luxi.client import Client
from ganeti.net.unix_socket import FramedClient

#: A name that makes regular expressions with nested repetitions work very long.
LONG = f"{'a' * 60}.example.com"
#: Seconds that others may wait meanwhile on a busy machine; on an idle one it is some milliseconds,
#: and what the tests send would stop them for minutes.
PATIENCE = 15.0


@pytest.fixture(scope="module", autouse=True)
def long_name(cluster: Cluster) -> None:
    assert cluster.add(LONG).code == 0
    assert cluster.add("web1.example.com").code == 0


@pytest.fixture(scope="module", autouse=True)
def no_traceback(cluster: Cluster) -> Iterator[None]:
    yield
    for log in cluster.paths().log.rglob("*.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8"), log


class Others:
    """Other clients that ask small questions all the time."""

    def __init__(self, cluster: Cluster) -> None:
        self._path = cluster.paths().luxi_socket
        self._end = threading.Event()
        self.times: list[float] = []
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in (0, 1)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        with Client(self._path) as client:
            while not self._end.is_set():
                begin = time.monotonic()
                try:
                    if number:
                        client.query("instance", ["name", "pnode"], ["==", "name", "web1"])
                    else:
                        client.query_cluster_info()
                except errors.GanetiError as err:
                    self.failures.append(f"{err.wire_name}: {err}")
                self.times.append(time.monotonic() - begin)
                self._end.wait(0.01)

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(30)


@pytest.fixture(autouse=True)
def rivals(cluster: Cluster) -> Iterator[Others]:
    """Whatever a test does, nobody else waits long."""
    made = Others(cluster)
    try:
        yield made
    finally:
        made.stop()
    assert made.failures == []
    assert max(made.times) < PATIENCE, sorted(made.times)[-5:]


def query_raw(cluster: Cluster, text: str) -> Any:
    """The answer to a request whose arguments are any text."""
    request = f'{{"method":"Query","args":{text}}}'.encode()
    with FramedClient(cluster.paths().luxi_socket) as link:
        return calls.decode_response(link.call(request))


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (["nodes", ["name"], None], errors.ParameterError, "did you mean node"),
        (["", ["name"], None], errors.ParameterError, "choose from"),
        ([None, ["name"], None], errors.RequestError, "'what' must be a text"),
        ([["node"], ["name"], None], errors.RequestError, "'what' must be a text"),
        (["node", "name", None], errors.RequestError, "list of texts"),
        (["node", None, None], errors.RequestError, "list of texts"),
        (["node", [1], None], errors.RequestError, "list of texts"),
        (["node", ["name"] * 1001, None], errors.ParameterError, "1000 fields"),
        (["node", ["name"], ["==", "nam", "x"]], errors.ParameterError, "'nam'.*mean name"),
        (["node", ["name"], ["==", "name", 5]], errors.ParameterError, "'name' is a text"),
        (["node", ["name"], ["?", "name"]], errors.ParameterError, "not a boolean: compare"),
        (["node", ["name"], ["==", "offline", "yes"]], errors.ParameterError, "true or false"),
        (["node", ["name"], ["<", "mfree", "1G"]], errors.ParameterError, "a number"),
        (["node", ["name"], ["=~", "mfree", "1"]], errors.ParameterError, "not a text: .* regular"),
        (["node", ["name"], ["=[]", "name", "x"]], errors.ParameterError, "not a list: .* members"),
        (["node", ["name"], ["=~", "name", "("]], errors.ParameterError, "regular expression"),
        (["node", ["name"], ["===", "name", "x"]], errors.OpPrereqError, "'===' is not .*choose"),
        (["node", ["name"], ["==", "name"]], errors.OpPrereqError, "2 operands"),
        (["node", ["name"], ["!"]], errors.OpPrereqError, "1 operand"),
        (["node", ["name"], []], errors.OpPrereqError, "must be a list"),
        (["node", ["name"], {"a": 1}], errors.OpPrereqError, "must be a list"),
        (
            ["node", ["name"], ["==", "name", None]],
            errors.OpPrereqError,
            "not a value .*use a text",
        ),
        (["node", ["name"], ["==", "name", "node9"]], errors.OpPrereqError, "node9"),
        (
            ["instance", ["name"], ["|", ["==", "name", "web1"], ["==", "name", "web9"]]],
            errors.OpPrereqError,
            "web9",
        ),
    ],
)
def test_wrong_in_itself(
    client: Client, args: list[Any], error: type[errors.GanetiError], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        client.call("Query", *args)
    assert type(caught.value) is error
    assert len(errors.text(caught.value)) < 500
    assert len(client.query("node", ["name"]).data) == 3  # the connection is still of use


def test_a_name_that_does_not_exist_has_its_code(client: Client) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        client.query("node", ["name"], ["==", "name", "node9"])
    assert caught.value.args[1] == errors.ErrorCode.NOENT


def test_no_fields_and_the_same_field_twice(client: Client) -> None:
    """Neither is an error: a client gets exactly the columns that it asked for."""
    assert client.query("node", []).data == [[], [], []]
    twice = client.query("node", ["name", "name"], ["==", "name", "node2"])
    assert [item.name for item in twice.fields] == ["name", "name"]
    assert twice.data == [[(0, "node2.example.com"), (0, "node2.example.com")]]


@pytest.mark.parametrize(
    ("depth", "error"),
    [(300, errors.OpPrereqError), (10_000, errors.RequestError), (500_000, errors.RequestError)],
)
def test_nested(cluster: Cluster, depth: int, error: type[errors.GanetiError]) -> None:
    filter_text = '["!",' * depth + '["?","offline"]' + "]" * depth
    with pytest.raises(error, match="nest"):
        query_raw(cluster, f'["node",["name"],{filter_text}]')


class TestOneMegabyte:
    def test_value(self, client: Client) -> None:
        with pytest.raises(errors.OpPrereqError, match="65536 characters"):
            client.query("node", ["name"], ["==", "name", "x" * 1_000_000])

    def test_names_that_do_not_exist(self, client: Client) -> None:
        names = ["|", *(["==", "name", f"nowhere{n}.example.com"] for n in range(25_000))]
        with pytest.raises(errors.OpPrereqError, match="nowhere0"):
            client.query("instance", ["name"], names)

    def test_conditions(self, client: Client) -> None:
        wide = ["|", *(["==", "pnode", f"nowhere{n}.example.com"] for n in range(25_000))]
        assert client.query("instance", ["name"], wide).data == []

    def test_too_many_conditions(self, client: Client) -> None:
        wide = ["|", *(["?", "admin_up"] for _ in range(60_000))]
        with pytest.raises(errors.OpPrereqError, match="50000 conditions"):
            client.query("instance", ["name"], wide)

    def test_patterns(self, client: Client) -> None:
        wide = ["|", *(["=~", "name", f"x{n}"] for n in range(60_000 // 2))]
        with pytest.raises(errors.OpPrereqError, match="500 regular expressions"):
            client.query("instance", ["name"], wide)

    def test_one_pattern(self, client: Client) -> None:
        with pytest.raises(errors.GanetiError, match=r"65536 characters|regular expression"):
            client.query("instance", ["name"], ["=~", "name", "(a|b)" * 200_000])

    def test_name_of_a_field_and_of_a_kind(self, client: Client) -> None:
        found = client.query("node", ["x" * 1_000_000, "name"])
        assert [status for status, _ in found.data[0]] == [1, 0]
        for args in (["x" * 1_000_000, ["name"], None], ["node", ["name"], ["?", "x" * 1_000_000]]):
            with pytest.raises(errors.ParameterError) as caught:
                client.call("Query", *args)
            assert len(errors.text(caught.value)) < 1000


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|aa)+$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*a){25}!",
        "^(a?){60}a{60}!",
        "(x+x+)+y|^(a|a)*$",
        r"^(\w+\s?)*!$",
    ],
)
def test_catastrophic_patterns(client: Client, pattern: str) -> None:
    """They are refused, give up, or are quick; several clients try at once."""
    begin = time.monotonic()
    try:
        found = client.query("instance", ["name"], ["=~", "name", pattern])
        assert {row[0][1] for row in found.data} <= {LONG, "web1.example.com"}
    except errors.ParameterError as err:
        assert "regular expression" in errors.text(err)  # noqa: PT017 - either is right
    assert time.monotonic() - begin < 10


def test_many_bad_clients_at_once(cluster: Cluster, rivals: Others) -> None:
    """Twenty clients send the worst at the same time."""
    worst = [
        jsonio.dumps(["instance", ["name"], ["=~", "name", "(.*a){25}!"]]),
        '["node",["name"],' + '["!",' * 10_000 + "]" * 10_001,
        jsonio.dumps(
            ["instance", ["name"], ["|", *(["==", "pnode", f"n{n}"] for n in range(20_000))]]
        ),
    ]
    odd: list[str] = []

    def attack(number: int) -> None:
        for text in worst[number % 3 :] + worst[: number % 3]:
            try:
                query_raw(cluster, text)
            except errors.GanetiError as err:
                if isinstance(err, errors.ProgrammerError):
                    odd.append(str(err))

    before = len(rivals.times)
    threads = [threading.Thread(target=attack, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert odd == []
    assert len(rivals.times) > before


def test_commands_say_one_clear_thing(cluster: Cluster) -> None:
    for line, words, code, text in (
        ("instance list -F", ("name ==",), 1, "name =="),
        ("instance list -F", ("name == 5",), 1, "is a text"),
        ("instance list -F", ("nam == 'x'",), 1, "nam"),
        ("instance list -F", ("(" * 10_000 + "admin_up" + ")" * 10_000,), 0, ""),
        ("instance list -F", ("name =~ /(/",), 1, "regular expression"),
        ("instance list", ("web9",), 1, "web9"),
        ("instance list -o name,,os", (), 14, "unknown fields"),
    ):
        ran = cluster.gnt(line, *words)
        assert ran.code == code, ran
        assert text in ran.err
        assert len(ran.err.splitlines()) <= 6, ran.err
