"""Files whose content becomes data for cloud-init."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import password_hash
from ganeti.cli.instance import cloud_init


@pytest.mark.parametrize("content", ["secret\n", "secret\r\nsecond line\n", "secret"])
def test_only_the_first_line_is_the_password(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pw"
    path.write_bytes(content.encode())
    found = cloud_init.hash_password(str(path))
    assert found is not None
    assert found == password_hash.make("secret", found.split("$")[2])


@pytest.mark.parametrize("content", ["", "\n", "\nsecret\n"])
def test_file_without_a_password_takes_none_away(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pw"
    path.write_text(content)
    with pytest.raises(errors.OpPrereqError, match=r"first line .* is empty"):
        cloud_init.hash_password(str(path))
    assert cloud_init.hash_password("") == ""
    assert cloud_init.hash_password(None) is None


def test_private_key_is_refused_and_the_public_one_named(tmp_path: Path) -> None:
    path = tmp_path / "id"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    with pytest.raises(errors.OpPrereqError, match=r"private key; give the public one \(.*id\.pub"):
        cloud_init.read_keys([str(path)])


def test_keys_of_several_files_without_comments(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("# mine\nssh-ed25519 AAAA a\n\nssh-rsa BBBB b\n")
    two.write_text("ssh-rsa CCCC c\n")
    assert cloud_init.read_keys([str(one), str(two)]) == [
        "ssh-ed25519 AAAA a",
        "ssh-rsa BBBB b",
        "ssh-rsa CCCC c",
    ]
