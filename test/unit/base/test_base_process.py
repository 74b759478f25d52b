"""External programs: limits in time, no shell, nothing left behind."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from needs import needs_root

from ganeti import errors
from ganeti.base import process


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


# results


def test_both_outputs_and_the_code_come_back() -> None:
    code = "import sys; print('out'); print('ü', file=sys.stderr); sys.exit(3)"
    result = process.run(python(code), timeout=20, env={"PYTHONUTF8": "1"})
    assert (result.code, result.stdout, result.stderr) == (3, "out\n", "ü\n")
    assert not result.ok
    assert not result.timed_out
    assert result.explain().endswith(": exit code 3: ü")


def test_a_signal_is_told() -> None:
    result = process.run(python("import os; os.kill(os.getpid(), 9)"), timeout=20)
    assert result.code == -signal.SIGKILL
    assert result.explain().endswith(": signal 9")


def test_output_that_is_no_utf8_is_kept_readable() -> None:
    result = process.run(python(r"import sys; sys.stdout.buffer.write(b'a\xffb')"), timeout=20)
    assert result.stdout == "a\N{REPLACEMENT CHARACTER}b"


def test_large_outputs_and_input_do_not_block() -> None:
    code = (
        "import sys; data = sys.stdin.buffer.read();"
        "sys.stdout.buffer.write(data); sys.stderr.buffer.write(data)"
    )
    data = b"0123456789abcdef" * 200_000
    result = process.run(python(code), timeout=30, input=data)
    assert result.stdout.encode() == data
    assert result.stderr.encode() == data


def test_a_program_that_does_not_read_its_input_is_no_error() -> None:
    assert process.run(["/bin/true"], timeout=20, input=b"x" * 1_000_000).ok


def test_without_input_there_is_an_end_of_file() -> None:
    assert process.run(["/bin/cat"], timeout=20).stdout == ""


def test_words_are_words() -> None:
    words = ["$HOME", "a b", ";exit 1", "`id`", "*", "", "-n", "'", '"', "\n", "ü"]
    code = "import sys; print(sys.argv[1:])"
    result = process.run([*python(code), *words], timeout=20, env={"PYTHONUTF8": "1"})
    assert result.stdout.strip() == repr(words)


def test_the_environment_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    plain = process.run(["/usr/bin/env"], timeout=20).stdout.split()
    assert plain == [f"PATH={process.SAFE_PATH}", "LC_ALL=C"]
    assert process.run(["/usr/bin/env"], timeout=20, env={"A": "1"}).stdout == "A=1\n"


def test_it_runs_where_it_is_told(tmp_path: Path) -> None:
    assert process.run(["/bin/pwd"], timeout=20, cwd=tmp_path).stdout.strip() == str(tmp_path)


def test_no_descriptor_of_ours_reaches_a_program() -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    listed = process.run(["/bin/ls", "/proc/self/fd"], timeout=20).stdout.split()
    os.close(reader)
    os.close(writer)
    assert set(listed) <= {"0", "1", "2", "3"}


def test_a_log_gets_both_outputs_behind_what_it_has(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    result = process.run(python(code), timeout=20, log=log)
    assert log.read_text() == "before\nout\nerr\n"
    assert (result.ok, result.stdout, result.stderr) == (True, "", "")


def test_only_so_much_of_the_output_is_kept() -> None:
    code = "import sys; print('err', file=sys.stderr, flush=True); print('x' * 5_000_000)"
    result = process.run(python(code), timeout=20, most=8)
    assert result.ok
    assert result.stdout == "err\nxxxx\n[4999997 bytes left out]\n"
    assert process.run(["/bin/echo", "short"], timeout=20, most=8).stdout == "short\n"


def test_endless_output_ends_with_the_time() -> None:
    result = process.run(["/usr/bin/yes"], timeout=0.3, most=8)
    assert (result.timed_out, result.stdout[:8]) == (True, "y\ny\ny\ny\n")
    quiet = process.run(["/bin/sh", "-c", "exec >&- 2>&-; exec sleep 60"], timeout=0.3, most=8)
    assert quiet.timed_out


@needs_root("to run as another user")
def test_a_program_can_run_as_somebody_else() -> None:
    nobody = pwd.getpwnam("nobody")
    result = process.run(["/usr/bin/id"], timeout=20, user=nobody)
    assert f"uid={nobody.pw_uid}(nobody) gid={nobody.pw_gid}(" in result.stdout
    assert "root" not in result.stdout


# failures


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for words, why in (
        (["/no/such/program"], "No such file"),
        ([str(plain)], "Permission denied"),
        (["/bin/true", "a\0b"], "null byte"),
        (["/bin/true", "x" * 3_000_000], "too long"),
    ):
        with pytest.raises(errors.CommandError, match=f"cannot run {words[0]}: .*{why}"):
            process.run(words, timeout=20)


def test_checked_failures_carry_the_command_and_its_last_words() -> None:
    code = "import sys; sys.exit('one\\ntwo\\nthree\\nfour')"
    with pytest.raises(errors.CommandError) as caught:
        process.run_checked(python(code), timeout=20)
    text = errors.text(caught.value)
    assert text == f"{shlex.join(python(code))}: exit code 1: two | three | four"
    assert process.run_checked(["/bin/true"], timeout=20).ok


# time-outs


def test_a_time_out_kills_the_whole_process_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen(['/bin/sleep', '60'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('begun', flush=True)\n"
        "signal.pause()\n"
    )
    result = process.run(python(code), timeout=1.0)
    assert result.timed_out
    assert not result.ok
    assert result.stdout == "begun\n"
    assert "timed out: begun" in result.explain()
    for pid in pids.read_text().split():
        assert process.wait_exit(int(pid), 10)


def test_a_time_out_kills_what_ignores_other_signals() -> None:
    code = "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nsignal.pause()\n"
    started = time.monotonic()
    assert process.run(python(code), timeout=0.5).timed_out
    assert time.monotonic() - started < 10


def test_who_left_the_group_with_our_pipe_does_not_hold_us_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "KILL_WAIT", 0.2)
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess\n"
        "child = subprocess.Popen(['/bin/sleep', '60'], start_new_session=True)\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "print('begun', flush=True)\n"
    )
    started = time.monotonic()
    result = process.run(python(code), timeout=1.0)
    assert time.monotonic() - started < 10
    assert (result.timed_out, result.stdout) == (True, "begun\n")
    os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_an_interrupt_kills_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def communicate(self, input=None, timeout=None):
            if not children:
                children.append(self.pid)
                raise KeyboardInterrupt
            return super().communicate(input, timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        process.run(["/bin/sleep", "60"], timeout=60)
    assert not process.is_alive(children[0])


# processes


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    assert process.is_alive(child.pid)
    assert not process.wait_exit(child.pid, 0)
    assert child.stdin is not None
    child.stdin.close()
    assert process.wait_exit(child.pid, 10)
    assert not process.is_alive(child.pid)
    child.wait()
    assert process.wait_exit(child.pid, 0)
    assert not process.is_alive(child.pid)


def test_a_name_with_brackets_does_not_confuse(tmp_path: Path) -> None:
    program = tmp_path / "x) Z (y"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "60"])
    assert process.is_alive(child.pid)
    child.kill()
    child.wait()


def test_killing_a_group_that_is_gone_is_no_error() -> None:
    child = subprocess.Popen(["/bin/true"], start_new_session=True)
    child.wait()
    process.kill_group(child.pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
