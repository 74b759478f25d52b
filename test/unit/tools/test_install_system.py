"""What make install puts beside the programs, and what make uninstall leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ganeti.base.releases import OWN

ROOT = Path(__file__).parents[3]


def run(tool: str, prefix: str, destdir: Path) -> None:
    subprocess.run([ROOT / "tools" / tool, prefix, str(destdir)], check=True, timeout=60)


def files(directory: Path) -> set[str]:
    return {
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if (path.is_file() or path.is_symlink()) and "share/doc" not in str(path)
    }


@pytest.mark.parametrize(
    ("prefix", "units"),
    [
        ("/usr", "usr/lib/systemd/system"),
        ("/usr/local", "usr/local/lib/systemd/system"),
        ("/opt/ganeti", "etc/systemd/system"),
    ],
)
def test_units_are_where_systemd_looks_and_start_the_programs_of_the_prefix(
    tmp_path: Path, prefix: str, units: str
) -> None:
    run("install-system", prefix, tmp_path)
    names = {path.name for path in (ROOT / "daemons" / "systemd").iterdir()}
    assert {path.name for path in (tmp_path / units).iterdir()} == names
    noded = (tmp_path / units / "ganeti-noded.service").read_text()
    assert f"\nExecStart={prefix}/sbin/ganeti-noded -f " in noded
    cron = (tmp_path / "etc/cron.d/ganeti").read_text()
    assert f"{prefix}/sbin/ganeti-watcher\n" in cron
    agents = tmp_path / "usr/lib/ocf/resource.d/ganeti"
    for name in ("ganeti-master-role", "ganeti-nodes"):
        agent = agents / name
        assert agent.stat().st_mode & 0o777 == 0o755
        assert f"python={prefix}/lib/ganeti/default/venv/bin/python\n" in agent.read_text()
    rotation = (tmp_path / "etc/logrotate.d/ganeti").read_text()
    assert f"{prefix}/lib/ganeti/daemon-util rotate-all-logs" in rotation


def test_what_the_administrator_changed_stays(tmp_path: Path) -> None:
    defaults, cron = tmp_path / "etc/default/ganeti", tmp_path / "etc/cron.d/ganeti"
    run("install-system", "/usr/local", tmp_path)
    defaults.write_text('RAPI_ARGS="-b 192.0.2.1"\n')
    cron.write_text("# nothing\n")
    run("install-system", "/usr/local", tmp_path)
    run("uninstall", "/usr/local", tmp_path)
    assert defaults.read_text() == 'RAPI_ARGS="-b 192.0.2.1"\n'
    assert cron.read_text() == "# nothing\n"


def test_the_version_in_use_stays_when_another_one_is_installed(tmp_path: Path) -> None:
    link = tmp_path / "etc/ganeti/lib"
    run("install-system", "/opt/ganeti", tmp_path)
    assert str(link.readlink()) == f"/opt/ganeti/lib/ganeti/{OWN}"
    (tmp_path / "opt/ganeti/lib/ganeti/3.1").mkdir(parents=True)
    link.unlink()
    link.symlink_to("/opt/ganeti/lib/ganeti/3.1")
    run("install-system", "/opt/ganeti", tmp_path)
    assert str(link.readlink()) == "/opt/ganeti/lib/ganeti/3.1"
    run("uninstall", "/opt/ganeti", tmp_path)
    assert not link.is_symlink()


def test_uninstall_leaves_nothing_of_ours_and_everything_of_others(tmp_path: Path) -> None:
    sbin, library = tmp_path / "usr/local/sbin", tmp_path / "usr/local/lib/ganeti"
    for directory in (sbin, library / "venv/bin"):
        directory.mkdir(parents=True)
    (sbin / "other").write_text("")
    (sbin / "gnt-old").symlink_to("../lib/ganeti/venv/bin/gnt-old")
    (sbin / "gnt-new").symlink_to("../lib/ganeti/default/venv/bin/gnt-new")
    run("install-system", "/usr/local", tmp_path)
    run("uninstall", "/usr/local", tmp_path)
    assert files(tmp_path) == {"usr/local/sbin/other", "etc/default/ganeti", "etc/cron.d/ganeti"}
    assert not library.exists()
