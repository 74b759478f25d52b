"""What the programs of LXC print, by recorded output of LXC 5.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.lxc import tools
from ganeti.hypervisor.lxc.tools import Container

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "recorded" / "lxc_tools.json").read_text()
)
PATH = ["-P", "/run/ganeti/lxc"]
COLUMNS = ["--fancy", "--fancy-format", "NAME,STATE,PID"]


def find_output(program: str, *words: str, number: int = 0, stream: str = "stdout") -> str:
    argv = [program, *(() if words == ("--version",) else PATH), *words]
    found = [case for case in RECORDED["cases"] if case["argv"] == argv]
    return str(found[number][stream])


def info(name: str) -> str:
    return find_output("lxc-info", "-n", name, "--state", "--pid")


def test_containers_of_a_list() -> None:
    assert tools.parse_list(find_output("lxc-ls", *COLUMNS, number=1)) == [
        Container("web1.example.com", "RUNNING", 14044),
        Container("web2.example.com", "FROZEN", 14053),
        Container("web3.example.com", "STOPPED", None),
    ]


def test_only_what_is_stopped_does_not_run() -> None:
    stopped, later = (
        tools.parse_list(find_output("lxc-ls", *COLUMNS)),
        find_output("lxc-ls", *COLUMNS, number=1),
    )
    assert [each.runs for each in stopped] == [False, False, False]
    assert [each.runs for each in tools.parse_list(later)] == [True, True, False]


@pytest.mark.parametrize(("name", "pid"), [("web1", 14044), ("web2", 14053), ("web3", None)])
def test_state_of_one(name: str, pid: int | None) -> None:
    found = tools.parse_info(name, info(f"{name}.example.com"))
    assert (found.pid, found.runs) == (pid, pid is not None)


@pytest.mark.parametrize(
    ("text", "version"),
    [("5.0.2\n", (5, 0, 2)), ("3.0\n", (3, 0)), ("5.0.0~git2209-g5a7b9ce67", (5, 0, 0))],
)
def test_version(text: str, version: tuple[int, ...]) -> None:
    assert tools.parse_version(text) == version
    assert tools.parse_version(find_output("lxc-start", "--version")) == (5, 0, 2)


def test_first_error_of_a_log_is_the_cause() -> None:
    found = tools.parse_errors(RECORDED["log"])
    assert found[0] == 'No such file or directory - Failed to exec "/sbin/init"'
    assert not any("Failed to destroy" in text for text in found), "a warning is not an error"
    assert tools.parse_errors("") == []


def test_the_words_that_tell_an_unknown_container() -> None:
    assert "doesn't exist" in find_output(
        "lxc-info", "-n", "nobody", "--state", "--pid", stream="stderr"
    )


@pytest.mark.parametrize("text", ["NAME STATE PID\nweb1 RUNNING\n", "NAME\nweb1 RUNNING x\n"])
def test_lists_of_unknown_form_are_refused(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="unknown form"):
        tools.parse_list(text)


def test_other_unknown_forms_are_refused() -> None:
    with pytest.raises(errors.HypervisorError, match="unknown"):
        tools.parse_info("web1", "")
    with pytest.raises(errors.HypervisorError, match="printed"):
        tools.parse_version("lxc")
