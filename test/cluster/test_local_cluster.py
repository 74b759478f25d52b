"""The tool that makes clusters in directories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from local_cluster import REPOSITORY, Cluster, tool
from needs import needs_root

from ganeti.base import process

AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


def processes_of(directory: Path) -> list[str]:
    """Command lines of processes whose environment or words name a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            text = words + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(directory) in text:
            found.append(words.replace(b"\0", b" ").decode())
    return found


def test_two_clusters_side_by_side_and_nothing_left(tmp_path: Path) -> None:
    first, second = Cluster(tmp_path / "a", 1), Cluster(tmp_path / "b", 2)
    try:
        assert first.add("one.example.com", node="node1").code == 0
        assert second.add("two.example.com").code == 0
        assert first.cells("instance list -o name") == [["one.example.com"]]
        assert second.cells("instance list -o name") == [["two.example.com"]]
        stopped = tool("stop", first.directory)
        assert stopped.code == 0
        assert processes_of(first.directory) == []
        assert second.cells("instance list -o name") == [["two.example.com"]]
        again = tool("start", first.directory)
        assert again.code == 0, again.err
        assert first.cells("instance list -o name") == [["one.example.com"]]
        # Opened in a shell after the eval, so the environment is that of the cluster.
        editor = subprocess.Popen(["sleep", "600"], env=first.env())
        try:
            assert tool("destroy", first.directory).code == 0
            assert editor.poll() is None
        finally:
            editor.kill()
            editor.wait()
    finally:
        first.destroy()
        second.destroy()
    assert processes_of(tmp_path) == []
    assert not first.directory.exists()


def test_stop_after_a_crash(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "c", 2)
    try:
        for name in ("ganeti-masterd", "ganeti-noded"):
            pid = cluster.pid(name)
            assert pid
            os.kill(pid, signal.SIGKILL)
            process.wait_exit(pid, 10)
        assert tool("stop", cluster.directory).code == 0
        assert processes_of(cluster.directory) == []
    finally:
        cluster.destroy()


def test_words(tmp_path: Path) -> None:
    assert tool("status", tmp_path / "none").code == 1
    assert "there is no cluster in" in tool("status", tmp_path / "none").err
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("keep")
    refused = tool("destroy", other)
    assert refused.code == 1
    assert (other / "mine").exists()
    assert tool("start", tmp_path / "n", "--nodes", "0").code == 1


def python_for_everybody() -> str | None:
    """An interpreter like ours that an ordinary user may run, or None."""
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        text = "import sys, venv; print(sys.version_info[:2])"
        words = [*AS_NOBODY, "sh", "-c", 'exec "$0" -c "$1"', candidate, text]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.stdout.strip() == str(sys.version_info[:2]):
            return candidate
    return None


def clone_for_nobody(home: Path, python: str) -> Path:
    """The program and the libraries it needs, where nobody may read them."""
    copy = home / "src"
    ignored = (".git", ".venv", ".local-cluster", ".*_cache", ".hypothesis")
    shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=shutil.ignore_patterns(*ignored))
    ours = Path(pytest.__file__).parents[1]
    shutil.copytree(
        ours,
        home / "site",
        symlinks=True,
        ignore=shutil.ignore_patterns(
            "mypy*",
            "*__mypyc*",
            "pip*",
            "ruff*",
            "__editable__*",
            "hypothesis*",
            "grimp*",
        ),
    )
    subprocess.run([python, "-m", "venv", "--without-pip", str(copy / ".venv")], check=True)
    packages = next((copy / ".venv" / "lib").glob("python3.*/site-packages"))
    (packages / "libraries.pth").write_text(f"{home}/site\n")
    setup = copy / ".venv/bin/ganeti-node-setup"  # as an installation would make it
    setup.write_text("#!/bin/sh\nexec python3 -m ganeti.bootstrap.node_setup\n")
    setup.chmod(0o755)
    subprocess.run(["chown", "-R", "nobody", str(home)], check=True)
    return copy


def on_a_machine_with_a_package(home: Path) -> list[str]:
    """Words before a command for which the groups of a packaged installation exist."""
    groups = home / "group"
    names = ("gnt-confd", "gnt-daemons", "gnt-masterd", "gnt-rapi")
    lines = [f"{name}:x:{number}:\n" for number, name in enumerate(names, 64_100)]
    groups.write_text(Path("/etc/group").read_text() + "".join(lines))
    words = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"', str(groups)]
    tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    return [] if tried.returncode else words


@pytest.mark.root
@needs_root("to become another user")
def test_without_root() -> None:
    """An ordinary user gets a cluster too, where a packaged installation has made its groups."""
    python = python_for_everybody()
    if python is None:
        pytest.skip("no Python of this version that an ordinary user may run")
    home = Path(tempfile.mkdtemp(prefix="ganeti-nobody-"))
    home.chmod(0o755)
    try:
        copy = clone_for_nobody(home, python)
        script = (
            f"cd {copy} && tools/local-cluster start --nodes 2 &&"
            ' eval "$(tools/local-cluster env)" && gnt() { python3 -m ganeti.cli "gnt-$@"; } &&'
            " gnt instance add -n node2 -o noop -t file --disk 0:size=8M --no-nics"
            " user.example.com &&"
            " gnt instance list --no-headers -o name,status; tools/local-cluster destroy"
        )
        ran = subprocess.run(
            [*on_a_machine_with_a_package(home), *AS_NOBODY, "sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={"PATH": f"{copy}/.venv/bin:/usr/bin:/bin", "HOME": str(home)},
        )
        assert "user.example.com running" in ran.stdout, ran.stderr + ran.stdout
        assert processes_of(home) == []
    finally:
        shutil.rmtree(home, ignore_errors=True)
