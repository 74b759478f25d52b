"""Sessions: how long they last and what ends them."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.rapi import sessions as module
from ganeti.rapi.authenticate import Authenticator
from ganeti.rapi.identity import Identity
from ganeti.rapi.sessions import IDLE, MOST, MOST_OF_USER, TOTAL, Sessions, check_csrf

HERE = "192.0.2.1"
ANNA, ROOT = Identity("anna", frozenset({"read"})), Identity("root", frozenset({"write"}))


def back(identity):
    return lambda: identity


def test_a_session_ends_when_idle_and_after_its_total_time(clock):
    sessions = Sessions(clock)
    made, secret = sessions.open(back(ANNA), HERE)
    clock.at += IDLE - 1
    assert sessions.find(secret) == (made, ANNA)
    clock.at += IDLE - 1
    assert sessions.is_alive(made)
    clock.at += 2
    assert not sessions.is_alive(made)
    assert sessions.find(secret) is None
    made, secret = sessions.open(back(ANNA), HERE)
    end = clock.at + TOTAL
    while clock.at + IDLE / 2 < end:
        assert sessions.find(secret) is not None
        clock.at += IDLE / 2
    clock.at = end
    assert sessions.find(secret) is None
    assert sessions.all() == []


def test_what_ends_a_session_early_is_told_and_hangs_up(clock):
    sessions, told, held = Sessions(clock), [], [ANNA]
    sessions.on_end = lambda: told.append(1)
    _made, secret = sessions.open(lambda: held[0], HERE)
    held[0] = None
    sessions.check_all()
    held[0] = ANNA
    assert sessions.find(secret) is None
    assert told == [1]
    with pytest.raises(errors.AuthenticationError):
        sessions.open(back(None), HERE)


def test_there_are_no_more_than_so_many(clock, monkeypatch):
    sessions = Sessions(clock)
    secrets = []
    for _ in range(MOST_OF_USER + 1):
        clock.at += 1
        secrets.append(sessions.open(back(ANNA), HERE)[1])
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1]) is not None
    monkeypatch.setattr(module, "MOST", 5)
    sessions.open(back(ROOT), HERE)
    assert len(sessions.all()) == 5
    assert MOST > MOST_OF_USER


def test_users_see_and_end_their_own_only(clock):
    sessions = Sessions(clock)
    mine, _secret = sessions.open(back(ANNA), HERE, "Browser\x1b[2J" + "x" * 500)
    other, _secret = sessions.open(back(ROOT), HERE)
    assert mine.agent.startswith("Browser[2Jxx")
    assert len(mine.agent) < 200
    assert sessions.visible(ANNA) == [mine]
    assert len(sessions.visible(ROOT)) == 2
    assert not sessions.end(other.id, ANNA)
    assert sessions.end(mine.id, ROOT)
    assert not sessions.end(mine.id, ANNA)
    assert mine.csrf not in repr(mine)


def test_only_the_csrf_of_the_session_counts(clock):
    sessions = Sessions(clock)
    mine, _secret = sessions.open(back(ANNA), HERE)
    other, _secret = sessions.open(back(ANNA), HERE)
    check_csrf(mine, mine.csrf)
    for given in (None, "", other.csrf, "\udc80", mine.csrf + "x"):
        with pytest.raises(errors.AccessError, match="X-Ganeti-CSRF"):
            check_csrf(mine, given)


def test_a_log_in_holds_while_the_line_of_the_user_is_the_same(tmp_path, clock):
    (tmp_path / "users").write_text("anna secret read\nbert secret read\n")
    door = Authenticator(tmp_path, clock=clock)
    backing = door.log_in("anna", b"secret", HERE)
    assert backing() == ANNA
    (tmp_path / "users").write_text("anna secret read\n")
    door.reload()
    assert backing() == ANNA
    for line in ("anna other read", "anna secret write", ""):
        (tmp_path / "users").write_text(line + "\n")
        door.reload()
        assert backing() is None
    with pytest.raises(errors.AuthenticationError):
        door.log_in("anna", b"", HERE)
