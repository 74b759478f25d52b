"""gnt-instance console: what is run, what is shown."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import needs_root
from recording_master import RecordingMaster, Run

Start = Callable[..., subprocess.Popen[str]]
COMMAND = ["env", "PYTHONPATH=/opt/ga neti", "python3", "-m", "console", "/run/web1's.serial"]


def running(master: RecordingMaster, console: dict[str, Any] | None, **fields: Any) -> None:
    master.add_instance(
        "web1.example.com",
        pnode="node2.example.com",
        console=console,
        **{"oper_state": True, **fields},
    )


def serial(**fields: Any) -> dict[str, Any]:
    return {
        "instance": "web1.example.com",
        "kind": "ssh",
        "host": "node2.example.com",
        "user": "root",
        "command": COMMAND,
        **fields,
    }


def test_the_command_is_shown_quoted_for_a_shell(
    master: RecordingMaster, gnt_instance: Run
) -> None:
    running(master, serial())
    ran = gnt_instance("console --show-cmd web1")
    assert (ran.code, ran.err) == (0, "")
    words = shlex.split(ran.out)
    assert words[0] == "ssh"
    assert "-t" in words
    assert words[-3:-1] == ["root@node2.example.com", "--"]
    assert shlex.split(words[-1]) == COMMAND
    assert master.jobs == []


@pytest.mark.root
@needs_root("for a console without a remote shell")
def test_on_the_node_itself_no_remote_shell_is_needed(
    master: RecordingMaster, gnt_instance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_HOSTNAME", "node2.example.com")
    running(master, serial())
    assert shlex.split(gnt_instance("console --show-cmd web1").out) == COMMAND


def test_the_ssh_port_of_the_node_is_used(master: RecordingMaster, gnt_instance: Run) -> None:
    master.where.ssconf("ssh_ports").write_text("node2.example.com=2222\n")
    running(master, serial())
    assert "-p 2222 root@node2.example.com" in gnt_instance("console --show-cmd web1").out


@pytest.mark.parametrize("code", [0, 7])
def test_the_command_takes_over(
    master: RecordingMaster,
    start_gnt_instance: Start,
    tmp_path: Path,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = tmp_path / "remote shell"
    shell.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\nsys.exit({code})\n")
    shell.chmod(0o755)
    monkeypatch.setenv("GANETI_REMOTE_SHELL", shlex.quote(str(shell)))
    running(master, serial())
    child = start_gnt_instance("console", "web1")
    out, err = child.communicate(timeout=20)
    assert out == f"{['node2.example.com', shlex.join(COMMAND)]}\n"
    assert (child.returncode, err) == (code, "")


def test_a_missing_remote_shell_is_told(
    master: RecordingMaster, gnt_instance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_REMOTE_SHELL", "/nowhere/ssh")
    running(master, serial())
    ran = gnt_instance("console web1")
    assert ran.code == 1
    assert "Cannot start /nowhere/ssh: No such file or directory" in ran.err


@pytest.mark.parametrize(
    ("console", "text"),
    [
        ({"kind": "msg", "message": "there is none"}, "there is none"),
        (
            {"kind": "vnc", "host": "192.0.2.1", "port": 11000, "display": 5100},
            "Instance web1.example.com has its VNC display at 192.0.2.1:11000 (display 5100):"
            " vnc://192.0.2.1:11000/",
        ),
        (
            {"kind": "spice", "host": "2001:db8::1", "port": 11001},
            "Instance web1.example.com has its SPICE display at [2001:db8::1]:11001:"
            " spice://[2001:db8::1]:11001/",
        ),
    ],
)
def test_other_consoles_are_described(
    master: RecordingMaster, gnt_instance: Run, console: dict[str, Any], text: str
) -> None:
    running(master, {"instance": "web1.example.com", **console})
    for words in ("console web1", "console --show-cmd web1"):
        ran = gnt_instance(words)
        assert (ran.code, ran.out) == (0, f"{text}\n")


@pytest.mark.parametrize(
    ("console", "state", "sentence"),
    [
        (None, False, "does not run; start it with gnt-instance startup web1.example.com"),
        (None, None, "Node node2.example.com does not say whether instance web1.example.com runs"),
        (None, True, "does not say where the console of instance web1.example.com is"),
        ({"kind": "teletype", "instance": "web1"}, True, "unknown kind 'teletype'"),
    ],
)
def test_no_console(
    master: RecordingMaster, gnt_instance: Run, console: Any, state: bool | None, sentence: str
) -> None:
    running(master, console, oper_state=state)
    ran = gnt_instance("console web1")
    assert ran.code == 1
    assert sentence in ran.err.splitlines()[-1]


def test_no_instance(master: RecordingMaster, gnt_instance: Run) -> None:
    ran = gnt_instance("console nosuch")
    assert ran.code == 1
    assert ran.err.splitlines()[-1] == "There is no instance 'nosuch'"


def with_consoles(master: RecordingMaster, *kinds: str) -> None:
    answer = {"instance": "web1.example.com", "node": "node2.example.com", "kinds": [*kinds]}
    master._on_QueryConsoles = lambda _args: answer  # type: ignore[attr-defined]
    master.where.hosts.parent.mkdir(parents=True, exist_ok=True)
    master.where.hosts.write_text("192.0.2.7 node1.example.com\n")


def test_the_pages_of_the_web_interface_are_printed(
    master: RecordingMaster, gnt_instance: Run
) -> None:
    with_consoles(master, "serial", "vnc")
    ran = gnt_instance("console --web web1")
    start = "https://192.0.2.7:5080/ui/console.html?instance=web1.example.com&kind="
    assert (ran.code, ran.out) == (0, f"{start}serial\n{start}vnc\n")
    assert master.requests == [("QueryConsoles", {"instance": "web1"})]


def test_no_console_for_a_browser(master: RecordingMaster, gnt_instance: Run) -> None:
    with_consoles(master)
    ran = gnt_instance("console --web web1")
    assert ran.code == 1
    assert "set serial_console or vnc_bind_address" in ran.err


def test_pages_are_at_the_name_of_the_cluster(
    master: RecordingMaster, gnt_instance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_consoles(master, "vnc")
    monkeypatch.setattr("ganeti.paths.is_rooted", lambda: False)
    name = lambda _args: ["cluster.example.com"]  # noqa: E731
    master._on_QueryConfigValues = name  # type: ignore[attr-defined]
    ran = gnt_instance("console --web web1")
    start = "https://cluster.example.com:5080/ui/console.html"
    assert ran.out == f"{start}?instance=web1.example.com&kind=vnc\n"
