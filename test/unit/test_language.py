"""Documents, help texts and messages use the words of doc/glossary.md, in short sentences."""

from __future__ import annotations

import ast
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
#: The same, for pages only: programs of others, and Ganeti's messages, have these words.
PAGE_PHRASES = PHRASES | {
    r"\b[Oo]ther half\b": "secondary node",
    r"(?<!sound )(?<!graphics )\bcards?\b": "NIC",
    r"\b(?:the|this|that) host\b(?! key| gave)": "node, server",
}

#: Words that are no name of a function: participles, adjectives, adverbs, prepositions.
WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    about absent activated active after again against ahead alone already another answering
    anywhere apart archived asked attached awake back backwards bad balanced bare before begun
    behind bent beside best both calm canceled caught changed checked chosen claimed closed
    combined compiled completed configured connected copied corrected counted damaged decoded
    deleted demoted deposed described detached direct disguise done dotted doubled down dropped
    due each edited elsewhere emptied encoded ended enough every everything everywhere exactly
    existing expected external failed failing few filled finite first fixed flat for found fresh
    from given gone goodbye got grown held hidden inlined inside instead interrupted invalid
    journey kept knock known last lately later left lent limited listed live loaded local locked
    look loose lost made many meant merged missing mixed moved named near needed never new newer
    next nobody none nothing numbered of old on once one only opened ordered other others outrun
    outside own packed parsed paused picked placed planned pretty previous proved quick quiet
    quoted raw reached ready real rebuilt received recorded redacted refused rejected relaxed
    removed renamed renewed renumbered replaced reserved resized resumed said same scaled searched
    seats seen sensible sent serving settled several shaped shared shown silent single sized
    smaller some soon sound started still stopped stored story strange stripped structured
    submitted succeeded surely suspended switched taken tell told together touched towards
    tried trouble trusted twice typed under unknown unpacked unread unsettled until unusable
    unwritten upgraded used valid wanted watched where whole whose why within without worst wrong
    """,
    )
)
#: With these no name of a function begins, whatever follows.
HEADS = re.compile(
    r"(?:about|after|ahead|another|as|bent|beside|calm|chosen|done|ended|few|for|kept|later|look"
    r"|lost|made|many|maybe|missing|newly|nobody|none|not|of|one|only|other|others|really|said"
    r"|seen|sent|several|shown|taken|tell|told|unsettled|used|wanted|why)_"
)
NAMES = frozenset({"_news", "_olds", "agree", "openable"})

#: Commands of tools for which stand-ins have a method.
COMMANDS = frozenset({"down"})

#: How often a package may still use what is forbidden. These numbers only become smaller.
ALLOWED_PHRASES: dict[str, int] = {}
#: Names that are still to be changed, by the package. The lists only become shorter.
ALLOWED_NAMES: dict[str, set[str]] = {
    "paths.py": {"local", "under"},
}
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
        f"{page.name}: {match[0]!r}: write {text!r}"
        for page in PAGES
        for phrase, text in PAGE_PHRASES.items()
        for match in re.finditer(phrase, prose(page.read_text()))
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


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(item) for item in function.decorator_list)


def refused_names(text: str) -> set[str]:
    """Functions and methods whose names are neither verbs nor nouns; properties may be states."""
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_property(node)
        and (
            node.name in NAMES or node.name.strip("_") in WORDS or HEADS.match(node.name.strip("_"))
        )
        and not node.name.endswith("__")
    }


def test_functions_have_verbs_as_names() -> None:
    found: dict[str, set[str]] = {}
    for name, text in sources():
        found.setdefault(name, set()).update(refused_names(text))
    new = {name: names - ALLOWED_NAMES.get(name, set()) for name, names in found.items()}
    assert {name: names for name, names in new.items() if names} == {}
    gone = {name: names - found.get(name, set()) for name, names in ALLOWED_NAMES.items()}
    assert {name: names for name, names in gone.items() if names} == {}, "make the list shorter"


def test_functions_of_tests_have_verbs_as_names() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / "test").rglob("*.py"))
        if (names := refused_names(path.read_text()) - COMMANDS)
    }
    assert found == {}


def test_names_that_say_nothing_are_found() -> None:
    text = """
class Thing:
    def taken(self): pass
    def _told_by(self): pass
    def find_taken(self): pass
    @property
    def offline(self): pass
    @property
    def used(self): pass
def of(): pass
def is_known(): pass
"""
    assert refused_names(text) == {"taken", "_told_by", "of"}


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
