"""Parts of consoles that need no daemon: tickets, and what a VNC client may say."""

from __future__ import annotations

import pytest

from ganeti.rapi.consoles import IDLE, IDLE_TIME, LIMIT, TOTAL_TIME, Viewer, find_end
from ganeti.rapi.failures import Refused
from ganeti.rapi.rfb import ClientFilter, RfbError
from ganeti.rapi.tickets import LIFE, MOST_OF_USER, Ticket, Tickets
from ganeti.rapi.websocket import Upgrade

HELLO = b"RFB 003.008\n\x01"
KEY = b"\x04\x01\x00\x00\x00\x00\x00a"
POINTER = b"\x05\x01\x00\x10\x00\x10"
CUT = b"\x06\x00\x00\x00\x00\x00\x00\x03abc"
UPDATE = b"\x03\x01\x00\x00\x00\x00\x04\x00\x03\x00"
ENCODINGS = b"\x02\x00\x00\x02\x00\x00\x00\x00\xff\xff\xff\x21"
QEMU_KEY = b"\xff\x00\x00\x01\x00\x00\x00a\x00\x00\x00\x1e"


def ticket(**more: str) -> Ticket:
    facts = {"instance": "web1", "kind": "serial", "mode": "view", "user": "anna", "address": "x"}
    return Ticket(**{**facts, **more})


def test_a_ticket_counts_once_in_time_and_for_its_session(clock):
    tickets = Tickets(clock)
    secret = tickets.add(ticket())
    assert tickets.take(secret, "") == ticket()
    assert tickets.take(secret, "") is None
    late, foreign = tickets.add(ticket()), tickets.add(ticket(session="s1"))
    assert tickets.take(foreign, "s2") is None
    assert tickets.take(foreign, "s1") is None
    clock.at += LIFE
    assert tickets.take(late, "") is None
    assert tickets.take("guess\udc80", "") is None


def test_tickets_that_nobody_uses_are_bounded_and_forgotten(clock):
    tickets = Tickets(clock)
    for _ in range(MOST_OF_USER):
        tickets.add(ticket())
    with pytest.raises(Refused) as refused:
        tickets.add(ticket())
    assert refused.value.status == 429
    tickets.add(ticket(user="bert"))
    clock.at += LIFE
    tickets.add(ticket())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_one_who_looks_types_nothing_however_it_is_cut(size):
    said = HELLO + b"\x00" + ENCODINGS + KEY + UPDATE + POINTER + CUT + QEMU_KEY + UPDATE
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    looker, typist = ClientFilter(view=True), ClientFilter(view=False)
    # Nobody may ask to be alone.
    shared = HELLO + b"\x01"
    assert b"".join(map(looker.feed, pieces)) == shared + ENCODINGS + UPDATE + UPDATE
    assert b"".join(map(typist.feed, pieces)) == shared + said[len(shared) :]


def test_only_what_is_typed_counts_as_use():
    typist = ClientFilter(view=False)
    typist.feed(HELLO + b"\x01" + UPDATE)
    assert not typist.had_input
    typist.feed(KEY)
    assert typist.had_input
    typist.feed(UPDATE)
    assert not typist.had_input


@pytest.mark.parametrize(
    ("mode", "began", "typed", "code"),
    [
        ("control", 0, IDLE_TIME + 1, None),
        ("control", 0, 0, IDLE),
        ("view", 0, 0, None),
        ("control", -TOTAL_TIME, IDLE_TIME, LIMIT),
        ("view", -TOTAL_TIME, 0, LIMIT),
    ],
)
def test_consoles_end_when_nothing_is_typed_or_after_hours(mode, began, typed, code):
    viewer = Viewer(None, ticket(mode=mode), None, began=began, last_input=typed)
    found = find_end(viewer, IDLE_TIME + 1)
    assert (found and found[0]) == code


@pytest.mark.parametrize(
    "said",
    [
        b"RFB 003.003\n",
        b"RFB 003.008\n\x13",
        HELLO + b"\x01\x63",
        HELLO + b"\x01\x06\0\0\0\x7f\0\0\0",
    ],
)
def test_what_cannot_be_followed_is_refused_only_to_those_who_look(said):
    with pytest.raises(RfbError):
        ClientFilter(view=True).feed(said)
    assert ClientFilter(view=False).feed(said) == said


def test_a_password_of_vnc_passes():
    looker = ClientFilter(view=True)
    said = b"RFB 003.008\n\x02" + b"\x04" * 16 + b"\x01" + UPDATE
    assert looker.feed(said) == said


@pytest.mark.parametrize(
    "missing", ["HTTP_UPGRADE", "HTTP_SEC_WEBSOCKET_KEY", "HTTP_SEC_WEBSOCKET_VERSION"]
)
def test_a_request_that_is_no_proper_upgrade_is_refused(missing):
    environ = {
        "HTTP_HOST": "x",
        "HTTP_CONNECTION": "keep-alive, Upgrade",
        "HTTP_UPGRADE": "websocket",
        "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==",
        "HTTP_SEC_WEBSOCKET_VERSION": "13",
    }
    assert b"101" in Upgrade(environ).answer
    del environ[missing]
    with pytest.raises(Refused) as refused:
        Upgrade(environ)
    assert refused.value.status == 400
