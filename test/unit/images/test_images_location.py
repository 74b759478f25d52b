"""Which files of a node, and which URLs, can be images."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.images import location


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    directory = tmp_path / "os-images"
    directory.mkdir()
    (directory / "good.raw").write_bytes(b"good")
    (directory / "inner").symlink_to("good.raw")
    (directory / "outer").symlink_to(tmp_path / "secret")
    os.mkfifo(directory / "pipe")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "os-images-2").write_bytes(b"beside")
    return directory


@pytest.mark.parametrize("name", ["good.raw", "inner"])
def test_file_of_the_directory_is_read(allowed: Path, name: str) -> None:
    fd = location.open_file(allowed / name, allowed)
    assert os.read(fd, 9) == b"good"
    os.close(fd)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("../secret", "is not below"),
        ("outer", "is not below"),
        ("../os-images-2", "is not below"),
        # nor whether it exists
        ("../missing", "is not below"),
        ("missing", "No such file"),
        ("pipe", "not a regular file"),
        (".", "not a regular file"),
    ],
)
def test_others_are_refused(allowed: Path, name: str, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        location.open_file(allowed / name, allowed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/srv/../etc/passwd", "without '..'"),
        ("/a\0b", "without '..'"),
        ("ftp://example.com/x", "https or http"),
        ("file:///etc/passwd", "https or http"),
        ("https://user:word@example.com/x", "password"),
    ],
)
def test_locations_that_no_node_reads(text: str, why: str) -> None:
    assert location.is_location(text)
    with pytest.raises(errors.OpPrereqError, match=why):
        location.check(text)


def test_names_are_no_locations() -> None:
    assert not location.is_location("debian-13")
    location.check("/srv/ganeti/os-images/x")
    location.check("https://example.com/x")
