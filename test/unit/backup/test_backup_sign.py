"""By what a copy shows that it works."""

from __future__ import annotations

import time

import pytest

from ganeti import errors
from ganeti.backup import sign


@pytest.mark.parametrize("text", ["agent", "tcp:22", "serial:login:", "serial:a*b?c"])
def test_what_is_read_is_what_was_written(text: str) -> None:
    assert sign.parse(text).encode() == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent:1",
        "tcp",
        "tcp:",
        "tcp:0",
        "tcp:65536",
        "tcp:²",
        "serial",
        "serial:",
        "serial:a\nb",
        "serial:" + "x" * 201,
        "ping",
    ],
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="is not a sign of life"):
        sign.parse(text)


def test_a_text_is_looked_for_in_each_line() -> None:
    console = "SeaBIOS\nDebian 13 web1 ttyS0\n\nweb1 login: "
    assert sign.parse("serial:login:").is_in(console)
    assert sign.parse("serial:Debian*ttyS?").is_in(console)
    assert not sign.parse("serial:SeaBIOS*login").is_in(console)
    assert not sign.parse("serial:Login:").is_in(console)


def test_no_console_keeps_a_pattern_busy() -> None:
    pattern = sign.parse("serial:" + "a*" * 90 + "b")
    begun = time.process_time()
    assert not pattern.is_in("a" * 100_000)
    assert time.process_time() - begun < 1
