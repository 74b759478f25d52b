"""Options that take something back, and commands that have nothing to change."""

from __future__ import annotations

import pytest
from recording_master import RecordingMaster

from ganeti.cli import program, programs


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("--ipolicy-bounds-specs default", {"minmax": "default"}),
        ("--ipolicy-disk-templates default", {"disk-templates": "default"}),
        ("--ipolicy-vcpu-ratio default", {"vcpu-ratio": "default"}),
    ],
)
def test_a_policy_of_a_group_goes_back_to_that_of_the_cluster(
    master: RecordingMaster, words: str, change: dict[str, str]
) -> None:
    assert program.main(programs.GROUP, ["modify", *words.split(), "default"]) == 0
    assert master.op["ipolicy"] == change


def test_a_change_of_storage_that_changes_nothing_is_no_failure(
    master: RecordingMaster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(programs.NODE, ["modify-storage", "node1", "lvm-pv", "/dev/sda"]) == 0
    assert capsys.readouterr().err == "No changes to perform, exiting.\n"
    assert master.jobs == []
