"""The WSGI application that answers node calls, called as a server would."""

from __future__ import annotations

import io
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.base import jsonio
from ganeti.node.context import NodeContext
from ganeti.node.families import Families
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import BlockDevStatus
from ganeti.rpc.server import CALLER, RpcApp, find_methods
from ganeti.rpc.wire import specs

SECRET = "correct horse battery staple"


def stub(**methods: Any) -> list[NodeCalls]:
    """A node that answers the given calls only."""

    def refuse(*_args: Any) -> Any:
        raise AssertionError("not asked for by the test")

    body = dict.fromkeys(specs(), refuse)
    body.update(methods)
    return [type("Stub", (NodeCalls,), body)()]


class TickingClock:
    """Advances by a fixed amount whenever it is asked."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.value = 0.0

    def now(self) -> float:
        return self.value

    def monotonic(self) -> float:
        self.value += self.step
        return self.value


def ask(
    app: RpcApp, path: str, body: bytes = b"[]", method: str = "POST", **extra: Any
) -> tuple[int, bytes, dict[str, str]]:
    answer: list[Any] = []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "ganeti.peer_digest": "AB",
        **extra,
    }

    def start_response(status: str, headers: list[tuple[str, str]]) -> None:
        answer.extend((int(status.split()[0]), dict(headers)))

    data = b"".join(app(environ, start_response))
    return answer[0], data, answer[1]


def call(app: RpcApp, name: str, *args: Any) -> list[Any]:
    status, data, _ = ask(app, f"/{name}", jsonio.dumps_bytes(list(args)))
    assert status == 200
    return jsonio.loads(data)


def everybody(_environ: dict[str, Any]) -> str | None:
    return None


def test_a_result_travels_as_plain_json() -> None:
    status = BlockDevStatus(dev_path="/dev/x", sync_percent=12.5)
    app = RpcApp(stub(blockdev_find=lambda _self, disk: status), everybody)
    disk = {"uuid": "u", "dev_type": "file", "logical_id": ["loop", "/x"], "size": 4}
    ok, value = call(app, "blockdev_find", disk)
    assert ok is True
    assert value["dev_path"] == "/dev/x"
    assert value["sync_percent"] == 12.5


def test_length_and_type_of_the_answer_are_told() -> None:
    app = RpcApp(stub(version=lambda _self: 7), everybody)
    status, data, headers = ask(app, "/version")
    assert (status, data) == (200, b"[true,7]")
    assert headers == {"Content-Type": "application/json", "Content-Length": "8"}


def test_a_body_without_length_is_read_to_its_end() -> None:
    app = RpcApp(stub(version=lambda _self: 7), everybody)
    status, data, _ = ask(app, "/version", b"[]", CONTENT_LENGTH="")
    assert (status, data) == (200, b"[true,7]")


def test_a_named_error_travels_with_its_arguments() -> None:
    def fail(_self: NodeCalls) -> int:
        raise errors.OpPrereqError("no such thing", errors.ErrorCode.NOENT)

    ok, value = call(RpcApp(stub(version=fail), everybody), "version")
    assert ok is False
    decoded = errors.decode(value)
    assert isinstance(decoded, errors.OpPrereqError)
    assert decoded.args == ("no such thing", "unknown_entity")


def test_a_bug_gives_its_text_and_only_the_log_has_the_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_self: NodeCalls) -> int:
        raise ZeroDivisionError("oh no")

    ok, value = call(RpcApp(stub(version=fail), everybody), "version")
    assert (ok, value) == (False, "Error while executing backend function: oh no")
    assert "Traceback" in caplog.text


def test_wrong_arguments_are_told_by_call_and_position() -> None:
    ok, value = call(RpcApp(stub(), everybody), "node_has_ip_address", 5)
    assert ok is False
    assert value[0] == "ParameterError"
    assert "node_has_ip_address" in value[1][0]
    assert "$[0]" in value[1][0]


@pytest.mark.parametrize("args", [[], [1.0, 2.0]])
def test_too_few_and_too_many_arguments_are_refused(args: list[float]) -> None:
    ok, value = call(RpcApp(stub(), everybody), "test_delay", *args)
    assert ok is False
    assert value[0] == "ParameterError"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_than_post_are_400(method: str) -> None:
    assert ask(RpcApp(stub(), everybody), "/version", method=method)[0] == 400


@pytest.mark.parametrize("path", ["/", "", "/nosuch", "/version/", "/__init__", "//version"])
def test_unknown_procedures_are_404(path: str) -> None:
    assert ask(RpcApp(stub(), everybody), path)[0] == 404


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[1", b"\xff\xfe", b"[" * 100000])
def test_a_body_that_is_no_json_list_is_400(body: bytes) -> None:
    assert ask(RpcApp(stub(), everybody), "/version", body)[0] == 400


def test_a_refused_caller_gets_403_and_nothing_is_read_or_run() -> None:
    class Unreadable(io.BytesIO):
        def read(self, *_args: Any) -> bytes:
            raise AssertionError("the body of a refused caller is read")

    app = RpcApp(stub(), lambda environ: f"not you, {environ['ganeti.peer_digest']}")
    stream = {"wsgi.input": Unreadable()}
    assert ask(app, "/version", **stream)[:2] == (403, b"not you, AB")
    assert ask(app, "/nosuch", **stream)[0] == 403
    assert ask(app, "/version", method="GET", **stream)[0] == 403


def test_arguments_and_results_never_reach_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def bug(_self: NodeCalls, _address: str) -> bool:
        raise ValueError("something else")

    def refuse(_self: NodeCalls, _hvname: str, _hvfull: dict[str, Any]) -> None:
        raise errors.HypervisorError(f"bad value {SECRET}")

    calls = stub(
        node_has_ip_address=bug,
        hypervisor_validate_params=refuse,
        master_node_name=lambda _self: SECRET,
    )
    app = RpcApp(calls, everybody)
    with caplog.at_level(logging.DEBUG):
        call(app, "node_has_ip_address", SECRET)
        call(app, "hypervisor_validate_params", "kvm", {"password": SECRET})
        call(app, "hypervisor_validate_params", SECRET)
        call(app, "master_node_name")
    assert "node_has_ip_address" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(("seconds", "level"), [(6.0, logging.INFO), (4.0, logging.DEBUG)])
def test_only_slow_calls_are_logged_at_info(
    caplog: pytest.LogCaptureFixture, seconds: float, level: int
) -> None:
    app = RpcApp(stub(version=lambda _self: 7), everybody, clock=TickingClock(seconds))
    with caplog.at_level(logging.DEBUG):
        call(app, "version")
    [record] = [record for record in caplog.records if "took" in record.getMessage()]
    assert record.levelno == level
    assert record.getMessage() == f"call version took {seconds:.3f} s"


def test_running_calls_can_be_named() -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait(_self: NodeCalls, _duration: float) -> None:
        entered.set()
        leave.wait(5)

    app = RpcApp(stub(test_delay=wait), everybody)
    thread = threading.Thread(target=call, args=(app, "test_delay", 1.0))
    thread.start()
    assert entered.wait(5)
    assert app.list_running() == ["test_delay"]
    leave.set()
    thread.join(5)
    assert app.list_running() == []


def test_every_call_is_answered_by_the_family_of_its_file(tmp_path: Path) -> None:
    families = Families(NodeContext(Paths(tmp_path), "node1.example.com"))
    for name, method in find_methods(families.all).items():
        contract, answer = specs()[name].family.__module__, type(method.__self__).__module__
        assert contract.removeprefix("ganeti.rpc.calls.") == answer.removeprefix("ganeti.node.")
    families.stop()


def test_a_call_that_no_object_implements_keeps_the_daemon_from_starting(tmp_path: Path) -> None:
    families = Families(NodeContext(Paths(tmp_path), "node1.example.com"))
    for left_out in families.all:
        rest = [each for each in families.all if each is not left_out]
        with pytest.raises(errors.ProgrammerError, match="0 objects answer the node call"):
            RpcApp(rest, everybody)
    with pytest.raises(errors.ProgrammerError, match="2 objects answer the node call"):
        RpcApp([*families.all, families.all[0]], everybody)


def test_only_calls_that_are_meant_for_it_are_open_to_every_node() -> None:
    callers: list[str] = []
    calls = stub(guests_ended=lambda _self, _names: callers.append(CALLER.get()))
    app = RpcApp(calls, lambda _environ: "candidates only", authorise_node=everybody)
    who = {"ganeti.peer_cn": "node2.example.com"}
    assert ask(app, "/guests_ended", b'[["web1"]]', **who)[0] == 200
    assert callers == ["node2.example.com"]
    assert CALLER.get() == ""
    open_calls = {name for name, spec in specs().items() if spec.by_any_node}
    assert open_calls == {"guests_ended", "host_starts", "host_stops", "image_read"}
    for name in set(specs()) - open_calls:
        assert ask(app, f"/{name}", **who)[:2] == (403, b"candidates only")
