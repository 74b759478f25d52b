"""The users file and stored passwords."""

import hashlib

import pytest

from ganeti import errors
from ganeti.rapi import passwords, permissions, users

HA1 = hashlib.md5(b"hanna:Ganeti Remote API:geheim").hexdigest()
TEXT = f"""\
# comment
   \n
plain secret write
clear {{ClearText}}s3cret read,write
hanna {{HA1}}{HA1} read
nobody
op {passwords.store("pw", cost=4)} @readonly,+instance.startup,-instance.console
none pw
"""


def test_the_forms_of_passwords_and_permissions():
    found, problems = users.parse(TEXT)
    assert sorted(found) == ["clear", "hanna", "none", "op", "plain"]
    assert [(p.line, p.broken) for p in problems] == [(7, False)]
    assert found["clear"].permissions == {"read", "write"}
    assert found["none"].permissions == frozenset()
    assert found["op"].permissions == {"read", "instance.startup", "-instance.console"}
    known = users.Users(found.values())
    for name, password in (
        ("plain", "secret"),
        ("clear", "s3cret"),
        ("hanna", "geheim"),
        ("op", "pw"),
        ("none", "pw"),
    ):
        identity = known.check(name, password.encode())
        assert identity is not None
        assert identity.name == name
        assert known.recall(name, password.encode()) == identity
        assert known.check(name, password.encode() + b"x") is None
        assert known.recall(name, b"other") is None
    assert known.check("hanna", HA1.encode()) is None
    assert known.check("ghost", b"secret") is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a {NTLM}x read", "unknown scheme"),
        ("a {HA1}zz read", "32 hexadecimal digits"),
        ("a {BCRYPT}$2b$nonsense read", "not a bcrypt hash"),
        ("a pw raed", "'raed' is not a permission.*read"),
        ("a pw ++write", "not a permission"),
        ("a pw -write", "not a permission"),
    ],
)
def test_a_broken_line_is_told_with_its_number_but_never_its_password(line, text):
    found, problems = users.parse(f"ok pw read\n{line}\n")
    assert list(found) == ["ok"]
    (problem,) = problems
    assert problem.broken
    assert problem.line == 2
    assert __import__("re").search(text, str(problem))
    assert "zz" not in str(problem)


def test_a_denied_permission_is_denied_although_write_is_held():
    held = permissions.parse(["write", "-instance.remove", "-node.*"])
    identity = users.Identity("u", held)
    assert identity.has_any({"write", "instance.startup"})
    assert not identity.has_any({"write", "instance.remove"})
    assert not identity.has_any({"write", "node.modify"})
    assert users.Identity("f", permissions.parse(["instance.*"])).has_any({"write", "instance.add"})


def test_permissions_that_no_route_has_are_found():
    held = permissions.parse(["write", "instance.startpu", "-instance.*", "hosts.*"])
    assert permissions.find_unknown(held, {"instance.startup"}) == ["hosts.*", "instance.startpu"]


def test_new_passwords_are_bcrypt_and_have_limits():
    stored = passwords.store("pässword", cost=4)
    passwords.check_form(stored)
    assert passwords.matches(stored, "u", "pässword".encode())
    for bad in ("", "x" * 73, "a\0b", "a\nb"):
        with pytest.raises(errors.ParseError):
            passwords.store(bad, cost=4)
    assert not passwords.matches(stored, "u", b"a\0b")
    assert not passwords.matches(stored, "u", b"x" * 100)


def test_editing_keeps_other_lines_and_the_mode(tmp_path):
    path = tmp_path / "rapi" / "users"
    assert not users.edit(path, "anna", "anna pw read")
    assert path.stat().st_mode & 0o777 == 0o640
    path.write_text("# anna is back\n\nanna pw read\nbert pw\n")
    path.chmod(0o600)
    assert users.edit(path, "anna", "anna new write")
    assert path.read_text() == "# anna is back\n\nbert pw\nanna new write\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert users.edit(path, "anna", None)
    assert not users.edit(path, "anna", None)
    for bad in ("", "a b", "a:b", "#a", "{a"):
        with pytest.raises(errors.ParseError):
            users.check_name(bad)
