"""A master daemon that does not start lets go of the job queue before it says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ganeti import errors
from ganeti.base import files
from ganeti.master.core import Core


def test_a_configuration_of_another_version(root):
    raw = json.loads(root.config_file.read_text())
    raw["version"] = 3_000_000
    root.config_file.write_text(json.dumps(raw))
    with pytest.raises(errors.ConfigVersionMismatch):
        Core(root)
    assert not files.is_locked(root.queue / "lock")


def test_a_core_that_may_not_start(root):
    core = Core(root)
    assert files.is_locked(root.queue / "lock")
    core.abandon()
    assert not files.is_locked(root.queue / "lock")
    core.store._journal.close()


def test_the_queue_is_free_when_the_command_returns(root):
    """The daemon is refused in the background, as on a real master."""
    raw = json.loads(root.config_file.read_text())
    raw["version"] = 3_000_000
    root.config_file.write_text(json.dumps(raw))
    start = [sys.executable, "-m", "ganeti.master.daemon"]
    for _ in range(3):
        ran = subprocess.run(start, capture_output=True, text=True, check=False, env=os.environ)
        assert ran.returncode != 0
        assert "cfgupgrade" in ran.stderr
        assert not files.is_locked(root.queue / "lock")
