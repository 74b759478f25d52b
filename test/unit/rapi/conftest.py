"""What the tests of the remote API share."""

from __future__ import annotations

import base64

import pytest


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def basic():
    def header(user: str, password: str) -> str:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    return header
