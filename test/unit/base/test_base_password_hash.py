"""Hashes of passwords; the expected ones come from ``openssl passwd -6``."""

from __future__ import annotations

import pytest

from ganeti.base import password_hash


@pytest.mark.parametrize(
    ("password", "salt", "digest"),
    [
        (
            "Hello world!",
            "saltstring",
            "svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
        ),
        (
            "x" * 130,
            "0123456789abcdef",
            "aMqNf.eV1.F/kHG/PEL81Pb27I7rzRTDeKdTlYCjj3airFUvYUi1V5OMp2naCZ9mb51oc5cCLILVi/.dIJETu1",
        ),
        (
            "pässwort",
            "ab",
            "s.qq6PT2EkCHiO5CIhQw9kEq4u/l/IUUIwJZR3uec9TlnRv2fyqdZxve6EQtX.bB3Jm//iOS8ElKwjW1pYusm0",
        ),
    ],
)
def test_hash_is_the_one_of_crypt(password: str, salt: str, digest: str) -> None:
    assert password_hash.make(password, salt) == f"$6${salt}${digest}"


def test_each_hash_has_a_salt_of_its_own() -> None:
    one, two = (password_hash.make("x") for _ in range(2))
    assert one != two
    assert one == password_hash.make("x", one.split("$")[2])
