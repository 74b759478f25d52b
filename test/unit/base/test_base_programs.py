"""Which programs a daemon runs for somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from needs import needs_root

from ganeti.base import programs

NEEDS_ROOT = needs_root("to give files to another user")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "helper"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_of_the_system_or_of_the_daemon_may_be_run(good: Path) -> None:
    assert programs.flaw("/bin/sh") is None
    assert programs.flaw(str(good)) is None
    link = good.parent / "link"
    link.symlink_to("../bin/helper")
    assert programs.flaw(str(link)) is None


def test_what_is_not_a_program(good: Path, tmp_path: Path) -> None:
    assert programs.flaw("bin/helper") == "bin/helper is not a full path"
    assert programs.flaw(str(tmp_path)) == f"{tmp_path} is not a regular file"
    assert programs.flaw(f"{good}/x") == f"{good}/x does not exist"
    assert programs.flaw(f"{good}x") == f"{good}x does not exist"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "symbolic links" in str(programs.flaw(str(loop)))
    good.chmod(0o644)
    assert programs.flaw(str(good)) == f"{good} cannot be executed"


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_what_others_can_write(good: Path, mode: int) -> None:
    for place in (good, good.parent):
        place.chmod(mode)
        assert programs.flaw(str(good)) == (
            f"{good} is not safe: {place} can be written by others than its owner (mode {mode:o})"
        )
        place.chmod(0o755)


def test_a_link_through_a_place_that_others_can_write(good: Path, tmp_path: Path) -> None:
    """Each link on the way counts, not only where it ends."""
    open_place, last = tmp_path / "open", tmp_path / "last"
    open_place.mkdir()
    open_place.chmod(0o777)
    (open_place / "link").symlink_to(good)
    last.symlink_to("open/link")
    for path in (open_place / "link", last):
        assert f"{open_place} can be written by others" in str(programs.flaw(str(path)))
    open_place.chmod(0o1777)
    assert programs.flaw(str(last)) is None, "with the sticky bit the link is safe"


@pytest.mark.root
@NEEDS_ROOT
def test_what_belongs_to_another_user(good: Path) -> None:
    for place in (good, good.parent):
        os.chown(place, 4321, -1)
        assert f"{place} belongs to the user with the uid 4321" in str(programs.flaw(str(good)))
        os.chown(place, 0, -1)
