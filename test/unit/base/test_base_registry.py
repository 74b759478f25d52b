"""Drivers by name, loaded when they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.base.registry import Registry

REPOSITORY = Path(__file__).parents[3]


def test_a_name_gives_its_class_each_time() -> None:
    registry: Registry[Any] = Registry("shape", {"b": "fractions:Fraction", "a": "pathlib:Path"})
    assert registry.names() == ["a", "b"]
    assert registry.get("a") is registry.get("a") is Path
    assert "a" in registry
    assert "c" not in registry
    assert 1 not in registry


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    registry: Registry[Any] = Registry("shape", {"circle": "x:Y", "square": "x:Z"})
    with pytest.raises(errors.ParameterError) as caught:
        registry.get("cirle")
    assert errors.text(caught.value) == (
        "unknown shape 'cirle' (did you mean circle?); choose from circle, square"
    )


def test_a_driver_costs_nothing_until_it_is_used() -> None:
    code = (
        "import sys; from ganeti.base.registry import Registry\n"
        "registry = Registry('x', {'a': 'fractions:Fraction'})\n"
        "registry.names()\n"
        "before = 'fractions' in sys.modules\n"
        "registry.get('a')\n"
        "print(before, 'fractions' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=20
    )
    assert done.stdout.strip().endswith("True")
