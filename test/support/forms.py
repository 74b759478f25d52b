"""Whether a value has a recorded form: the same members, each of its kind.

A form is a word (``integer``, ``text or null``), a value that must be equal, ``{name: form}`` with
``*`` for any other member, ``{"list": [form]}`` for a list of any length, or a list: of one form
for any length, of several in this order. A list of plain numbers holds what is allowed.
"""

from __future__ import annotations

from typing import Any

_WORDS: dict[str, tuple[type, ...]] = {
    "any": (object,),
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "text or null": (str, type(None)),
    "switch": (bool,),
}


def find_difference(value: Any, form: Any, where: str = "", **named: Any) -> str:
    """What is different, with its path; empty when the value has the form."""
    if isinstance(form, str) and form in named:
        return find_difference(value, named[form], where, **named)
    if isinstance(form, str) and form in _WORDS:
        wrong = not isinstance(value, _WORDS[form]) or (
            isinstance(value, bool) and form in ("integer", "number")
        )
        return f"{where}: {value!r} is not {form}" if wrong else ""
    if isinstance(form, dict):
        if set(form) == {"list"}:
            return _compare_items(value, form["list"] * len(value), where, named)
        return _compare_members(value, form, where, named)
    if isinstance(form, list) and all(isinstance(item, int) for item in form):
        return "" if value in form else f"{where}: {value!r} is none of {form}"
    if isinstance(form, list):
        forms = form * len(value) if len(form) == 1 else form
        return _compare_items(value, forms, where, named)
    return "" if value == form else f"{where}: {value!r} is not {form!r}"


def _compare_items(value: Any, forms: list[Any], where: str, named: dict[str, Any]) -> str:
    if not isinstance(value, list | tuple) or len(value) != len(forms):
        return f"{where}: {value!r} is not a list of {len(forms)}"
    found = (
        find_difference(v, f, f"{where}/{n}", **named) for n, (v, f) in enumerate(zip(value, forms))
    )
    return next(filter(None, found), "")


def _compare_members(value: Any, form: dict[str, Any], where: str, named: dict[str, Any]) -> str:
    if not isinstance(value, dict):
        return f"{where}: {value!r} is not an object"
    missing = sorted(form.keys() - value.keys() - {"*"})
    more = sorted(value.keys() - form.keys()) if "*" not in form else []
    if missing or more:
        return f"{where}: without {missing}, and with {more}"
    found = (
        find_difference(item, form.get(key, form.get("*")), f"{where}/{key}", **named)
        for key, item in value.items()
    )
    return next(filter(None, found), "")
