"""README.md and doc/ name only files, make targets and commands that exist."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path

import pytest

from ganeti.cli.programs import PROGRAMS
from ganeti.opcodes.registry import all_opcodes
from ganeti.ops.registry import find, is_built
from ganeti.paths import Paths

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "doc").rglob("*.md")])

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: Paths of the project in code or as plain words, patterns among them.
_PATH = re.compile(r"(?<![\w/.<-])(?:doc|tools|test|iallocators|daemons|\.ci)/[\w./*-]*[\w*]")
#: A page that stands alone in backquotes is beside the page that names it.
_PAGE = re.compile(r"`([\w-]+\.md)`")
_MAKE = re.compile(r"(?:`|^)make ([a-z][a-z-]*)", re.MULTILINE)
#: A module, from the root or from ganeti/.
_MODULE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)[:`]")
#: The module that doc/adding.md writes.
_EXAMPLE = "ops/test/greet.py"
_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
#: Where a command begins: in backquotes, as a line of a session, or after another one.
_BEGIN = r"(?:`|^ *(?:[$#] )?|(?:;|&&|\|) )"
#: A command with its arguments.
_COMMAND = re.compile(_BEGIN + r"(gnt-[a-z]+) ([a-z][a-z-]+)((?:(?!, )[^`\n#])*)", re.MULTILINE)
_MANUALS = ROOT / "doc" / "reference" / "man"
_HTOOLS = "|".join(page.stem for page in _MANUALS.glob("h*.8"))
#: A program with a man page and its arguments.
_PROGRAM = re.compile(
    _BEGIN + rf"(ganeti-[a-z-]+|{_HTOOLS})(?= )((?:(?!, |; | && | \| )[^`\n#])*)", re.MULTILINE
)
#: What a command gets as one argument.
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_CONTINUED = re.compile(r"\\\n\s*")
_OPTION = re.compile(r"(?<=\s)--?[a-zA-Z][a-z0-9-]*")
_HELP = {"-h", "--help"}


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_links_lead_to_files(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    missing = [link for link in links if not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


def _headings(path: Path) -> list[tuple[str, str]]:
    """The headings of a page: marks of their level, and text."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^(#+) (.*)$", text, re.MULTILINE)


def _anchor(heading: str) -> str:
    """As GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    return {_anchor(heading) for _level, heading in _headings(path)}


def test_links_lead_to_headings(page: Path) -> None:
    missing = []
    for link in _LINK.findall(page.read_text()):
        name, mark, anchor = link.partition("#")
        target = page.parent / name if name else page
        if mark and "://" not in link and anchor not in _anchors(target):
            missing.append(link)
    assert missing == []


def test_the_contents_of_the_decisions_are_their_headings() -> None:
    page = ROOT / "doc" / "design" / "decisions.md"
    wanted = [
        f"{'  ' * (len(level) - 2)}- [{text}](#{_anchor(text)})"
        for level, text in _headings(page)
        if len(level) > 1 and text != "Contents"
    ]
    contents = page.read_text().partition("## Contents\n\n")[2].partition("\n\n")[0]
    assert contents.splitlines() == wanted


def test_the_index_names_all_pages() -> None:
    index = ROOT / "doc" / "index.md"
    named = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    assert sorted({*(ROOT / "doc").rglob("*.md")} - named - {index}) == []


def _resolve(page: Path, name: str) -> str:
    return str(page.parent.relative_to(ROOT) / name)


def written(page: Path) -> str:
    """What somebody wrote on a page; what is made from the code also names what is missing."""
    return re.sub(r"<!-- from the code.*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)


def test_paths_of_the_project_exist(page: Path) -> None:
    text = written(page)
    found = {*_PATH.findall(text), *(_resolve(page, name) for name in _PAGE.findall(text))}
    assert sorted(path for path in found if not any(ROOT.glob(path))) == []


def test_modules_exist(page: Path) -> None:
    found = set(_MODULE.findall(page.read_text())) - {_EXAMPLE}
    folders = (ROOT, ROOT / "ganeti")
    assert [name for name in found if not any((top / name).exists() for top in folders)] == []


def test_make_targets_exist(page: Path) -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    assert sorted(set(_MAKE.findall(page.read_text())) - targets) == []


def test_commands_and_their_options_exist(page: Path) -> None:
    text = written(page)
    before, heading, after = text.partition("## Not built yet")
    text = before + after.partition("\n## ")[2] if heading else text
    unknown = []
    for name, word, rest in _COMMAND.findall(_CONTINUED.sub("", text)):
        program = PROGRAMS[name]
        program.load()
        second = rest.split()[:1]
        command = program.find(" ".join([word, *second])) or program.find(word)
        if command is None:
            unknown.append(f"{name} {word}")
            continue
        known = _HELP.union(*(option.flags for option in command.all_options))
        flags = _OPTION.findall(_QUOTED.sub("", rest))
        unknown += [f"{name} {word} {flag}" for flag in flags if flag not in known]
    assert unknown == []


@cache
def find_flags(program: str) -> frozenset[str]:
    """The options on its man page, which is made from the code; none without a page."""
    manual = _MANUALS / f"{program}.8"
    text = re.sub(r"\\f[BIR]", "", manual.read_text()) if manual.exists() else ""
    text = text.replace("\\-", "-")
    return frozenset(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z0-9-]*", text))


def find_unknown_flags(text: str) -> list[str]:
    """Options that programs with a man page do not have."""
    return [
        f"{name} {flag}"
        for name, rest in _PROGRAM.findall(_CONTINUED.sub("", text))
        for flag in _OPTION.findall(_QUOTED.sub("", rest))
        if flag not in find_flags(name)
    ]


def test_programs_and_their_options_exist(page: Path) -> None:
    assert find_unknown_flags(written(page)) == []


def test_unknown_options_are_found_wherever_a_command_stands() -> None:
    session = "# ganeti-watcher \\\n    --not-one\n$ true && hbal --not-two; hail --not-three\n"
    assert find_unknown_flags(f"{session}`ganeti-nothing --four`") == [
        "ganeti-watcher --not-one",
        "hbal --not-two",
        "hail --not-three",
        "ganeti-nothing --four",
    ]


def test_the_page_names_the_jobs_that_can_be_canceled_while_they_run() -> None:
    text = (ROOT / "doc" / "admin" / "when-a-job-hangs.md").read_text()
    sentence = text.partition("Of those that run, ")[2].partition(" can.")[0]
    found = {
        op_id.removeprefix("OP_")
        for op_id in all_opcodes()
        if is_built(op_id) and find(op_id).cancelable
    }
    # Only the class of imports can be canceled among those that make an instance.
    assert set(re.findall(r"`([A-Z_]+)`", sentence)) == {*found, "INSTANCE_CREATE"}


#: Files of the system, and those of clusters that exist only in a directory.
_NOT_OF_A_NODE = ("/etc/hosts", "/etc/services", "/fake-hypervisor", "/master-ip")


def test_the_page_of_files_names_all_files() -> None:
    where = Paths(Path("/"))
    text = (ROOT / "doc" / "admin" / "files.md").read_text()
    named = re.findall(r"(?:`|^## )([^`\s]+)(?:`|$)", text, re.MULTILINE)
    found = [
        str(path)
        for name, value in vars(Paths).items()
        if isinstance(value, property | cached_property)
        and isinstance(path := getattr(where, name), Path)
    ]
    assert [
        path
        for path in found
        if not path.endswith(_NOT_OF_A_NODE)
        and not any(path == name or path.endswith(f"/{name}") for name in named)
    ] == []
