"""Reader of ``drbdsetup show``: how devices are set up. Pure.

The output is a configuration file: settings that end in a semicolon, and sections in braces.
Settings that are the kernel's defaults are not in it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ganeti import errors
from ganeti.storage.drbd.states import Endpoint, Setup

#: A section: its words, its settings (name -> words after it), its sections.
Section = tuple[list[str], dict[str, list[str]], list[Any]]

#: Parts of the text. Possessive, so that a damaged text is refused at once.
_WORD = r'(?:"(?:[^"\\\n]|\\.)*+"|[^\s{};"#]++)'
_COMMENT = r"#[^\n]*+"
_GAP = rf"(?:\s|{_COMMENT})*+"
#: Sections at the top before there were resources.
_OLD = ("disk", "net", "syncer", "_this_host", "_remote_host")


def parse(text: str) -> list[Setup]:
    """All volumes of all resources.

    Raises:
        BlockDeviceError: the text is something else, or of a version before 8.4.
    """
    import pyparsing

    try:
        parts = _grammar().parse_string(text, parse_all=True).as_list()
    except pyparsing.ParseException as err:
        raise errors.BlockDeviceError(
            f"the answer of drbdsetup show cannot be read at line {err.lineno}, column {err.column}"
        ) from err
    if any(mark == ";" or words[0] in _OLD for mark, words, *_rest in parts):
        raise errors.BlockDeviceError(
            "drbdsetup show answers in the form of DRBD 8.0 to 8.3; disks of template drbd need"
            " module and tools of 8.4"
        )
    return [setup for section in map(_section, parts) for setup in _setups(section)]


@cache
def _grammar() -> Any:
    """Nested lists: ``["{", words, content...]`` for a section, ``[";", words...]`` for a setting.

    A statement is one token, because a node reads this before and after each step of a device.
    pyparsing takes a tenth of a second to import, so only a node that uses DRBD pays for it.
    """
    import pyparsing as pp

    def words_before(end: str) -> Any:
        words = pp.Regex(f"(?P<words>(?:{_WORD}{_GAP})+){end}{_GAP}")
        return words.set_parse_action(lambda found: [_split(found["words"])])

    content = pp.Forward()
    setting = words_before(";").add_parse_action(lambda found: [[";", *found[0]]])
    section = pp.Group(words_before("{") + content + pp.Regex(f"}}{_GAP}").suppress())
    section.set_parse_action(lambda found: [["{", *found[0]]])
    content <<= pp.ZeroOrMore(setting | section)
    older = pp.FollowedBy(pp.Regex(r"protocol\s")) + setting
    return pp.Optional(pp.Regex(_GAP).suppress()) + pp.ZeroOrMore(older | section)


def _split(words: str) -> list[str]:
    """Words without their quotes; comments between them do not count."""
    return [
        re.sub(r"\\(.)", r"\1", word[1:-1]) if word[0] == '"' else word
        for word in re.findall(f"{_COMMENT}|({_WORD})", words)
        if word
    ]


def _section(parsed: list[Any]) -> Section:
    _mark, words, *content = parsed
    settings = {item[1]: list(item[2:]) for item in content if item[0] == ";"}
    return list(words), settings, [_section(item) for item in content if item[0] == "{"]


def _setups(resource: Section) -> list[Setup]:
    words, _settings, sections = resource
    if words[:1] != ["resource"] or len(words) != 2:
        return []
    net = _find_first(sections, "net")[1]
    here, there = _find_first(sections, "_this_host"), _find_first(sections, "_remote_host")
    local, remote = _endpoint(here[1]), _endpoint(there[1])
    found = []
    for volume in here[2]:
        if volume[0][:1] != ["volume"] or "device" not in volume[1]:
            continue
        found.append(
            Setup(
                resource=words[1],
                minor=int(volume[1]["device"][-1]),
                data=_path(volume[1].get("disk")),
                meta=_path(volume[1].get("meta-disk")),
                local=local,
                remote=remote,
                secret=net.get("shared-secret", [None])[0],
                two_primaries=net.get("allow-two-primaries", ["no"]) in (["yes"], []),
            )
        )
    return found


def _find_first(sections: list[Section], name: str) -> Section:
    return next((section for section in sections if section[0] == [name]), ([name], {}, []))


def _path(words: list[str] | None) -> str | None:
    return words[0] if words else None


def _endpoint(settings: dict[str, list[str]]) -> Endpoint | None:
    words = settings.get("address")
    if not words:
        return None
    address, _, port = words[-1].rpartition(":")
    return Endpoint(address.strip("[]"), int(port))
