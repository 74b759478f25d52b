"""gnt-debug against a master: the test of the queue, and the opcodes that only tests use."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ganeti.base import files
from ganeti.cli import program, programs
from ganeti.luxi.client import Client
from ganeti.net import unix_socket

Debug = Callable[..., tuple[int, str, str]]


@pytest.fixture
def debug(master: Any, capsys: pytest.CaptureFixture[str]) -> Debug:
    def run(*words: str) -> tuple[int, str, str]:
        code = program.main(programs.DEBUG, list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def run(client: Client, **op: Any) -> list[Any]:
    """The end of a job with one opcode: status, result and texts in its log."""
    job = client.submit_job([{"reason": [], **op}])
    values = None
    while values is None or values[0] not in ("success", "error", "canceled"):
        values = client.wait_for_job_change(job, ["status"], values, 0, 10).values
    [row] = client.query_jobs([job], ["status", "opresult", "oplog"])
    status, [result], [log] = row
    return [status, result, [entry[3] for entry in log]]


def test_the_queue_passes_its_test(debug: Debug) -> None:
    code, out, err = debug("test-jobqueue", "--priority", "high")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "All tests passed"


def test_a_place_is_not_waited_at_for_ever(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from ganeti.ops.test import jqueue

    monkeypatch.setattr(jqueue, "CONNECT_TIME", 0.1)
    status, result, _log = run(client, OP_ID="OP_TEST_JQUEUE", notify_exec=True)
    assert status == "error"
    assert "no client connected within 0.1 s at exec" in result[1][0]


def test_the_dummy_does_what_it_is_told(client: Client) -> None:
    op = {"OP_ID": "OP_TEST_DUMMY"}
    assert run(client, **op) == ["success", None, []]
    assert run(client, **op, result=[1], messages=["a", "b"]) == ["success", [1], ["a", "b"]]
    status, result, log = run(client, **op, messages="c", fail=True)
    assert (status, result[0], log) == ("error", "OpExecError", ["c"])
    status, result, _log = run(client, **op, submit_jobs=[[op], [op, op]])
    assert status == "success"
    assert [ok for ok, _job in result["jobs"]] == [True, True]
    for wrong in ("x", ["x"], [["x"]], [[{"OP_ID": "OP_NO_SUCH"}]]):
        assert run(client, **op, submit_jobs=wrong)[0] == "error"


def test_secret_parameters_arrive_and_stay_secret(debug: Debug, master: Any) -> None:
    code, _out, err = debug("test-osparams", "--os-parameters-secret", "pass=hush,other=still")
    assert (code, err) == (0, "The secret parameters reached the job\n")
    master.core.job_files.catch_up()
    stored = "".join(files.read_text(path) for path in master.paths.queue.glob("job-*"))
    assert "Secret OS parameters with a value: other, pass" in stored
    assert "hush" not in stored
    assert debug("test-osparams")[0] == 1
    assert "without value: pass" in debug("test-osparams", "--os-parameters-secret", "pass=")[2]


def test_the_keeper_of_locks_answers(debug: Debug, master: Any) -> None:
    assert debug("wconfd", "echo", "a b") == (0, '"a b"\n', "")
    assert debug("wconfd", "flushconfig") == (0, "null\n", "")
    assert json.loads(debug("wconfd", "listalllocks")[1]) == []
    master.hold_everything()
    assert json.loads(debug("wconfd", "listalllocks")[1]) == ["cluster/BGL"]
    [[name, [[_owner, mode]]]] = json.loads(debug("wconfd", "listalllocksowners")[1])
    assert (name, mode) == ("cluster/BGL", "exclusive")
    assert debug("wconfd", "listlocks", "7") == (0, "[]\n", "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nosuch"], "There is no command 'nosuch'"),
        (["echo"], "takes 1 argument(s), not 0"),
        (["listalllocks", "7"], "takes 0 argument(s), not 1"),
        (["listlocks", "web1"], "'web1' is not the number of a job"),
    ],
)
def test_wrong_words(debug: Debug, words: list[str], text: str) -> None:
    code, _out, err = debug("wconfd", *words)
    assert code == 1
    assert text in err


def test_metadata_of_guests(debug: Debug, master: Any) -> None:
    code, _out, err = debug("metad", "echo", "x")
    assert (code, "ganeti-metad does not run on this node" in err) == (1, True)
    assert "gnt-debug metad echo" in debug("metad", "remove", "x")[2]
    with unix_socket.listen(master.paths.metad_socket, 0o600) as listener:
        thread = threading.Thread(target=_echo, args=[listener])
        thread.start()
        assert debug("metad", "echo", "a b") == (0, '"a b"\n', "")
        thread.join(10)


def _echo(listener: socket.socket) -> None:
    listener.settimeout(10)
    connection, _address = listener.accept()
    with connection:
        request = json.loads(connection.recv(4096).rstrip(b"\x03"))
        answer = {"success": request["method"] == "Echo", "result": request["args"][0]}
        connection.sendall(json.dumps(answer).encode() + b"\x03")
