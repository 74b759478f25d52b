"""Users that run QEMU: named ones, and those of the cluster's pool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kvm_cases import command

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.kvm import uids
from ganeti.hypervisor.kvm.params import load
from ganeti.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "root")
    made.data.mkdir(parents=True)
    return made


def user(paths: Paths, **chosen: Any) -> str:
    with uids.user_of(load(chosen), paths) as found:
        return found


def test_root_and_a_named_user(paths: Paths) -> None:
    assert user(paths) == ""
    assert user(paths, security_model="user", security_domain="kvm1") == "kvm1"
    words = command({"guest": {"user": "kvm1"}})
    assert words[words.index("-runas") + 1] == "kvm1"


def test_each_start_gets_a_user_of_its_own(paths: Paths) -> None:
    paths.ssconf("uid_pool").write_text("987000-987001\n987005\n")
    chosen = load({"security_model": "pool"})
    with uids.user_of(chosen, paths) as one, uids.user_of(chosen, paths) as two:
        assert (one, two) == ("987000:65534", "987001:65534")
        with uids.user_of(chosen, paths) as three:
            assert three == "987005:65534"
            with (
                pytest.raises(errors.HypervisorError, match="all users of the cluster's pool"),
                uids.user_of(chosen, paths),
            ):
                pass
    assert user(paths, security_model="pool") == "987000:65534"


def test_a_user_with_processes_is_left_out(paths: Paths) -> None:
    paths.ssconf("uid_pool").write_text(f"{os.geteuid()}\n987000\n")
    assert user(paths, security_model="pool") == "987000:65534"


def test_a_user_that_another_daemon_holds_is_left_out(paths: Paths) -> None:
    paths.ssconf("uid_pool").write_text("987000-987001\n")
    directory = paths.run / "uid-pool"
    directory.mkdir(parents=True)
    with files.FileLock(directory / "987000").hold():
        assert user(paths, security_model="pool") == "987001:65534"


def test_no_pool_and_a_damaged_one(paths: Paths) -> None:
    with pytest.raises(errors.HypervisorError, match="gnt-cluster modify --uid-pool"):
        user(paths, security_model="pool")
    paths.ssconf("uid_pool").write_text("10-x\n")
    with pytest.raises(errors.HypervisorError, match="'10-x', which is not a range"):
        user(paths, security_model="pool")


def test_numbers_of_users() -> None:
    assert uids.uid_of("987000:65534") == 987000
    assert uids.uid_of("root") == 0
    with pytest.raises(errors.HypervisorError, match="not a user of this node"):
        uids.uid_of("no-such-user")
