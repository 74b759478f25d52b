"""The typed client: what it sends, how it understands, what it does when the master is gone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from raw_luxi import echo

from ganeti import constants, errors
from ganeti.luxi.client import Client, Submission
from ganeti.luxi.server import LuxiServer
from ganeti.net import unix_socket
from ganeti.paths import Paths

METHODS = {
    "ArchiveJob",
    "AutoArchiveJobs",
    "CancelJob",
    "ChangeJobPriority",
    "DeleteFilter",
    "PickupJob",
    "Query",
    "QueryClusterInfo",
    "QueryConfigValues",
    "QueryExports",
    "QueryFields",
    "QueryFilters",
    "QueryGroups",
    "QueryInstances",
    "QueryJobs",
    "QueryNetworks",
    "QueryNodes",
    "QueryTags",
    "ReplaceFilter",
    "SetDrainFlag",
    "SetWatcherPause",
    "SubmitJob",
    "SubmitJobToDrainedQueue",
    "SubmitManyJobs",
    "WaitForJobChange",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """This node belongs to a cluster and is its master."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path / "root"))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    paths = Paths(tmp_path / "root")
    for directory in (paths.data, paths.socket_dir):
        directory.mkdir(parents=True)
    paths.ssconf("master_node").write_text("node1.example.com\n")
    return paths


@pytest.fixture
def client(path):
    with Client(path, io_timeout=20) as made:
        yield made


def test_every_documented_method_is_there():
    from ganeti.luxi import calls

    assert set(calls.METHODS) >= METHODS


def test_typed_answers(serve, client):
    answers = {
        "Query": {
            "fields": [{"name": "name", "title": "Node", "kind": "text", "doc": "d"}],
            "data": [[[0, "node1"]], [[2, None]]],
        },
        "QueryFields": {"fields": [{"name": "a", "title": "A", "kind": "unknown"}]},
        "QueryNodes": [["node1", 5]],
        "QueryJobs": [[None]],
        "QueryTags": ["a", "b"],
        "SubmitJob": 17,
        "SubmitManyJobs": [[True, 18], [False, "full"]],
        "WaitForJobChange": [["running"], [[1, [5, 6], "message", "hi"]]],
        "AutoArchiveJobs": [3, 1],
        "CancelJob": [False, "too late"],
        "ChangeJobPriority": [True, "ok"],
        "ArchiveJob": True,
        "SetDrainFlag": True,
        "SetWatcherPause": 5.5,
        "QueryClusterInfo": {"name": "c"},
        "QueryConfigValues": ["c"],
        "ReplaceFilter": "uuid-1",
        "DeleteFilter": None,
        "QueryExports": [["node1", "e"]],
        "QueryGroups": [],
        "QueryNetworks": [],
        "QueryInstances": [],
        "QueryFilters": [],
        "SubmitJobToDrainedQueue": 19,
    }
    serve(lambda method, args, peer, reply: reply.ok(answers[method]))
    found = client.query("node", ["name"])
    assert found.fields[0].title == "Node"
    assert found.data == [[(0, "node1")], [(2, None)]]
    assert client.query_fields("node")[0].kind == "unknown"
    assert client.query_nodes([], ["name", "x"]) == [["node1", 5]]
    assert client.query_jobs([99], ["id"]) == [[None]]
    assert client.query_tags("cluster") == ["a", "b"]
    assert client.submit_job([]) == 17
    assert client.submit_job_to_drained_queue([]) == 19
    assert client.submit_many_jobs([[], []]) == [Submission(18), Submission(None, "full")]
    change = client.wait_for_job_change(17, ["status"], None, None, 10)
    assert (change.values, change.log) == (["running"], [[1, [5, 6], "message", "hi"]])
    assert client.auto_archive_jobs(-1, 10) == (3, 1)
    assert client.cancel_job(17) == (False, "too late")
    assert client.change_job_priority(17, 5) == (True, "ok")
    assert client.archive_job(17) is True
    assert client.set_watcher_pause(5.5) == 5.5
    assert client.query_cluster_info() == {"name": "c"}
    assert client.query_config_values(["cluster_name"]) == ["c"]
    assert client.replace_filter(None, 1, [], "ACCEPT", []) == "uuid-1"
    client.delete_filter("uuid-1")
    client.set_drain_flag(False)
    assert client.query_exports(["node1"]) == [["node1", "e"]]
    for ask in (client.query_groups, client.query_networks, client.query_instances):
        assert ask([], ["name"]) == []
    assert client.query_filters(None, ["uuid"]) == []


def test_the_request_says_its_version(path):
    """Read by hand what the client sends."""
    listener = unix_socket.listen(path, 0o600)
    seen: list[bytes] = []

    def serve_once() -> None:
        sock, _ = listener.accept()
        with sock:
            while b"\x03" not in b"".join(seen):
                seen.append(sock.recv(4096))
            sock.sendall(b'{"success": true, "result": null}\x03')

    thread = threading.Thread(target=serve_once)
    thread.start()
    with Client(path) as client:
        client.delete_filter("ü")
    thread.join(20)
    listener.close()
    raw = b"".join(seen)
    assert raw.startswith('{"method":"DeleteFilter","args":["ü"],"version":'.encode())
    assert raw.endswith(b"%d}\x03" % constants.PROTOCOL_VERSION)


def test_an_error_of_the_master_is_raised_as_its_class(serve, client):
    def fail(method, args, peer, reply):
        raise errors.JobLost("job 5 is gone") if method == "ArchiveJob" else errors.TagError("x")

    serve(fail)
    with pytest.raises(errors.JobLost, match="job 5 is gone"):
        client.archive_job(5)
    with pytest.raises(errors.TagError):
        client.query_tags("node", "x")


def test_a_wrong_call_does_not_reach_the_master(client):
    with pytest.raises(errors.RequestError, match="QueryTagz"):
        client.call("QueryTagz")
    with pytest.raises(errors.RequestError, match="takes 2 arguments"):
        client.call("QueryTags", "node")


def test_after_a_refused_request_the_client_connects_anew(serve, client):
    def picky(method, args, peer, reply):
        if method == "SubmitJob":
            raise errors.RequestError("what is that?")
        reply.ok([])

    serve(picky)
    with pytest.raises(errors.RequestError, match="what is that"):
        client.submit_job([{"OP_ID": "OP_NONSENSE"}])
    assert client.query_tags("node", "x") == []


def test_a_read_is_asked_again_when_the_master_restarts(root, path):
    """Between two requests the daemon is replaced by another one."""
    first = LuxiServer(path, lambda method, args, peer, reply: reply.ok(["old"]))
    first.start()
    lost: list[str] = []
    with Client(path, io_timeout=20, on_lost=lost.append) as client:
        assert client.query_tags("node", "x") == ["old"]
        first.stop()
        second = LuxiServer(path, lambda method, args, peer, reply: reply.ok(["new"]))
        second.start()
        try:
            assert client.query_tags("node", "x") == ["new"]
        finally:
            second.stop()
    assert len(lost) == 1


def test_a_change_is_not_repeated_when_nobody_knows_what_became_of_it(path):
    seen: list[str] = []
    servers: list[LuxiServer] = []
    arrived = threading.Event()

    def swallow(method, args, peer, reply):
        seen.append(method)
        arrived.set()

    servers.append(LuxiServer(path, swallow))
    servers[0].start()

    def kill() -> None:
        arrived.wait(20)
        servers[0].stop()
        servers.append(LuxiServer(path, echo))
        servers[1].start()

    thread = threading.Thread(target=kill)
    thread.start()
    with (
        Client(path, io_timeout=20) as client,
        pytest.raises(
            errors.ConnectionClosedError, match="Nobody knows whether SubmitJob was carried out"
        ),
    ):
        client.submit_job([])
    thread.join(20)
    servers[1].stop()
    assert seen == ["SubmitJob"]


def test_no_answer_in_time(serve, path):
    serve(lambda method, args, peer, reply: None)
    with (
        Client(path, io_timeout=0.05) as client,
        pytest.raises(errors.TimeoutError, match=r"no progress for 0\.05 seconds"),
    ):
        client.submit_job([])


# nobody there ------------------------------------------------------------------------------


def catch_error(path: Path) -> errors.NoMasterError:
    with Client(path) as client, pytest.raises(errors.NoMasterError) as caught:
        client.query_cluster_info()
    return caught.value


def test_a_machine_without_a_cluster(root, path):
    root.ssconf("master_node").unlink()
    error = catch_error(path)
    assert error.exit_code == constants.EXIT_NOTCLUSTER
    assert "gnt-cluster init" in errors.text(error)


def test_a_node_that_is_not_the_master(root, path):
    root.ssconf("master_node").write_text("node2.example.com\n")
    error = catch_error(path)
    assert error.exit_code == constants.EXIT_NOTMASTER
    assert "log in to 'node2.example.com'" in errors.text(error)


def test_a_master_whose_daemon_is_down(root, path, monkeypatch):
    monkeypatch.setattr("ganeti.luxi.connection.RESTART_GRACE", 0.05)
    error = catch_error(path)
    assert error.exit_code == constants.EXIT_FAILURE
    assert str(path) in errors.text(error)
    assert "daemon-util start-master" in errors.text(error)


def test_a_left_over_socket_counts_as_absent(root, path, monkeypatch):
    monkeypatch.setattr("ganeti.luxi.connection.RESTART_GRACE", 0.05)
    unix_socket.listen(path, 0o600).close()
    assert path.exists()
    assert "is not running" in errors.text(catch_error(path))


def test_a_daemon_that_is_being_restarted_is_waited_for(root, path):
    """The socket is missing when the client begins, and comes soon."""
    server = LuxiServer(path, lambda method, args, peer, reply: reply.ok({"name": "c"}))
    thread = threading.Timer(0.1, server.start)
    thread.start()
    try:
        with Client(path) as client:
            assert client.query_cluster_info() == {"name": "c"}
    finally:
        thread.join()
        server.stop()
