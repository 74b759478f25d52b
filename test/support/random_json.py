"""Random JSON for requests: values of all kinds, and valid values with something wrong in them."""

from __future__ import annotations

import copy
import random
from typing import Any

#: Values that programs do not expect.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    5,
    10**9,
    2**31,
    2**63,
    -(2**70),
    10**30,
    0.5,
    -0.0,
    1e308,
    1e-320,
    "",
    " ",
    "a",
    "0",
    "-1",
    "web1.example.com",
    "node1.example.com",
    "default",
    "none",
    "auto",
    "x" * 300,
    "y" * 70_000,
    "a/b",
    "../../etc/passwd",
    "/",
    "/dev/null/x",
    "a\0b",
    "a\nb",
    "\x1b[0m",
    "é",
    "\U0001f600",
    "\ud800",
    "%s%d{}",
    "'; rm",
    "[",
    "file",
    "fake",
    "kvm",
    "disk/0",
    "1e999",
    [],
    {},
    [[]],
    [None],
    [{}],
    [1, "a"],
    {"": 1},
    {"a": None},
    {"a": {"b": []}},
    [["|"]],
    ["==", "name", 5],
    ["|", ["==", "name", "a\0"]],
    ["=~", "name", "("],
    ["?", "name"],
    [1, [2]],
    "9" * 50,
    "٣",
    "nan",
    4.5e15,
)


def odd(dice: random.Random) -> Any:
    """One of them."""
    return copy.deepcopy(dice.choice(ODD))


def spoiled(dice: random.Random, value: Any) -> Any:
    """A copy of a value with one or two places changed: replaced, left out or added."""
    result = copy.deepcopy(value)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3))):
        result = _spoil(dice, result)
    return result


def _spoil(dice: random.Random, value: Any) -> Any:
    if not isinstance(value, list | dict) or not value or dice.random() < 0.1:
        return odd(dice)
    places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    place = dice.choice(places)
    chance = dice.random()
    if chance < 0.7:
        value[place] = _spoil(dice, value[place])
    elif chance < 0.85:
        del value[place]
    elif isinstance(value, dict):
        value[dice.choice(("", "extra", "name", "\ud800", "x" * 300))] = odd(dice)
    else:
        value.insert(place, odd(dice))
    return value
