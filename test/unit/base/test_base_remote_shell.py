"""Commands on other nodes: words arrive as words, secrets stay out of them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import remote_shell

WORDS = ["printf", "%s|", "a b", "$HOME", "'", '"', ";", "`id`", "*", "", "\n"]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A remote shell that runs the command here, and writes down the node it was for."""
    script = tmp_path / "remote shell"
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "node, command = sys.argv[-2:]\n"
        f"open({str(tmp_path)!r} + '/asked-' + node, 'w').write(' '.join(sys.argv[1:-2]))\n"
        "if node == 'dead':\n"
        "    sys.exit('no route to host')\n"
        "os.environ['NODE'] = node\n"
        "os.execv('/bin/sh', ['sh', '-c', command])\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv(remote_shell.VARIABLE, f"{shlex.quote(str(script))} --some 'more words'")
    return tmp_path


def test_words_arrive_as_they_were(shell: Path) -> None:
    result = remote_shell.run("node1", WORDS, timeout=20)
    assert result.stdout == "a b|$HOME|'|\"|;|`id`|*||\n|"
    assert (shell / "asked-node1").read_text() == "--some more words"


def test_input_is_handed_on_and_not_seen_in_words(shell: Path) -> None:
    result = remote_shell.run("node1", ["cat"], timeout=20, input=b"secret")
    assert result.stdout == "secret"
    assert "secret" not in shlex.join(result.argv)


def test_all_nodes_are_asked_and_answer_in_their_order(shell: Path) -> None:
    nodes = [f"node{number}" for number in range(6)] + ["dead"]
    results = remote_shell.run_everywhere(nodes, ["printenv", "NODE"], timeout=30)
    assert [result.stdout.strip() for result in results] == [*nodes[:-1], ""]
    assert [result.ok for result in results] == [True] * 6 + [False]
    assert "no route to host" in results[-1].explain()
    assert remote_shell.run_everywhere([], ["true"], timeout=1) == []


def test_a_slow_node_is_cut_off_and_holds_up_nobody(shell: Path) -> None:
    slow, quick = remote_shell.run_everywhere(
        ["slow", "quick"], ["sh", "-c", '[ "$NODE" = quick ] || sleep 60'], timeout=1.0
    )
    assert (slow.timed_out, quick.ok) == (True, True)


def test_a_remote_shell_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote_shell.VARIABLE, "/no/such/shell")
    with pytest.raises(errors.CommandError, match="cannot run /no/such/shell"):
        remote_shell.run("node1", ["true"], timeout=5)
    (result,) = remote_shell.run_everywhere(["node1"], ["true"], timeout=5)
    assert (result.code, result.ok) == (remote_shell.SSH_FAILED, False)
    assert "/no/such/shell" in result.explain()


def test_a_variable_that_is_no_list_of_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote_shell.VARIABLE, "'open")
    with pytest.raises(errors.ParameterError, match="GANETI_REMOTE_SHELL cannot be used"):
        remote_shell.argv("node1", ["true"])


def test_ssh_never_asks_and_trusts_only_known_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(remote_shell.VARIABLE, raising=False)
    words = remote_shell.argv("node1", ["ls", "a b"])
    assert words[0] == "ssh"
    assert words[-3:] == ["root@node1", "--", "ls 'a b'"]
    assert "-oBatchMode=yes" in words
    assert "-oStrictHostKeyChecking=yes" in words
    assert "-p" not in words
    assert "-t" not in words


def test_ssh_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(remote_shell.VARIABLE, raising=False)
    words = remote_shell.argv(
        "-oProxyCommand=x", ["true"], port=2222, tty=True, check_host_key=False, user="u"
    )
    assert words[words.index("-p") + 1] == "2222"
    assert "-t" in words
    assert "-oStrictHostKeyChecking=accept-new" in words
    # A name cannot become an option.
    assert "u@-oProxyCommand=x" in words
    assert "-oProxyCommand=x" not in words
