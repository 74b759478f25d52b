"""ensure-dirs: directories and modes of a node, and nothing opened that was closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti.paths import Paths
from ganeti.tools import ensure_dirs


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_directories_are_made_and_secrets_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    where = Paths(tmp_path)
    assert ensure_dirs.main([]) == 0
    assert [mode(p) for p in (where.socket_dir, where.log, where.conf)] == [0o770, 0o770, 0o755]
    for path, before in (
        (where.server_cert, 0o644),
        (where.ca_key, 0o400),
        (where.hmac_key, 0o644),
    ):
        path.write_text("secret")
        path.chmod(before)
    job = where.queue / "job-1"
    job.write_text("{}")
    job.chmod(0o666)
    where.log.chmod(0o777)
    assert ensure_dirs.main(["-v"]) == 0
    assert [mode(p) for p in (where.server_cert, where.ca_key, where.hmac_key, where.log, job)] == [
        *(0o600, 0o400, 0o640, 0o770, 0o666),
    ]
    assert "server.pem: mode 644 becomes 600" in capsys.readouterr().err
    assert ensure_dirs.main(["-v", "--full-run"]) == 0
    assert mode(job) == 0o640
    assert ensure_dirs.main(["-v", "--full-run"]) == 0
    assert capsys.readouterr().err.count("becomes") == 1
