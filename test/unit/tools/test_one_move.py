"""What move-instance does when one of the clusters fails in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.rapi.client import GanetiApiError
from ganeti.tools.move_request import Wish
from ganeti.tools.one_move import OneMove, Way

WEB = "web1.example.com"
INFO = {
    "name": WEB,
    "config_state": "up",
    "os": "plain",
    "os_instance": {},
    "disk_template": "file",
    "disks": [{"size": 8, "mode": "rw", "name": None, "spindles": None}],
    "nics": [],
    "hypervisor": "fake",
    "hv_instance": {},
    "be_instance": {},
}
TOLD = {"disks": [["192.0.2.1", 1, "magic", "d", "s"]], "x509_ca": "ca"}


class Side:
    """A cluster that keeps what was asked of it; jobs end as ``failing`` says."""

    def __init__(self, *failing: str) -> None:
        self.asked: list[str] = []
        self._failing = failing
        self.request: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def ask(*args: object, **kwargs: Any) -> Any:
            if f"-{name}" in self._failing:
                raise GanetiApiError("no answer")
            self.asked.append(name)
            self.request = kwargs if name == "CreateInstance" else self.request
            return name

        return ask

    def GetInstanceTags(self, name: str) -> list[str]:
        return [name[:3]]

    def WaitForJobChange(self, *_args: object) -> dict[str, Any]:
        entries = [] if "CreateInstance" in self._failing else [[1, [0, 0], "remote-import", TOLD]]
        return {"job_info": ["error" if not entries else "running"], "log_entries": entries}

    def CancelJob(self, job: str) -> list[Any]:
        self.asked.append(f"cancel {job}")
        self._failing = (*self._failing, job)
        return [True, ""]

    def Wait(self, job: str, timeout: float | None = None) -> dict[str, Any]:
        if "-Wait" in self._failing:
            raise GanetiApiError("no answer")
        if job in self._failing:
            why = [["OpPrereqError", ["it broke", "temp_insufficient_resources"]]]
            return {"status": "error", "opresult": why}
        if timeout == 0 and job == "CreateInstance":
            return {"status": "running", "opresult": [None]}
        results: dict[str, Any] = {
            "GetInstanceInfo": {WEB: INFO},
            "PrepareExport": {"handshake": [], "x509_ca": "ca", "x509_key_name": []},
        }
        return {"status": "success", "opresult": [results.get(job)]}


def run(source: Side, target: Side, *, tries: int = 0, keep: bool = False) -> list[str]:
    """Move; what was said."""
    said: list[str] = []
    way = Way(source, target, Wish(), tries=tries, keep=keep, delay=3.0)  # type: ignore[arg-type]
    OneMove(way, WEB, said.append, lambda seconds: said.append(f"slept {seconds:g}")).run()
    return said


def test_the_order_keeps_it_from_running_twice() -> None:
    source, target = Side(), Side()
    assert run(source, target)[-1] == "moved"
    assert source.asked == [
        "GetInstanceInfo",
        "PrepareExport",
        "ShutdownInstance",
        "ExportInstance",
        "DeleteInstance",
    ]
    assert target.request["start"] is True
    assert target.request["tags"] == ["web"]


def test_it_stays_when_that_is_wanted() -> None:
    source = Side()
    run(source, Side(), keep=True)
    assert "DeleteInstance" not in source.asked


@pytest.mark.parametrize("step", ["ExportInstance", "ShutdownInstance", "-ExportInstance"])
def test_a_failure_of_the_source_ends_the_import_and_the_guest_goes_on(step: str) -> None:
    source, target = Side(step), Side()
    with pytest.raises(errors.OpExecError, match="runs again where it was"):
        run(source, target)
    assert target.asked == ["CreateInstance", "cancel CreateInstance"]
    assert source.asked[-1] == "StartupInstance"
    assert "DeleteInstance" not in source.asked


def test_a_target_that_does_not_answer_may_run_it_so_it_is_not_started() -> None:
    source, target = Side(), Side("-Wait")
    with pytest.raises(errors.OpExecError, match="look there before you start the instance"):
        run(source, target)
    assert "StartupInstance" not in source.asked
    assert "DeleteInstance" not in source.asked


def test_a_guest_that_does_not_start_again_is_told() -> None:
    source = Side("ExportInstance", "StartupInstance")
    with pytest.raises(errors.OpExecError, match="was not started again: it broke"):
        run(source, Side())


def test_a_source_that_stays_is_told() -> None:
    with pytest.raises(errors.OpExecError, match="do not start it"):
        run(Side("DeleteInstance"), Side())


def test_places_are_asked_for_again() -> None:
    source, target = Side(), Side("CreateInstance")
    with pytest.raises(errors.OpPrereqError, match="it broke"):
        run(source, target, tries=2)
    assert target.asked == ["CreateInstance"] * 3
    assert "ShutdownInstance" not in source.asked
