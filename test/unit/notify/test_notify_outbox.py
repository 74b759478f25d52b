"""Batches, pauses, retries and limits of what is sent to one receiver."""

from __future__ import annotations

import msgspec

from ganeti.notify import outbox
from ganeti.notify.notices import Notice
from ganeti.notify.outbox import Outbox


def notice(number: int) -> Notice:
    text = str(number)
    return Notice(
        id=text, key=text, time=0.0, event="test", kind="cluster", severity="ok", object="c"
    )


def ids(message: outbox.Message | None) -> list[str]:
    assert message is not None
    return [item.id for item in message.notices]


def test_what_comes_close_together_is_one_message_and_the_next_waits() -> None:
    box = Outbox()
    assert box.find_due() is None
    box.add(notice(1), 10.0)
    box.add(notice(2), 10.5)
    assert box.take(10.9) is None
    assert ids(box.take(11.0)) == ["1", "2"]
    box.succeed(11.0, pause=60.0)
    box.add(notice(3), 12.0)
    assert box.take(70.9) is None
    assert ids(box.take(71.0)) == ["3"]


def test_a_message_that_fails_is_the_same_again_with_growing_pauses() -> None:
    box = Outbox()
    box.add(notice(1), 0.0)
    first = box.take(1.0)
    pauses, now = [], 1.0
    for _attempt in range(10):
        assert not box.fail(now, "refused")
        due = box.find_due()
        assert due is not None
        pauses.append(due - now)
        now = due
        box.add(notice(2), now)
        assert box.take(now) is first
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 900, 900, 900]
    assert box.problem == "refused"
    box.succeed(now, 0.0)
    assert (box.problem, len(box.waiting)) == ("", 10)


def test_after_a_day_a_message_is_given_up_and_counted() -> None:
    box = Outbox()
    box.add(notice(1), 0.0)
    box.take(1.0)
    assert not box.fail(86400.0, "x")
    assert box.fail(86401.0, "x")
    assert (box.failed, box.lost, box.find_due()) == (1, 1, None)
    box.add(notice(2), 90000.0)
    message = box.take(90020.0)
    assert message is not None
    assert message.dropped == 1


def test_too_many_notices_drop_the_oldest_and_say_so() -> None:
    box = Outbox()
    for number in range(outbox.MOST + 5):
        box.add(notice(number), 0.0)
    message = box.take(2.0)
    assert message is not None
    assert (message.dropped, message.notices[0].id) == (5, "5")
    assert len(message.notices) == outbox.BATCH


def test_an_outbox_goes_into_a_file_and_back() -> None:
    box = Outbox()
    box.add(notice(1), 0.0)
    box.take(1.0)
    box.add(notice(2), 1.0)
    assert msgspec.convert(msgspec.to_builtins(box), Outbox) == box
