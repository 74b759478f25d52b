"""The status of all instances goes to files, for programs that must not ask the master.

A line ``<instance> <status>`` each: ``watcher.<group>.instance-status`` beside the configuration,
and of all groups ``instance-status`` in the run directory.
"""

from __future__ import annotations

from collections.abc import Iterable

from ganeti.base import files
from ganeti.upkeep.round import Round
from ganeti.upkeep.view import Instance


def run(now: Round) -> None:
    """Write the files; OSError when that fails."""
    lines: list[str] = []
    for group in now.groups:
        text = _text(group.instances)
        files.write_atomic(now.paths.watcher_status(group.uuid), text, mode=0o644)
        lines += text.splitlines(keepends=True)
    if now.options.group is None:
        files.write_atomic(now.paths.instance_status, "".join(sorted(lines)), mode=0o644)


def _text(instances: Iterable[Instance]) -> str:
    return "".join(f"{item.name} {item.status.value}\n" for item in instances)
