"""Requests that nobody should send: refused with a clear word, and others are served meanwhile."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest
from arena import WEB1, Arena, unix

from ganeti import errors

DELAY = {"OP_ID": "OP_TEST_DELAY", "duration": 0}
#: Requests as text: method and arguments.
TEXTS = {
    "deep_nesting": '{"method": "Query", "args": ' + "[" * 200_000,
    "deep_objects": '{"method": "Query", "args": [' + '{"a":' * 100_000,
    "100000_digits": '{"method": "QueryJobs", "args": [[%s], ["id"]]}' % ("9" * 100_000),
    "number_too_large_for_float": '{"method": "WaitForJobChange", "args": [1, ["id"], null, 1e999'
    ", 1e999]}",
    "lone_surrogate": r'{"method": "QueryTags", "args": ["node", "\ud800"]}',
    "wrong_types": '{"method": "QueryInstances", "args": [{"a": 1}, "name", {"b": 2}]}',
    "names_of_a_wrong_type": '{"method": "QueryNodes", "args": [[[1], null], [7], 3]}',
    "200000_fields": json.dumps(
        {"method": "Query", "args": ["node", [f"x{n}" for n in range(200_000)], None]}
    ),
    "50000_conditions": json.dumps(
        {
            "method": "Query",
            "args": [
                "instance",
                ["name"],
                ["|", *(["==", "name", f"n{n}"] for n in range(50_000))],
            ],
        }
    ),
    "nested_filter": '{"method": "Query", "args": ["instance", ["name"], '
    + '["!",' * 10_000
    + '["?", "name"]'
    + "]" * 10_000
    + "]}",
    "unknown_method": '{"method": "__class__", "args": []}',
    "unknown_opcode": '{"method": "SubmitJob", "args": [[{"OP_ID": "OP_RUN_SHELL"}]]}',
    "huge_text": '{"method": "QueryTags", "args": ["node", "%s"]}' % ("x" * 40_000_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_luxi_request(arena: Arena, name: str) -> None:
    with arena.check_served():
        try:
            answer = arena.raw_luxi(TEXTS[name].encode())
        except errors.GanetiError as err:
            answer = {"hung up": str(err)}  # too large
        said = json.dumps(answer)
        assert "internal error" not in said, said[:300]
        # Names may be repeated in errors, but the answer is not much larger than the request.
        assert len(said) < 20_000 + 40 * len(TEXTS[name])


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
        "(a|b)" * 10_000,
    ],
    ids=lambda pattern: f"pattern_{len(pattern)}_{pattern[:6]}",
)
def test_catastrophic(arena: Arena, pattern: str) -> None:
    query = {"method": "Query", "args": ["instance", ["name"], ["=~", "name", pattern]]}
    with arena.check_served():
        threads = [
            threading.Thread(target=arena.raw_luxi, args=(json.dumps(query).encode(),))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        arena.check()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


def check_refused(arena: Arena, line: str, *words: str) -> None:
    """A command fails with a clear word; instances and disks stay as they are."""
    before = (arena.cluster.cells("instance list -o name"), arena.cluster.disks())
    ran = arena.cluster.gnt(line, *words)
    assert ran.code != 0, ran
    assert "internal error" not in ran.err
    assert (arena.cluster.cells("instance list -o name"), arena.cluster.disks()) == before


ADD = "instance add -n node2 -t diskless --no-nics"


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/evil",
        "/etc/evil",
        "a\nb.example.com",
        "..",
        "a/b.example.com",
        "-o",
        "a b.example.com",
        "x" * 300 + ".example.com",
        "a;reboot.example.com",
    ],
    ids=lambda name: f"{name[:12]!a}",
)
def test_name_of_an_instance(arena: Arena, name: str) -> None:
    check_refused(arena, f"{ADD} -o noop", "--", name)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("os_outside_of_its_directory", ("-o", "../../../../tmp", "--no-nics")),
        ("file_directory_outside", ("-o", "noop", "--no-nics", "--file-storage-dir", "../../../x")),
        ("mac_with_a_line_break", ("-o", "noop", "--net", "0:mac=aa:00:00:11:22:33\n")),
        ("link_with_a_line_break", ("-o", "noop", "--net", "0:link=br0\n")),
        ("nic_name_with_a_line_break", ("-o", "noop", "--net", "0:name=a\nb")),
        ("adopted_file_outside", ("-o", "noop", "--no-nics", "--disk", "0:adopt=/etc/passwd")),
        ("tag_with_a_line_break", ("-o", "noop", "--no-nics", "--tags", "a\nb")),
    ],
    ids=lambda value: value if isinstance(value, str) else "words",
)
def test_instance_with(arena: Arena, kind: str, words: tuple[str, ...]) -> None:
    template = "file" if "file" in kind else "diskless"
    disk = () if template == "diskless" or "adopt" in kind else ("--disk", "0:size=4M")
    check_refused(arena, f"instance add -n node2 -t {template}", *disk, *words, "evil.example.com")


def test_symlink_in_file_storage(arena: Arena) -> None:
    """A directory of file storage that leads elsewhere gets no disk."""
    storage = arena.cluster.paths("node2").file_storage
    outside = arena.cluster.directory / "outside"
    outside.mkdir()
    (storage / "link.example.com").symlink_to(outside)
    check_refused(
        arena,
        "instance add -n node2 -o noop -t file --disk 0:size=4M --no-nics",
        "link.example.com",
    )
    assert not any(outside.iterdir())


@pytest.mark.parametrize(
    "path",
    [
        "/2/instances/..%2f..%2fetc",
        "/2/nodes/%2e%2e",
        "/2/os/../../passwd",
        "/2/jobs/1%2f..%2f..%2fconfig.data",
        "/2/instances/a%00b",
        "/2//info//",
        "/.git",
    ],
    ids=lambda path: path.replace("/", "_"),
)
def test_rapi_path(arena: Arena, path: str) -> None:
    who = (arena.rapi.user, arena.rapi.password)
    with arena.check_served():
        got = arena.ask("GET", path, who)
        assert 400 <= got.status < 500
        assert b"Traceback" not in got.body


def submit(arena: Arena, *opcodes: dict[str, Any]) -> int:
    with arena.luxi() as client:
        return client.submit_job(list(opcodes))


@pytest.mark.parametrize("depends", [[[-1, []]], [[0, []]], [[10**9, []]], [[10**30, []]]], ids=str)
def test_dependency(arena: Arena, depends: list[Any]) -> None:
    """Refused, or the job ends as one whose dependency is not there."""
    with arena.check_served():
        try:
            number = submit(arena, {**DELAY, "depends": depends})
        except (errors.OpPrereqError, errors.ParameterError, errors.JobQueueError):
            return
        assert arena.cluster.gnt("job wait", str(number)).code != 0 or arena.job(number) == "error"


def test_dependency_cycle(arena: Arena) -> None:
    """A job cannot wait for one that comes after it, so no cycle can be made."""
    newest = submit(arena, DELAY)
    with pytest.raises(errors.GanetiError):
        submit(arena, {**DELAY, "depends": [[newest + 2, []]]})
    with arena.luxi() as client, pytest.raises(errors.OpPrereqError, match="earlier job"):
        client.submit_many_jobs(
            [
                [{**DELAY, "depends": [[-2, []]]}],
                [{**DELAY, "depends": [[-1, []]]}],
            ]
        )
    arena.check()


def test_one_job_with_5000_opcodes(arena: Arena) -> None:
    """Refused, or others do not notice."""
    with arena.check_served():
        try:
            number = submit(arena, *[DELAY] * 5000)
        except errors.OpPrereqError:
            return
        try:
            for _ in range(10):
                arena.check()
        finally:
            arena.cluster.gnt("job cancel -f", str(number))
            arena.cluster.gnt("job wait", str(number), timeout=120)


def test_2000_waiting_jobs(arena: Arena) -> None:
    blocker = submit(arena, {**DELAY, "duration": 120, "on_nodes": [], "no_locks": True})
    with arena.luxi() as client:
        waiting = client.submit_many_jobs([[{**DELAY, "depends": [[blocker, []]]}]] * 2000)
    assert all(item.job_id for item in waiting)
    for _ in range(5):
        arena.check()
    submit(arena, DELAY)
    arena.cluster.kill_master()
    arena.restart()
    arena.check()
    with arena.luxi(io_timeout=60.0) as client:
        client.auto_archive_jobs(-1, 30)


def test_20_clients_want_different_things_of_one_instance(arena: Arena) -> None:
    verbs = ("startup", "shutdown", "reboot", "startup --force", "modify -B memory=64")
    codes: list[int] = []

    def act(number: int) -> None:
        for verb in verbs[number % 5 :] + verbs[: number % 5]:
            codes.append(arena.cluster.gnt(f"instance {verb}", WEB1, timeout=200).code)

    with arena.check_served():
        threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(codes) == 20
    assert set(codes) <= {0, 1}
    arena.cluster.ok("instance startup --force", WEB1)
    assert arena.cluster.gnt("cluster verify").code == 0


def test_random_bytes_on_luxi(arena: Arena) -> None:
    with arena.check_served():
        for _ in range(200):
            sock = unix(arena.cluster.paths().luxi_socket)()
            sock.sendall(os.urandom(300) + b"\x03")
            sock.close()
