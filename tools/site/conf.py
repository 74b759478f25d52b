"""Sphinx configuration of ``make site``.

The order of the pages is that of ``doc/index.md``: each of its headings becomes a part of the
navigation, with the pages that are linked below it. Man pages are converted to Markdown.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from roff import to_markdown

project = "Ganeti"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Ganeti"
html_show_copyright = False
html_show_sphinx = False
# Options begin with two plain dashes.
smartquotes = False
#: GitHub makes the same anchors from headings of these levels.
myst_heading_anchors = 4
# Headings of recorded sessions ("$ gnt-...") have no lexer that knows all of them.
suppress_warnings = ["misc.highlighting_failure"]

_PAGE = re.compile(r"\]\(([\w/-]+)\.md\)")
_COMMANDS = "reference/man/"


def _parts(index: str) -> list[tuple[str, list[str]]]:
    """Headings of the index, each with its pages."""
    sections = re.split(r"^## ", index, flags=re.MULTILINE)[1:]
    return [(text.partition("\n")[0], _PAGE.findall(text)) for text in sections]


def _add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname != "index":
        return
    for title, pages in _parts(source[0]):
        if title == "Reference":
            pages = [*pages, *sorted(_made(app))]
        listed = "\n".join(pages)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"


def _made(app: Sphinx) -> list[str]:
    folder = Path(app.srcdir) / _COMMANDS
    return [f"{_COMMANDS}{path.stem}" for path in folder.glob("*.md")]


def _convert_manuals(app: Sphinx) -> None:
    for path in (Path(app.srcdir) / _COMMANDS).glob("*.8"):
        path.with_suffix(".md").write_text(to_markdown(path.read_text()))


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _convert_manuals, priority=1)
    app.connect("source-read", _add_navigation)
