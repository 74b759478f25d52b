"""Text files and machine-readable outputs are those of Debian's compiled programs."""

import os
import subprocess
from pathlib import Path

import pytest
from clusters import cluster

from ganeti.htools import hbal, hcheck, hspace, program, text

COMPILED = sorted(Path("/usr/lib/ganeti").glob("*/usr/bin/htools"))
pytestmark = pytest.mark.skipif(
    not COMPILED, reason="Debian's htools are not installed (apt-get install ganeti-htools-3.0)"
)


def run_debian(name: str, *words: str) -> str:
    done = subprocess.run(
        [COMPILED[-1], *words],
        env={**os.environ, "HTOOLS": name},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(cluster(3, 4, 12, tags=True, templates=("drbd", "plain"))))
    return str(path)


def test_both_write_what_the_other_reads(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    assert program.run(hbal.PROGRAM, ["-t", file, "-l", "2", "-S", ours]) == 0
    capsys.readouterr()
    run_debian("hbal", "-t", file, "-l", "2", "-S", theirs)
    for suffix in ("original", "balanced"):
        written = [text.load(Path(f"{n}.{suffix}").read_text(), n) for n in (ours, theirs)]
        by_name = [sorted(one.instances, key=lambda i: i.name) for one in written]
        assert by_name[0] == by_name[1]
        if suffix == "original":  # theirs take memory for an instance that is down when it moves
            assert sorted(written[0].nodes, key=str) == sorted(written[1].nodes, key=str)
        assert written[0].policies["group1"] == written[1].policies["group1"]
    assert "Initial score" in run_debian("hbal", "-t", f"{ours}.balanced")


def keys(out: str) -> list[str]:
    return [line.partition("=")[0] for line in out.splitlines() if "=" in line]


@pytest.mark.parametrize("name", ["hspace", "hcheck"])
def test_keys_for_programs_are_the_same(
    file: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = ["-t", file, "--machine-readable", *(["-l", "3"] if name == "hspace" else [])]
    program.run({"hspace": hspace.PROGRAM, "hcheck": hcheck.PROGRAM}[name], words)
    assert sorted(keys(capsys.readouterr().out)) == sorted(keys(run_debian(name, *words)))
