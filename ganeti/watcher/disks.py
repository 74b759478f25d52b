"""Disks that should be active and are not, are activated; missing ones are named."""

from __future__ import annotations

import logging
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.upkeep import instances
from ganeti.upkeep.round import Round
from ganeti.upkeep.view import Group

_LOG = logging.getLogger(__name__)
#: Seconds that all verifications may take together; the next run continues with the rest.
_PATIENCE = 120
_ENDED = ("success", "error", "canceled")


def run(now: Round) -> None:
    """Verify the disks of each group in a job, wait for it, and activate what it found.

    Raises:
        GanetiError: a verification or an activation failed.
    """
    groups = [group for group in now.groups if group.has_verifiable_disks]
    if not now.options.verify_disks or not groups:
        return
    ops = [_verification(now, group) for group in groups]
    end = now.clock.monotonic() + _PATIENCE
    problems: list[str] = []
    for group, submitted in zip(groups, now.submit(ops)):
        if submitted.job_id is None:
            problems.append(f"group {group.name}: {submitted.error}")
            continue
        try:
            findings = _result(now, submitted.job_id, end)
        except errors.GanetiError as err:
            problems.append(f"group {group.name}: {errors.text(err)}")
            continue
        problems += _act(now, group, findings)
    if problems:
        raise errors.GenericError("; ".join(problems))


def _verification(now: Round, group: Group) -> JsonObject:
    return {
        "OP_ID": "OP_GROUP_VERIFY_DISKS",
        "group_name": group.name,
        "is_strict": now.options.strict,
        "priority": 10,
        "reason": now.reason("regular verification of disks"),
    }


def _result(now: Round, job: int, end: float) -> tuple[dict[str, str], list[str], JsonObject]:
    """Wait for the result of a verification; GanetiError when it failed or does not end in time."""
    values: list[Any] | None = None
    while values is None or values[0] not in _ENDED:
        left = end - now.clock.monotonic()
        if left <= 0:
            raise errors.GenericError(f"the verification of disks still runs as job {job}")
        change = now.client.wait_for_job_change(
            job, ["status", "opresult"], values, None, max(1, int(left))
        )
        if change is not None:
            values = list(change.values)
    status, results = values
    if status != "success":
        raise errors.GenericError(f"job {job}, the verification of disks, ended with {status}")
    unreachable, inactive, missing = results[0]
    return unreachable, inactive, missing


def _act(
    now: Round, group: Group, found: tuple[dict[str, str], list[str], JsonObject]
) -> list[str]:
    """Activate disks; what went wrong."""
    unreachable, inactive, missing = found
    for node, text in sorted(unreachable.items()):
        _LOG.error("Disks on node %s were not verified: %s", node, text)
    for name, volumes in sorted(missing.items()):
        where = ", ".join(f"{volume} on {node}" for node, volume in volumes)
        _LOG.error(
            "Instance %s has lost disks: %s; see 'gnt-instance replace-disks' and"
            " 'gnt-instance recreate-disks'",
            name,
            where,
        )
    known = {instance.name: instance for instance in group.instances}
    todo = [
        known[name]
        for name in inactive
        if name in known
        and not any(group.boots.get(node, "") is None for node in known[name].nodes)
    ]
    reason = now.reason("disks of the instance are not active")
    ops = [{**instances.activate_disks(instance), "reason": reason} for instance in todo]
    problems = []
    for instance, submitted in zip(todo, now.submit(ops)):
        if submitted.job_id is None:
            problems.append(f"{instance.name}: {submitted.error}")
        else:
            _LOG.info("activate_disks %s: job %s", instance.name, submitted.job_id)
    return problems
