"""Pages of doc/reference/ that are made from the code fit the code."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = [sys.executable, str(ROOT / "tools" / "make-docs")]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *words], capture_output=True, text=True, timeout=60, check=False)


def test_the_pages_fit_the_code() -> None:
    ran = run("--check")
    assert ran.returncode == 0, f"{ran.stderr}{ran.stdout[:3000]}"


def test_a_page_that_does_not_fit_is_shown_and_can_be_written(tmp_path: Path) -> None:
    page = tmp_path / "query-fields.md"
    page.write_text("# Fields of queries\n")
    ran = run("--check", "--dir", str(tmp_path))
    assert ran.returncode == 1
    assert "run tools/make-docs" in ran.stderr
    assert "+| `oper_ram` | Memory | Storage size | nodes |" in ran.stdout
    assert page.read_text() == "# Fields of queries\n"
    assert run("--dir", str(tmp_path)).returncode == 0
    assert page.read_text() == (ROOT / "doc" / "reference" / "query-fields.md").read_text()


def test_every_parameter_has_a_meaning() -> None:
    page = (ROOT / "doc" / "reference" / "parameters.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert [row for row in rows if row.endswith("| |")] == []


def test_every_program_has_a_man_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pages = {page.stem for page in (ROOT / "doc/reference/man").glob("*.8")}
    assert set(project["scripts"]) == pages
