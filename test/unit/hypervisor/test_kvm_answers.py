"""What QEMU answers, by recordings of QEMU 7.2: a migration on its way, and processors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ganeti.hypervisor.kvm import migration_plan, processors
from ganeti.model.enums import MigrationState

RECORDED = Path(__file__).parents[2] / "recorded" / "qmp.json"
CASES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]


def find_answer(command: str, case: str) -> Any:
    [found] = [each for each in CASES if (each["command"], each["case"]) == (command, case)]
    return found["answer"]


@pytest.mark.parametrize(
    ("case", "state", "error"),
    [
        ("none was begun", MigrationState.FAILED, "no migration of it was begun"),
        (
            "nobody listens at the target",
            MigrationState.FAILED,
            "Failed to connect to '127.0.0.1:1': Connection refused",
        ),
        ("just begun", MigrationState.ACTIVE, None),
        ("under way", MigrationState.ACTIVE, None),
        ("cancelled", MigrationState.CANCELLED, None),
        ("completed", MigrationState.COMPLETED, None),
    ],
)
def test_states_of_a_migration(case: str, state: MigrationState, error: str | None) -> None:
    found = migration_plan.status(find_answer("query-migrate", case))
    assert (found.status, found.error) == (state, error)


def test_figures_of_a_migration() -> None:
    answer = find_answer("query-migrate", "under way")
    found = migration_plan.status(answer)
    assert found.total_ram == 67641344
    assert found.remaining_ram == answer["ram"]["remaining"]
    assert found.downtime is None
    done = migration_plan.status(find_answer("query-migrate", "completed"))
    assert (done.remaining_ram, done.eta) == (0, None)
    assert (done.downtime, done.total_time) == (1, 15)


@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_places_for_processors(machine: str) -> None:
    found = processors.order_slots(
        find_answer("query-hotpluggable-cpus", f"machine {machine}, one of four")
    )
    assert [slot.properties["core-id"] for slot in found] == [0, 1, 2, 3]
    assert [bool(slot.path) for slot in found] == [True, False, False, False]
    assert not found[0].was_added
    assert [slot.number for slot in processors.find_added(found, 3, "web1")] == [1, 2]
    assert processors.find_removed(found, 1, "web1", "kvm") == []


def test_a_processor_that_was_added_can_go_again() -> None:
    found = processors.order_slots(
        find_answer("query-hotpluggable-cpus", "machine pc, one was added")
    )
    assert found[1].was_added
    assert [slot.number for slot in processors.find_removed(found, 1, "web1", "kvm")] == [1]
