"""The web interface in a browser.

Without ``UI`` in the environment nothing here is collected, because it takes some minutes and a
browser.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ganeti.base import daemon
from ganeti.paths import HOSTNAME_VARIABLE, ROOTDIR_VARIABLE, Paths
from ganeti.rapi import openapi
from ganeti.rapi.routes import ROUTES

if not os.environ.get("UI"):
    collect_ignore_glob = ["*"]

HERE = Path(__file__).resolve().parent.parent.parent
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
)


class Local:
    """A local cluster of three nodes."""

    def __init__(self, directory: Path, hypervisor: str = "kvm") -> None:
        self.directory = directory
        self.tool("start", "--nodes", "3", "--hypervisor", hypervisor)
        self.env = dict(os.environ)
        for line in self.tool("env").splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            if name != "PATH":
                self.env[name] = value.strip("'")
        self.env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    @property
    def url(self) -> str:
        return self.env["RAPI_URL"] + "/ui/"

    def pid(self, name: str, node: str = "node1") -> int:
        """The process of a daemon, which must run."""
        found = daemon.running_pid(Paths(self.directory / node).pid_file(name))
        assert found is not None, f"{name} does not run on {node}"
        return found

    def tool(self, verb: str, *words: str) -> str:
        command = [str(HERE / "tools/local-cluster"), verb, "--dir", str(self.directory), *words]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout

    def run(self, *words: str, node: str = "node1") -> str:
        env = {**self.env, ROOTDIR_VARIABLE: str(self.directory / node)}
        env[HOSTNAME_VARIABLE] = f"{node}.example.com"
        made = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout


@pytest.fixture(scope="session")
def local_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    made = Local(tmp_path_factory.mktemp("ui") / "c")
    try:
        yield made
    finally:
        made.tool("destroy")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS])
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, local_cluster: Local) -> Iterator[Any]:
    """A page that is logged in."""
    with open_page(browser, local_cluster) as made:
        yield made


@contextlib.contextmanager
def open_page(browser: Any, local_cluster: Local) -> Iterator[Any]:
    """A page that is logged in. It fails when a script throws, when the policy refuses something,
    or when the page asks for what is neither its own file nor in the API's description.
    """
    context = browser.new_context(
        viewport={"width": 1360, "height": 820}, ignore_https_errors=True, color_scheme="light"
    )
    context.set_default_timeout(60_000)  # a machine may be busy with other things
    made = context.new_page()
    wrong: list[str] = []
    asked: set[tuple[str, str]] = set()
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on(
        "console",
        lambda message: "Content Security Policy" in message.text and wrong.append(message.text),
    )
    context.on("request", lambda request: asked.add((request.method, request.url)))
    log_in(made, local_cluster)
    try:
        yield made
    finally:
        context.close()
    assert wrong == []
    assert [
        one for one in sorted(asked) if not is_public(local_cluster.env["RAPI_URL"], *one)
    ] == []


@functools.cache
def list_requests() -> list[tuple[str, re.Pattern[str]]]:
    """Method and form of the path of each request in the OpenAPI document."""
    return [
        (method.upper(), re.compile(re.sub(r"\\{[^/]+\\}", "[^/]+", re.escape(path))))
        for path, methods in openapi.document(ROUTES)["paths"].items()
        for method in methods
    ]


def described_requests() -> list[tuple[str, str, list[str]]]:
    """Method, path and members of the body that take a text, of each request that changes."""
    document = openapi.document(ROUTES)

    def takes_text(schema: Any) -> bool:
        while "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        kinds = schema.get("type", [])
        choices = schema.get("anyOf", []) + schema.get("oneOf", [])
        is_text = "string" in ([kinds] if isinstance(kinds, str) else kinds)
        return (is_text and "enum" not in schema) or any(takes_text(one) for one in choices)

    return [
        (
            method.upper(),
            path,
            [
                name
                for name, schema in content["schema"].get("properties", {}).items()
                if takes_text(schema)
            ],
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in ("post", "put")
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]


def is_public(server: str, method: str, url: str) -> bool:
    """Whether a request goes to this server, for a file of the interface or by the public API."""
    if not url.startswith(f"{server}/"):
        return False
    path = urllib.parse.urlsplit(url).path
    if path.startswith("/ui/"):
        return method in ("GET", "HEAD")
    return any(method == one and form.fullmatch(path) for one, form in list_requests())


def log_in(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url)
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click("button.primary")
    page.locator(".link.live").wait_for()
