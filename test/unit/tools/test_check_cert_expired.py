"""check-cert-expired: 0 means that the certificate has expired."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ganeti.net import certs
from ganeti.tools import check_cert_expired


@pytest.mark.parametrize(("days", "code", "text"), [(10, 1, "days left"), (0, 0, "expired on")])
def test_by_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days: int, code: int, text: str
) -> None:
    file = tmp_path / "server.pem"
    certs.write(file, certs.self_signed("node1.example.com", days=days))
    assert check_cert_expired.main([str(file)]) == code
    assert text in capsys.readouterr().out


def test_what_is_no_certificate_has_not_expired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.pem"
    file.write_text("nonsense")
    for path in (file, tmp_path, tmp_path / "nosuch"):
        assert check_cert_expired.main([str(path)]) == 1
        assert capsys.readouterr().err.startswith(f"check-cert-expired: {path}: ")


def test_as_a_program() -> None:
    argv = [sys.executable, "-m", "ganeti.tools.check_cert_expired"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, "usage: check-cert-expired" in done.stderr) == (2, True)
