"""Files of the web interface: what is served, with which headers, and what it may do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ganeti.rapi import web_files
from ganeti.rapi.routes import ROUTES

WEB = web_files.DIRECTORY


def ask(path: str, **more: str) -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body of a request."""
    found: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        found.update(status=status, headers=dict(headers))

    def api(_environ: object, begin: Any) -> list[bytes]:
        begin("200 OK", [("X-From", "api")])
        return [b"api"]

    environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "wsgi.input": io.BytesIO(b""), **more}
    body = b"".join(web_files.with_web(api)(environ, start))
    return found["status"], found["headers"], body


def test_pages_are_the_index_whatever_their_names() -> None:
    index = WEB.joinpath("index.html").read_bytes()
    for path in ("/ui/", "/ui/map", "/ui/instances/web1.example.com", "/ui/nodes/n.html"):
        status, headers, body = ask(path)
        assert (status, body) == ("200 OK", index), path
        assert headers["Content-Type"].startswith("text/html")


def test_files_come_compressed_and_only_once() -> None:
    status, headers, body = ask("/ui/js/main.js", HTTP_ACCEPT_ENCODING="gzip, br")
    assert status == "200 OK"
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == WEB.joinpath("js/main.js").read_bytes()
    assert headers["Content-Type"].startswith("text/javascript")
    again = ask("/ui/js/main.js", HTTP_IF_NONE_MATCH=headers["ETag"])
    assert again[0].startswith("304")
    assert again[2] == b""


@pytest.mark.parametrize("path", ["/ui/nothing.js", "/ui/../rapi/app.py", "/ui/js/../../paths.py"])
def test_other_files_are_not_there(path: str) -> None:
    assert ask(path)[0].startswith("404")
    assert ask(path, REQUEST_METHOD="HEAD")[2] == b""


def test_only_reading_is_possible() -> None:
    assert ask("/ui/", REQUEST_METHOD="POST")[0].startswith("501")


def test_browsers_are_sent_to_the_interface_and_programs_are_not() -> None:
    status, headers, _body = ask("/", HTTP_ACCEPT="text/html,*/*")
    assert (status, headers["Location"]) == ("302 Found", "/ui/")
    assert ask("/", HTTP_ACCEPT="*/*")[2] == b"api"
    assert ask("/2/info", HTTP_ACCEPT="text/html")[2] == b"api"


def test_policy_allows_no_inline_code_and_nobody_else() -> None:
    _status, headers, _body = ask("/ui/")
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    index = WEB.joinpath("index.html").read_text()
    assert not re.search(r"\son\w+=|style=|<script>|<style>", index)


def test_third_party_modules_are_those_of_the_table() -> None:
    directory = WEB / "vendor"
    table = json.loads(directory.joinpath("modules.json").read_text())
    for row in table:
        digest = hashlib.sha256(directory.joinpath(row["file"]).read_bytes()).hexdigest()
        assert digest == row["sha256"], row["file"]
        assert row["version"]
        assert row["license"] in ("MIT", "Apache-2.0", "MPL-2.0", "MIT AND Zlib")
    listed = {row["file"] for row in table}
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert there - {"modules.json"} == listed


def sources() -> list[Path]:
    return [path for path in WEB.rglob("*.js") if "vendor" not in path.parts]


def test_only_paths_of_the_public_api_are_called() -> None:
    """Each path in the sources is a route, with any word in place of a variable."""
    known = [re.sub(r"\{\w+\}", r"[^/]+", route.path) for route in ROUTES]
    optional = (
        "/2/health",
        "/2/nodes/X/samples",
        "/2/instances/X/samples",
        "/2/consoles/X",
        "/2/instances/X/consoles",
        "/2/instances/X/console-ticket",
    )
    for path in sources():
        words = r"[\"'`](?:(?:GET|PUT|POST|DELETE) )?(/2/[^\"'`?]*)"
        for text in re.findall(words, path.read_text()):
            plain = re.sub(r"\$\{[^}]*\}|\{\w+\}", "X", text)
            if plain.endswith("/") or plain.startswith("/2/X/"):
                continue
            fits = any(re.fullmatch(pattern, plain) for pattern in known) or plain in optional
            assert fits, f"{path.name}: {text}"


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in [*WEB.rglob("*.js"), *WEB.rglob("*.css"), *WEB.rglob("*.html")]:
        elsewhere = r"(?:fetch|import|src|href|url)\W{1,3}https?://[^\"'`\s)]+"
        found = re.findall(elsewhere, path.read_text())
        assert not found, f"{path}: {found}"


def test_markup_is_never_made_of_text() -> None:
    words = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|eval\(|new Function"
    )
    for path in sources():
        assert not re.search(words, path.read_text()), path


def test_what_is_loaded_at_first_is_small() -> None:
    """Compressed bytes of all but the console's own modules."""
    files = web_files.read()
    sizes = {
        name: len(file.packed or file.data)
        for name, file in files.items()
        if "console" not in name and "xterm" not in name and "novnc" not in name
    }
    assert sum(sizes.values()) < 300_000, sizes
