"""XML from outside as a tree: no document types, so no entities, and nothing else is read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from ganeti.foreign.guest import LONGEST_TEXT, refuse

#: Deepest nesting, and most elements.
_DEPTH, _ELEMENTS = 64, 100_000


@dataclass
class Element:
    """An element; names are those without prefixes and name spaces."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def find_all(self, path: str) -> Iterator[Element]:
        """The elements at a path of names, as in ``devices/disk``."""
        first, _, rest = path.partition("/")
        for child in self.children:
            if child.name == first:
                if rest:
                    yield from child.find_all(rest)
                else:
                    yield child

    def find(self, path: str) -> Element | None:
        return next(self.find_all(path), None)

    def read(self, path: str, attribute: str = "") -> str:
        """Text of an element, or an attribute of it; empty when there is none."""
        found = self.find(path) if path else self
        if found is None:
            return ""
        return (found.attributes.get(attribute, "") if attribute else found.text).strip()


def parse(what: str, data: bytes) -> Element:
    """The root of a document; ``what`` names it in errors.

    Raises:
        OpPrereqError: it is not well formed, has a DOCTYPE, or is too large.
    """
    if len(data) > LONGEST_TEXT:
        raise refuse(what, f"the XML has more than {LONGEST_TEXT >> 20} MiB")
    root = Element("", {})
    stack, count = [root], 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _ELEMENTS or len(stack) > _DEPTH:
            raise refuse(what, f"the XML has more than {_ELEMENTS} elements or {_DEPTH} levels")
        local = {_strip(key): value for key, value in attributes.items()}
        element = Element(_strip(name), local)
        stack[-1].children.append(element)
        stack.append(element)

    def end(_name: str) -> None:
        stack.pop()

    def note_text(text: str) -> None:
        stack[-1].text += text

    def refuse_doctype(*_about: object) -> None:
        raise refuse(what, "the XML has a DOCTYPE, which is refused because of entities; remove it")

    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = note_text
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as err:
        raise refuse(what, f"the XML cannot be read: {err}") from err
    return root.children[0]


def _strip(name: str) -> str:
    return name.rpartition("}")[2]
