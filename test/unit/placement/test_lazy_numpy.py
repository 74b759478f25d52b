"""numpy is loaded at first use: no command and no daemon pays for it at its start."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        *("ganeti.cli.instance", "ganeti.cli.cluster", "ganeti.cli.node", "ganeti.master.daemon"),
        *("ganeti.ops.allocator.ask", "ganeti.ops.allocator.board", "ganeti.ops.instance.create"),
    ],
)
def test_programs_start_without_numpy(module: str) -> None:
    code = f"import sys, {module}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
