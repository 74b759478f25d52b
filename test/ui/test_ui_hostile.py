"""Hostile text in every field of the remote API, on nodes and in guests: pages only show it."""

from __future__ import annotations

import contextlib
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Local, described_requests, open_page
from test_ui_consoles import wait_text
from test_ui_pages import take
from visitor import Visitor

from ganeti.paths import Paths

NAME = "victim1.example.com"
#: Markup, quotes of all kinds, a template, an end of scripts, letters that turn the direction.
TEXT = (
    "<img src=x onerror=window.ran=1>\"'`${window.ran=1}{{7*7}}&lt;</script>"
    "<script>window.ran=1</script>\u202e\nnext\u2028"
)
LONG = "W" * 4000
#: The same for names without blanks and slashes.
WORD = "<img/src=x/onerror=window.ran=1>"
FILE = "<img src=x onerror=window.ran=1>"
#: What stands in paths, so that requests get as far as they can.
PLACES = {
    "instance_name": NAME,
    "node_name": "node2.example.com",
    "group_name": "default",
    "network_name": "net1",
    "disk": "0",
    "snapshot_name": "snap",
    "kind": "instance",
}
#: What else requests need.
NEEDED: dict[str, dict[str, Any]] = {
    "POST /2/instances": {
        "__version__": 1, "mode": "create", "name": "web1", "disk_template": "diskless",
        "disks": [], "nics": [], "os": "noop", "pnode": "node2.example.com",
    },
    "POST /2/networks": {"name": "net2", "network": "192.0.2.0/24"},
    "POST /2/filters": {"predicates": [["jobid", ["=", "id", TEXT]]], "action": "CONTINUE"},
    "POST /2/images": {"name": "image1", "source": "/nowhere"},
    "POST /2/instances/{instance_name}/snapshots": {"name": "snap"},
}  # fmt: skip
NEEDED["POST /2/reservations"] = {"name": "later1", **NEEDED["POST /2/instances"]}
#: Ends of paths that are not called: what would stop a node, and wrong log-ins, which are slowed.
BESIDES = ("/powercycle", "/fence", "/sessions")
KINDS = (
    "instances", "reservations", "nodes", "groups", "disks", "images", "backups", "exports",
    "networks", "jobs", "filters", "os",
)  # fmt: skip


#: What a guest prints that would take memory or time without end: titles, repetitions, columns,
#: pictures, commands that never end, wrong letters.
HUGE = (
    b"\x1b]0;" + b"T" * 3_900 + b"\x07",
    b"a\x1b[2147483647b",
    b"\x1b[2147483647;2147483647H\x1b[2147483647@\x1b[2147483647L\x1b[2147483647S",
    b"\x1b[1;1H\x1b[2147483647M\x1b[2147483647T\x1b[2147483647I\x1b[2147483647Z",
    b"\x1bPq" + b"#0;2;0;0;0!99999999~" * 50 + b"\x1b\\",
    b"\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[8;60000;60000t",
    b"\x1b[" + b"1;" * 1_900 + b"m",
    b"\xff\xfe\xc0\x80" * 900,
    b"\x07" * 3_000,
    b"\x1b]52;c;" + b"QUFB" * 900 + b"\x07",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    made = Local(tmp_path_factory.mktemp("hostile") / "c", "fake")
    try:
        write_files(made)
        made.run(
            "gnt-instance",
            "add",
            "-t",
            "file",
            "--disk",
            "0:size=8M",
            "-o",
            "noop",
            "-n",
            "node2.example.com",
            "--no-nics",
            NAME,
        )
        made.run("gnt-network", "add", "--network=198.51.100.0/24", "net1")
        yield made
    finally:
        made.tool("destroy")


def write_files(local_cluster: Local) -> None:
    """An OS, an export, a hook and a user with hostile names and outputs."""
    for root in local_cluster.directory.glob("node*"):
        paths = Paths(root)
        systems = paths.os_search_path[1] / FILE
        systems.mkdir(parents=True)
        for script in ("create", "export", "import", "rename"):
            (systems / script).write_text("#!/bin/sh\n")
            (systems / script).chmod(0o755)
        (systems / "ganeti_api_version").write_text(f"20\n{FILE}\n")
        hook = paths.hooks / "instance-reboot-pre.d" / "10-say"
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text(f"#!/bin/sh\ncat <<'end'\n{FILE}\n\033]0;owned\007{LONG}\nend\nexit 1\n")
        hook.chmod(0o755)
    with Paths(local_cluster.directory / "node1").rapi_users.open("a") as users:
        users.write(f"{WORD} pw write\n")


def seed(visitor: Visitor) -> dict[int, int]:
    """Send the text in each field that takes text, and a long one; how often each status came."""
    counts: dict[int, int] = {}
    jobs = []
    odd = urllib.parse.quote(TEXT, safe="")
    for method, form, names in described_requests():
        if form.endswith(BESIDES):
            continue
        path = re.sub(r"\{(\w+)\}", lambda found: PLACES.get(found[1], odd), form)
        base = NEEDED.get(f"{method} {form}", {})
        for name in names:
            for text in (TEXT, LONG):
                status, value = visitor.try_ask(method, path, {**base, name: text})
                counts[status] = counts.get(status, 0) + 1
                if status == 200 and isinstance(value, int):
                    jobs.append(value)
    for job in jobs:
        visitor.await_job(job)
    return counts


def check(page: Any, where: str) -> None:
    """Nothing ran, nothing was made of text, and the page keeps its width."""
    assert page.evaluate("window.ran") is None, where
    made = "main, .dock, .drawer, .top"
    tags = "img:not(.brand img), script, iframe, object, embed, style, link, form[action]"
    assert page.locator(made).locator(tags).count() == 0, where
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, where


def test_nothing_runs_and_the_layout_holds(browser: Any, hostile: Local) -> None:
    with Visitor(hostile) as visitor:
        counts = seed(visitor)
    print(f"\nhostile texts, answers by status: {counts}")
    assert set(counts) <= {200, 400, 403, 404, 409, 422}
    with Visitor(hostile, user=WORD, password="pw") as stranger:
        stranger.await_job(stranger.ask("PUT", f"/2/instances/{NAME}/tags?tag=by-a-stranger"))
        stranger.await_job(stranger.ask("PUT", f"/2/instances/{NAME}/startup"))
        job = stranger.ask("POST", f"/2/instances/{NAME}/reboot", {"comment": TEXT})
        assert stranger.await_job(job) == "error"
    shown = visited = forms = 0
    with open_page(browser, hostile) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        for path in ("", "map", "sessions", *KINDS):
            page.goto(hostile.url + path)
            page.locator(".link.live").wait_for()
            page.locator(".panel, .grid-row, .rack, .empty").first.wait_for()
            page.wait_for_timeout(300)
            check(page, path)
            links = page.locator(".grid-row a[href]").evaluate_all(
                "(all) => [...new Set(all.map((one) => one.getAttribute('href')))]"
            )
            own = [link for link in links if link.startswith(f"/ui/{path}/")]
            for link in own[: 30 if path == "jobs" else 3]:
                page.goto(hostile.env["RAPI_URL"] + link)
                page.locator(".panel").first.wait_for()
                page.wait_for_timeout(150)
                check(page, link)
                visited += 1
                shown += "<img" in page.inner_text("main")
            forms += open_forms(page, hostile.url + path, own)
        page.goto(f"{hostile.url}jobs/{job}")
        page.locator(".messages", has_text="<img").first.wait_for()
        take(page, "hostile-job")
        page.set_viewport_size({"width": 390, "height": 780})
        check(page, "narrow")
        assert dialogs == []
    print(f"{visited} pages of objects, {shown} of them with hostile text, and {forms} forms")
    assert shown > 10
    assert forms >= 40


def open_forms(page: Any, address: str, links: list[str]) -> int:
    """Open each form of a kind, on its list and on its first object; how many there were."""
    count = 0
    places = [address, *(urllib.parse.urljoin(address, link) for link in links[:1])]
    for place in places:
        page.goto(place)
        page.locator(".page-head").first.wait_for()
        buttons = page.locator(".page-head .creates button, .page-head .actions button")
        for index in range(buttons.count()):
            if not buttons.nth(index).is_visible():
                page.locator(".page-head .actions summary").first.click()
            buttons.nth(index).click()
            page.locator(".drawer").wait_for()
            check(page, f"{place} {index}")
            page.keyboard.press("Escape")
            page.locator(".drawer").wait_for(state="detached")
            count += 1
    return count


def test_output_of_a_guest_without_measure_stops_no_page(browser: Any, hostile: Local) -> None:
    """A guest that repeats what is typed prints it; the page looks."""
    hostile.run("gnt-instance", "startup", NAME)
    with open_page(browser, hostile) as page, contextlib.ExitStack() as stack:
        visitor = stack.enter_context(Visitor(hostile))
        console = stack.enter_context(visitor.open_console(NAME, "control"))
        page.goto(f"{hostile.url}console.html?instance={NAME}&kind=serial&mode=view")
        page.locator(".link.live").wait_for()
        title = page.title()
        for number, data in enumerate(HUGE):
            mark = f"mark{number}end"
            console.send(data + b"\n")
            console.send(b"\x1b\\\x1bc" + mark.encode() + b"\n")
            wait_text(page, mark, 5)
            assert page.title() == title
            assert page.locator(".screen img, .screen a").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        take(page, "console-hostile")
