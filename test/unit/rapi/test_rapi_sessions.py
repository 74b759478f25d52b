"""Sessions: how long they last and what ends them."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.rapi import sessions as module
from ganeti.rapi import tokens
from ganeti.rapi.authenticate import Authenticator
from ganeti.rapi.backing import KnownToken, Listed, Password, Provided
from ganeti.rapi.identity import Identity
from ganeti.rapi.sessions import IDLE, MOST, MOST_OF_USER, RESTART, TOTAL, Sessions, check_csrf

HERE = "192.0.2.1"
ANNA, ROOT = Identity("anna", frozenset({"read"})), Identity("root", frozenset({"write"}))


#: What backs the sessions of these tests, and whom it stands for.
BACKED = {Password("anna", "1"): ANNA, Password("root", "2"): ROOT}
AS_ANNA, AS_ROOT = BACKED


@pytest.fixture
def sessions(clock):
    return Sessions(BACKED.get, clock)


def test_a_session_ends_when_idle_and_after_its_total_time(sessions, clock):
    made, secret = sessions.open(AS_ANNA, HERE)
    clock.at += IDLE - 1
    assert sessions.find(secret) == (made, ANNA)
    clock.at += IDLE - 1
    assert sessions.is_alive(made)
    clock.at += 2
    assert not sessions.is_alive(made)
    assert sessions.find(secret) is None
    made, secret = sessions.open(AS_ANNA, HERE)
    end = clock.at + TOTAL
    while clock.at + IDLE / 2 < end:
        assert sessions.find(secret) is not None
        clock.at += IDLE / 2
    clock.at = end
    assert sessions.find(secret) is None
    assert sessions.all() == []


def test_what_ends_a_session_early_is_told_and_hangs_up(clock):
    told, held = [], {AS_ANNA: ANNA}
    sessions = Sessions(held.get, clock)
    sessions.on_end = lambda: told.append(1)
    _made, secret = sessions.open(AS_ANNA, HERE)
    held[AS_ANNA] = None
    sessions.check_all()
    held[AS_ANNA] = ANNA
    assert sessions.find(secret) is None
    assert told == [1]
    with pytest.raises(errors.AuthenticationError):
        sessions.open(AS_ROOT, HERE)


def test_there_are_no_more_than_so_many(sessions, clock, monkeypatch):
    secrets = []
    for _ in range(MOST_OF_USER + 1):
        clock.at += 1
        secrets.append(sessions.open(AS_ANNA, HERE)[1])
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1]) is not None
    monkeypatch.setattr(module, "MOST", 5)
    sessions.open(AS_ROOT, HERE)
    assert len(sessions.all()) == 5
    assert MOST > MOST_OF_USER


def test_users_see_and_end_their_own_only(sessions):
    mine, _secret = sessions.open(AS_ANNA, HERE, "Browser\x1b[2J" + "x" * 500)
    other, _secret = sessions.open(AS_ROOT, HERE)
    assert mine.agent.startswith("Browser[2Jxx")
    assert len(mine.agent) < 200
    assert sessions.visible(ANNA) == [mine]
    assert len(sessions.visible(ROOT)) == 2
    assert not sessions.end(other.id, ANNA)
    assert sessions.end(mine.id, ROOT)
    assert not sessions.end(mine.id, ANNA)
    assert mine.csrf not in repr(mine)


def test_only_the_csrf_of_the_session_counts(sessions):
    mine, _secret = sessions.open(AS_ANNA, HERE)
    other, _secret = sessions.open(AS_ANNA, HERE)
    check_csrf(mine, mine.csrf)
    for given in (None, "", other.csrf, "\udc80", mine.csrf + "x"):
        with pytest.raises(errors.AccessError, match="X-Ganeti-CSRF"):
            check_csrf(mine, given)


def test_a_log_in_holds_while_the_line_of_the_user_is_the_same(tmp_path, clock):
    (tmp_path / "users").write_text("anna secret read\nbert secret read\n")
    door = Authenticator(tmp_path, clock=clock)
    backing = door.log_in("anna", b"secret", HERE)
    assert door.identify(backing) == ANNA
    (tmp_path / "users").write_text("anna secret read\n")
    door.reload()
    assert door.identify(backing) == ANNA
    for line in ("anna other read", "anna secret write", ""):
        (tmp_path / "users").write_text(line + "\n")
        door.reload()
        assert door.identify(backing) is None
    with pytest.raises(errors.AuthenticationError):
        door.log_in("anna", b"", HERE)


def test_sessions_go_on_over_a_restart(sessions, clock, tmp_path):
    path = tmp_path / "sessions"
    mine, secret = sessions.open(AS_ANNA, HERE, "Browser")
    _other, theirs = sessions.open(AS_ROOT, HERE)
    clock.at += 60
    sessions.find(secret)
    sessions.keep(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in path.read_text()
    clock.at += RESTART
    later = Sessions({AS_ANNA: ANNA}.get, clock)
    later.restore(path)
    assert later.all() == [mine], "what nothing backs any more does not go on"
    session, identity = later.find(secret)
    assert (session.csrf, identity) == (mine.csrf, ANNA), "open pages go on, too"
    assert later.find(theirs) is None
    assert not path.exists()
    later.end(mine.id, ANNA)
    later.restore(path)
    assert later.all() == [], "a session that was ended never comes back"


@pytest.mark.parametrize("away", [RESTART + 1, -1])
def test_sessions_end_when_the_daemon_was_away_for_long(sessions, clock, tmp_path, away):
    path = tmp_path / "sessions"
    sessions.open(AS_ANNA, HERE)
    sessions.keep(path)
    clock.at += away
    later = Sessions(BACKED.get, clock)
    later.restore(path)
    assert later.all() == []
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stopped": 1, "sessions": [{}]}', "\xff"])
def test_a_damaged_file_of_sessions_is_told_and_harms_nobody(sessions, tmp_path, caplog, text):
    path = tmp_path / "sessions"
    path.write_bytes(text.encode("latin-1"))
    sessions.restore(path)
    assert sessions.all() == []
    assert f"{path}: users have to log in again: " in caplog.text
    assert not path.exists()
    sessions.restore(path)


def test_whatever_backs_a_session_goes_on(clock, tmp_path):
    path = tmp_path / "sessions"
    every = [
        AS_ANNA,
        KnownToken("0a1b2c3d", "ff"),
        Provided("corp", "https://idp.example.com", "ganeti", "anna", ("ops", "all")),
        Listed("ldap://localhost", None, "ou=people", "anna", ()),
    ]
    sessions = Sessions(dict.fromkeys(every, ANNA).get, clock)
    for backing in every:
        clock.at += 1
        sessions.open(backing, HERE)
    sessions.keep(path)
    later = Sessions(dict.fromkeys(every, ANNA).get, clock)
    later.restore(path)
    assert [session.backing for session in later.all()] == every


def test_no_change_of_a_line_or_token_goes_unnoticed(tmp_path, clock):
    (tmp_path / "users").write_text("anna secret read\n")
    door = Authenticator(tmp_path, clock=clock)
    text = tokens.add(tmp_path / "tokens", "page", ["read"], now=clock.at)
    door.reload()
    backings = [door.log_in("anna", b"secret", HERE), door.log_in_by_token(text, HERE)]
    later = Authenticator(tmp_path, clock=clock)
    assert [later.identify(backing).name for backing in backings] == ["anna", "token:page"]
    for name in ("users", "tokens"):
        path = tmp_path / name
        path.write_text(path.read_text().replace("read", "write"))
    later = Authenticator(tmp_path, clock=clock)
    assert [later.identify(backing) for backing in backings] == [None, None]
