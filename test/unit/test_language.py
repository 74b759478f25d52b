"""Documents, help texts and messages use the words of doc/glossary.md, in short sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The glossary names the words that are not to be used; recorded requests are what they are.
PAGES = [
    *ROOT.glob("*.md"),
    *(
        page
        for page in (ROOT / "doc").rglob("*.md")
        if page.name != "glossary.md" and page.parent.name != "reference"
    ),
]

#: What is not written -> what is written.
PHRASES = {
    r"network cards?": "NIC",
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!(?:longer|more|other|place|data|reason"
    r"|room|answer|newer|larger|such|terminal|need|use|way)\b)\w": "is not a",
    r"[Tt]here is no (?:disk template|kind|method|opcode|option)\b": "unknown ...; choose from",
    r"\blacks\b": "is missing",
    r"\banew\b": "again",
    r"\bgiv(?:e|es|en|ing) back\b": "return",
    r"; known are\b": "choose from",
    r"\bwhole number\b": "integer",
    r"\bfate\b": "state, result",
    r"\bwithout a word\b": "silently",
    r"\bleave (?:it|them) away\b": "omit",
    r"\bgo(?:es)? to nodes?\(s\)": "moving to",
    r'"""Gives (?:the|whether|a)\b': "Returns",
    r"; gives the\b": "returns the",
}
_PHRASES = {phrase: re.compile(phrase) for phrase in PHRASES}

#: Names of functions that are bare participles, adjectives or nouns without a verb.
NAMES = {
    "_news", "_olds", "agree", "instead", "loose", "meant", "numbered", "openable", "still",
    "taken",
}  # fmt: skip

#: How often a package may still use what is forbidden. These numbers only become smaller.
ALLOWED_PHRASES = {"cli": 8}
ALLOWED_NAMES: dict[str, int] = {}
#: Sentences of more than 30 words of a page. These numbers only become smaller.
ALLOWED_SENTENCES: dict[str, int] = {}
LONGEST = 30


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


def parts(text: str) -> Iterator[str]:
    """Paragraphs, items of lists and cells of tables, on one line each."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*#|]|\d+\.) ?)", prose(text)):
        if block.lstrip().startswith("|"):
            yield from (cell.strip() for cell in block.strip().strip("|").split(" | "))
        else:
            yield re.sub(r"^(?:[-*]|\d+\.) ", "", " ".join(block.split()))


def long_sentences(text: str) -> list[str]:
    """Sentences of too many words; code, a list of names and a link count as one word each."""
    found = []
    for part in parts(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "CODE", part))
        plain = re.sub(r"CODE(?:[,;] CODE)+", "CODE", plain)
        for sentence in re.split(r"(?<=[.!?]) ", plain):
            if sum(1 for word in sentence.split() if re.search(r"\w", word)) > LONGEST:
                found.append(sentence)
    return found


def package(path: Path) -> str:
    return path.relative_to(ROOT / "ganeti").parts[0]


def sources() -> Iterator[tuple[str, str]]:
    """Package and text of each module."""
    for path in sorted((ROOT / "ganeti").rglob("*.py")):
        if not path.name.startswith(
            "generated"
        ):  # made from the opcodes, which are read themselves
            yield package(path), path.read_text()


def test_pages_use_the_words_of_the_glossary() -> None:
    found = [
        f"{page.name}: {match[0]!r}: write {PHRASES[phrase]!r}"
        for page in PAGES
        for phrase, pattern in _PHRASES.items()
        for match in pattern.finditer(prose(page.read_text()))
    ]
    assert found == []


def test_code_uses_the_words_of_the_glossary() -> None:
    count: Counter[str] = Counter()
    where = []
    for name, text in sources():
        for phrase, pattern in _PHRASES.items():
            for match in pattern.finditer(text):
                count[name] += 1
                where.append(f"{name}: {match[0]!r}: write {PHRASES[phrase]!r}")
    over = {name for name in count if count[name] > ALLOWED_PHRASES.get(name, 0)}
    assert [line for line in where if line.partition(":")[0] in over] == []


def test_functions_have_verbs_as_names() -> None:
    pattern = re.compile(rf"^\s*def ({'|'.join(sorted(NAMES))})\(", re.MULTILINE)
    count: Counter[str] = Counter()
    for name, text in sources():
        for match in pattern.finditer(text):
            count[f"{name}: {match[1]}"] += 1
    assert {key: n for key, n in count.items() if n > ALLOWED_NAMES.get(key, 0)} == {}


def test_sentences_are_short() -> None:
    too_long = {}
    for page in PAGES:
        found = long_sentences(page.read_text())
        key = str(page.relative_to(ROOT))
        if len(found) > ALLOWED_SENTENCES.get(key, 0):
            too_long[key] = found
    assert too_long == {}


def test_long_sentences_are_found_in_paragraphs_items_and_cells() -> None:
    words = " ".join(["word"] * 31)
    assert long_sentences(f"Short.\n\n- {words}.\n- short\n\n| a | {words} |\n") == [
        f"{words}.",
        words,
    ]
    assert long_sentences(f"```\n{words}\n```\n\n{' '.join(['word'] * 30)}. Another one.") == []
