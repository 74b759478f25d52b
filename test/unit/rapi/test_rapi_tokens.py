"""Tokens: only digests on disk, an end, a scope, revocation."""

import stat

import pytest

from ganeti import errors
from ganeti.model.limits import Limits
from ganeti.rapi import tokens


def test_a_token_is_known_until_it_expires_or_is_revoked(tmp_path):
    path = tmp_path / "tokens"
    text = tokens.add(path, "ci", ["@operator"], now=1000.0, expires=2000.0, group="g1", tag="t")
    assert tokens.looks_like_token(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text.split("_", 2)[2] not in path.read_text()
    known = tokens.read(path)
    identity = known.check(text, 1999.0)
    assert identity is not None
    assert identity.name == "token:ci"
    assert identity.limits == Limits(name="token:ci", group="g1", tag="t")
    assert identity.has_any({"instance.startup"})
    assert not identity.has_any({"write"})
    assert known.check(text, 2000.0) is None
    assert known.check(text[:-1] + ("A" if text[-1] != "A" else "B"), 1000.0) is None
    assert known.check("gnt_00000000_" + "x" * 43, 1000.0) is None
    with pytest.raises(errors.ParseError, match="already"):
        tokens.add(path, "ci", ["read"], now=1500.0)
    tokens.add(path, "ci", ["read"], now=3000.0)
    assert len(tokens.read(path)) == 1
    assert tokens.revoke(path, ["ci", "cd"]) == ["cd"]
    assert len(tokens.read(path)) == 0
    assert text not in repr(list(known))


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "tokens"
    path.write_text('{"tokens": [{"id": 7}]}')
    with pytest.raises(errors.ParseError, match="id"):
        tokens.read(path)
    path.write_text("{")
    with pytest.raises(errors.ParseError):
        tokens.read(path)
