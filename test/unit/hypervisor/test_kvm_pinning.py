"""cpu_mask: how it is read, and that threads stay where they shall."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import params, pinning, setup


def test_forms() -> None:
    assert pinning.parse("all") == (None,)
    assert pinning.parse("0-2,5") == ({0, 1, 2, 5},)
    assert pinning.parse("0:2-3:all") == ({0}, {2, 3}, None)


_WRONG = ["", "x", "3-1", "1,", ":", "0:", "-1", "1-2-3", "all,1", "999999"]


@pytest.mark.parametrize("text", _WRONG)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="cpu_mask"):
        pinning.parse(text)


def test_masks_must_fit_guest_and_node(tmp_path: Path) -> None:
    online = tmp_path / "online"
    online.write_text("0-3\n")
    assert pinning.plan("0-3", 2, online) == ({0, 1, 2, 3},)
    assert pinning.plan("0:3", 2, online) == ({0}, {3})
    with pytest.raises(errors.HypervisorError, match=r"3 masks but the instance has 2"):
        pinning.plan("0:1:2", 2, online)
    with pytest.raises(errors.HypervisorError, match="processor 4, which this node"):
        pinning.plan("2-6", 2, online)


def test_process_and_thread_are_kept_to_processors() -> None:
    one = min(os.sched_getaffinity(0))
    for pinned in (
        lambda pid: setup.pin(pid, (frozenset({one}),)),
        lambda pid: pinning.pin_each([pid], [frozenset({one})]),
    ):
        with subprocess.Popen(["sleep", "20"]) as child:
            try:
                pinned(child.pid)
                assert os.sched_getaffinity(child.pid) == {one}
            finally:
                child.kill()


def test_all_and_masks_for_each_leave_the_process_alone() -> None:
    before = os.sched_getaffinity(0)
    setup.pin(os.getpid(), (None,))
    setup.pin(os.getpid(), (frozenset({0}), None))
    assert os.sched_getaffinity(0) == before


def test_processors_that_the_system_refuses() -> None:
    with pytest.raises(errors.HypervisorError, match="cannot be used"):
        pinning.pin(os.getpid(), frozenset({1023}))


def test_only_what_needs_it_starts_paused() -> None:
    assert not setup.is_needed(params.KvmParams(), [])
    assert not setup.is_needed(params.KvmParams(cpu_mask="0-1"), [])
    assert setup.is_needed(params.KvmParams(cpu_mask="0:1"), [])
    assert setup.is_needed(params.KvmParams(spice_bind="::1", spice_password_file="/s"), [])
