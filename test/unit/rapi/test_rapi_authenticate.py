"""Who is let in: files that change, wrong passwords, tokens."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from waiting import wait_for

from ganeti import errors
from ganeti.rapi import passwords, tokens
from ganeti.rapi.authenticate import Authenticator
from ganeti.rapi.throttle import CHEAP, FREE, FREE_OF_ADDRESS, LONGEST, Throttle

HERE = "192.0.2.1"


@pytest.fixture
def directory(tmp_path):
    where = tmp_path / "rapi"
    where.mkdir()
    return where


def test_basic_bearer_and_a_token_as_password(directory, basic, clock):
    (directory / "users").write_text("anna secret read\n")
    token = tokens.add(directory / "tokens", "ci", ["write"], now=clock.now())
    ask = Authenticator(directory, clock=clock)
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    assert ask(f"Bearer {token}", HERE).name == "token:ci"
    assert ask(basic("whoever", token), HERE).name == "token:ci"
    assert ask(None, HERE).anonymous
    for header in ("", "Basic", "Basic !!", "Basic bm9jb2xvbg==", "Digest x", "Bearer", "\x00"):
        with pytest.raises(errors.AuthenticationError):
            ask(header, "192.0.2.9")
    with pytest.raises(errors.AuthenticationError, match="needed"):
        Authenticator(directory, anonymous=False)(None, HERE)


def test_guessing_is_slowed_down_per_address_without_waiting(directory, basic, clock, caplog):
    (directory / "users").write_text("anna secret read\n")
    ask = Authenticator(directory, clock=clock)
    for _ in range(FREE + 1):
        with pytest.raises(errors.AuthenticationError) as info:
            ask(basic("anna", "hunter2"), HERE)
        assert not isinstance(info.value, errors.ThrottledError)
    began = time.monotonic()
    for password in ("hunter2", "secret"):
        with pytest.raises(errors.ThrottledError) as throttled:
            ask(basic("anna", password), HERE)
        assert throttled.value.retry_after >= 1
    assert time.monotonic() - began < 0.5
    assert ask(basic("anna", "secret"), "192.0.2.2").name == "anna"
    clock.at += 1.1
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    assert "hunter2" not in caplog.text
    assert "secret" not in caplog.text


def test_the_delay_grows_and_is_forgotten(clock):
    throttle = Throttle(clock)
    for _ in range(FREE):
        throttle.note_failure(HERE)
    assert throttle.wait(HERE) == 0
    waits = []
    for _ in range(9):
        throttle.note_failure(HERE)
        waits.append(throttle.wait(HERE))
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST
    clock.at += 10_000
    throttle.note_failure(HERE)
    assert throttle.wait(HERE) == 0
    assert throttle.may_prove(HERE, "")
    for last in range(FREE + 1):
        throttle.note_failure(f"2001:db8::{last}")
    assert throttle.wait("2001:db8::ffff") > 0
    assert throttle.wait("2001:db8:0:1::1") == 0


def test_the_users_file_can_refuse_those_without_a_name(directory, basic, caplog):
    path = directory / "users"
    path.write_text("anna secret read\n{anonymous} refused\n")
    ask = Authenticator(directory)
    with pytest.raises(errors.AuthenticationError, match="is needed"):
        ask(None, HERE)
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    with pytest.raises(errors.AuthenticationError):
        ask(basic("{anonymous}", "refused"), HERE)
    for text in ("{anonymous}\n", "{anonymous} refused read\n", "{anonymous} no\n"):
        path.write_text(text)
        ask.reload()
        assert "line 1: {anonymous} is followed by refused or allowed" in caplog.text
        with pytest.raises(errors.AuthenticationError):
            ask(None, HERE)
        # At the start there is nothing else to go by: nobody is let in by a slip of the pen.
        with pytest.raises(errors.AuthenticationError):
            Authenticator(directory)(None, HERE)
    path.write_text("{anonymous} refused\n{anonymous} allowed\n")
    ask.reload()
    assert ask(None, HERE).anonymous


def guess(ask, header: str, times: int, address: str = HERE) -> list[type[Exception]]:
    """What so many requests with a wrong password end with."""
    seen: list[type[Exception]] = []
    for _ in range(times):
        with pytest.raises(errors.AuthenticationError) as info:
            ask(header, address)
        seen.append(type(info.value))
    return seen


def test_who_guesses_does_not_lock_out_others_behind_the_same_address(directory, basic, clock):
    (directory / "users").write_text("anna secret read\nbert pw read\ncarl pw read\n")
    token = tokens.add(directory / "tokens", "ci", ["write"], now=clock.now())
    ask = Authenticator(directory, clock=clock)
    ask._throttle._key = b"these names are told apart"
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    guess(ask, basic("anna", "wrong"), 20)
    # A token, another user, and the password that was right before.
    assert ask(f"Bearer {token}", HERE).name == "token:ci"
    assert ask(basic("whoever", token), HERE).name == "token:ci"
    assert ask(basic("bert", "pw"), HERE).name == "bert"
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    # Wrong tokens lock out nobody who has a right one.
    guess(ask, "Bearer " + token[:-1] + ("A" if token[-1] != "A" else "B"), 20)
    assert ask(f"Bearer {token}", HERE).name == "token:ci"


def test_guesses_are_bounded_for_a_name_and_for_all_names(directory, basic, clock):
    (directory / "users").write_text("anna secret read\nbert pw read\ncarl pw read\n")
    ask = Authenticator(directory, clock=clock)
    ask._throttle._key = b"these names are told apart"
    assert ask(basic("anna", "secret"), HERE).name == "anna"
    assert ask(basic("carl", "pw"), HERE).name == "carl"
    # Many names do not help: from a higher number on the address has to wait.
    looked = [guess(ask, basic(f"name{number}", "wrong"), 1)[0] for number in range(200)]
    assert looked.count(errors.AuthenticationError) == FREE_OF_ADDRESS + 1
    assert guess(ask, basic("bert", "pw"), 1) == [errors.ThrottledError]
    assert ask(basic("bert", "pw"), "192.0.2.2").name == "bert"
    # A password that was right before cannot be found out by comparing it for ever.
    guess(ask, basic("anna", "wrong"), CHEAP)
    assert guess(ask, basic("anna", "secret"), 1) == [errors.ThrottledError]
    assert ask(basic("carl", "pw"), HERE).name == "carl"
    clock.at += 61
    assert ask(basic("anna", "secret"), HERE).name == "anna"


def test_many_requests_of_a_good_client_at_once_are_all_let_in(directory, basic):
    (directory / "users").write_text(f"anna {passwords.store('secret', cost=6)} read\n")
    ask = Authenticator(directory)
    names: list[str] = []

    def log_in() -> None:
        names.append(ask(basic("anna", "secret"), HERE).name)

    threads = [threading.Thread(target=log_in) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert names == ["anna"] * 40


def test_unknown_users_take_as_long_as_wrong_passwords(directory, basic):
    stored = passwords.store("secret", cost=9)
    (directory / "users").write_text(f"anna {stored} read\nbert pw read\n")

    def seconds(name: str) -> float:
        best = 10.0
        for number in range(4):
            ask = Authenticator(directory)
            begin = time.process_time()  # what else the machine does makes no difference
            with pytest.raises(errors.AuthenticationError):
                ask(basic(name, f"wrong{number}"), HERE)
            best = min(best, time.process_time() - begin)
        return best

    seconds("warm")
    known, plain, unknown = seconds("anna"), seconds("bert"), seconds("ghost")
    assert 0.5 < plain / known < 2
    assert 0.5 < unknown / known < 2


def test_changed_files_are_followed_and_broken_ones_are_not_taken(directory, basic, caplog):
    caplog.set_level(logging.INFO)
    path = directory / "users"
    ask = Authenticator(directory)
    ask.start()
    try:
        path.write_text("anna one read\n")
        wait_for(lambda: "1 users" in caplog.text, "1 users")
        assert ask(basic("anna", "one"), HERE).permissions == {"read"}
        caplog.clear()
        path.write_text("anna two write\nbert {what}x read\n")
        wait_for(lambda: "is refused" in caplog.text, "is refused")
        assert "line 2: user 'bert'" in caplog.text
        assert ask(basic("anna", "one"), HERE).permissions == {"read"}
        caplog.clear()
        path.write_bytes(b"anna \xff\xfe\n")
        wait_for(lambda: "cannot be read" in caplog.text, "cannot be read")
        new = directory / "new"
        new.write_text("anna three write\n")
        new.rename(path)
        wait_for(lambda: "1 users" in caplog.text, "1 users")
        assert ask(basic("anna", "three"), HERE).permissions == {"write"}
        caplog.clear()
        path.unlink()
        wait_for(lambda: "0 users" in caplog.text, "0 users")
        with pytest.raises(errors.AuthenticationError):
            ask(basic("anna", "three"), HERE)
        token = tokens.add(directory / "tokens", "ci", ["read"], now=time.time())
        wait_for(lambda: "1 tokens" in caplog.text, "1 tokens")
        assert ask(f"Bearer {token}", HERE).name == "token:ci"
        tokens.revoke(directory / "tokens", ["ci"])
        wait_for(lambda: "0 tokens" in caplog.text, "0 tokens")
        with pytest.raises(errors.AuthenticationError):
            ask(f"Bearer {token}", HERE)
    finally:
        ask.stop()
