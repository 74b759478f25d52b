"""Consoles of a guest in the browser: its screen, its serial line, who controls."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Local
from needs import needs_programs
from test_ui_pages import take

from ganeti import constants
from ganeti.paths import Paths

NAME = "console1.example.com"
#: Escape sequences and markup that a guest prints: a title, a link, a question to the terminal.
HOSTILE = (
    "\x1b]0;owned\x07\x1b]2;owned\x07\x1b]8;;https://example.org/\x07link\x1b]8;;\x07"
    "\x1b[6n\x1b[c<img src=x onerror=alert(1)>"
)


@pytest.fixture(scope="module", autouse=True)
def guest(local_cluster: Local, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A guest with a screen on a Unix socket and a serial line; it repeats what is typed."""
    place = tmp_path_factory.mktemp("vnc")
    local_cluster.run(
        "gnt-instance",
        "add",
        "-t",
        "file",
        "--disk",
        "0:size=8M",
        "-o",
        "bootsector+default",
        "-n",
        "node2.example.com",
        "--no-nics",
        "-H",
        f"kvm:vnc_bind_address={place}",
        NAME,
    )
    return place


def address(local_cluster: Local, kind: str, mode: str = "control") -> str:
    return f"{local_cluster.url}console.html?instance={NAME}&kind={kind}&mode={mode}"


def open_console(page: Any, local_cluster: Local, kind: str, mode: str = "control") -> None:
    page.goto(address(local_cluster, kind, mode))
    page.locator(".link.live").wait_for(timeout=30_000)


def wait_text(page: Any, text: str, seconds: float = 20) -> str:
    """What the terminal shows, as soon as it has the text."""
    end = time.monotonic() + seconds
    while True:
        shown = str(page.evaluate("window.ganeti.read()"))
        if text in shown:
            return shown
        assert time.monotonic() < end, f"{text!r} is not in {shown!r}"
        page.wait_for_timeout(100)


@pytest.fixture
def second(page: Any) -> Iterator[Any]:
    """Another page of the same browser."""
    made = page.context.new_page()
    yield made
    made.close()


def test_typed_text_comes_back_on_the_serial_console(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    assert page.locator(".who").inner_text() == "You control it"
    wait_text(page, NAME)
    page.keyboard.type("is anybody here?")
    wait_text(page, "is anybody here?")
    page.click("text=Paste")
    page.fill("dialog textarea", "from the clipboard")
    page.click("text=Type it")
    wait_text(page, "from the clipboard")
    take(page, "console-serial")
    log = (local_cluster.directory / "node1/var/log/ganeti/rapi-access.log").read_text()
    assert "/2/consoles/*** " in log


PASTED = "Big & Small: " + "#" * 40
COLOURS = """() => { const c = document.querySelector('.screen canvas');
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  const found = {}; let lit = 0;
  for (let i = 0; i < d.length; i += 4) { const k = d[i] + ',' + d[i + 1] + ',' + d[i + 2];
    found[k] = (found[k] || 0) + 1; if (d[i] + d[i + 1] + d[i + 2] > 60) lit += 1; }
  return {width: c.width, height: c.height, colours: Object.keys(found).length, lit}; }"""


def wait_lit(page: Any, least: int) -> int:
    """Pixels that are not black, as soon as there are so many."""
    end = time.monotonic() + 20
    while True:
        found = page.evaluate(COLOURS)
        if found["lit"] >= least and found["colours"] > 1:
            assert found["width"] >= 640
            return int(found["lit"])
        assert time.monotonic() < end, found
        page.wait_for_timeout(200)


def test_the_screen_shows_the_guest_and_keys_reach_it(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "vnc")
    lit = wait_lit(page, 500)
    page.locator(".screen canvas").click()
    page.keyboard.type("w" * 40)
    more = wait_lit(page, lit + 600)
    page.click("text=Paste")
    page.fill("dialog textarea", PASTED)
    page.click("text=Type it")
    wait_lit(page, more + 600)
    page.wait_for_timeout(1500)
    take(page, "console-screen")
    open_console(page, local_cluster, "serial")
    wait_text(page, "w" * 40 + PASTED)


def test_one_controls_and_others_look(page: Any, second: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    open_console(second, local_cluster, "serial", "view")
    user = local_cluster.env["RAPI_USER"]
    second.locator(".who", has_text=f"{user} controls it, you view only").wait_for()
    page.locator(".who", has_text="You control it; 1 other views").wait_for()
    second.keyboard.type("nobody-types-this")
    page.keyboard.type("seen-by-both")
    assert "nobody-types-this" not in wait_text(second, "seen-by-both")
    second.click("text=Take control")
    second.locator(".who", has_text="You control it").wait_for()
    page.locator(".why", has_text="Somebody else controls the guest now").wait_for()
    page.locator(".who", has_text=f"{user} controls it").wait_for()
    page.click("text=View only")
    page.locator(".who", has_text="you view only").wait_for()


def test_output_of_the_guest_is_only_drawn(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    title = page.title()
    page.locator(".screen").click()
    page.evaluate("document.querySelector('.screen textarea').focus()")
    page.click("text=Paste")
    page.evaluate("(text) => document.querySelector('dialog textarea').value = text", HOSTILE)
    page.click("text=Type it")
    shown = wait_text(page, "<img src=x onerror=alert(1)>")
    assert "link" in shown
    assert page.title() == title
    assert page.locator(".screen img, .screen a").count() == 0
    pages = len(page.context.pages)
    page.locator(".screen").click(position={"x": 30, "y": 30})
    assert len(page.context.pages) == pages
    open_console(page, local_cluster, "serial")
    before = wait_text(page, "<img src=x onerror=alert(1)>")
    page.wait_for_timeout(1000)
    assert page.evaluate("window.ganeti.read()") == before, "old questions were answered again"


def test_the_end_of_a_guest_is_told_and_it_is_opened_again(
    page: Any, second: Any, local_cluster: Local
) -> None:
    open_console(page, local_cluster, "serial")
    second.goto(address(local_cluster, "vnc"))
    second.locator(".link.live").wait_for()
    second.click("text=Ctrl-Alt-Del")
    local_cluster.run("gnt-instance", "shutdown", "--timeout", "0", NAME)
    for one in (page, second):
        one.locator(".why", has_text="The guest has ended").wait_for()
    page.click("text=Reconnect")
    page.locator(".why", has_text="does not run").wait_for()
    local_cluster.run("gnt-instance", "startup", NAME)
    page.click("text=Reconnect")
    page.locator(".link.live").wait_for(timeout=30_000)


def test_a_console_tries_again_until_the_server_is_reached(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    page.context.set_offline(True)
    page.click("text=Reconnect")
    page.locator(".why", has_text="cannot be reached").wait_for()
    page.context.set_offline(False)
    page.locator(".link.live").wait_for()


#: Keeps what the page says of its connection and of why it ended.
LISTEN = """() => {
  window.told = [];
  const note = () => { for (const one of document.querySelectorAll('.why, .link')) {
    const text = one.className + ': ' + one.textContent;
    if (!window.told.includes(text)) window.told.push(text); } };
  new MutationObserver(note).observe(document.body,
    {subtree: true, childList: true, characterData: true, attributes: true});
}"""
LOST = "link lost: connection lost – trying again"


@contextlib.contextmanager
def without_server(local_cluster: Local, how: int = signal.SIGTERM) -> Iterator[None]:
    """The remote API is not there for a while."""
    os.kill(local_cluster.pid(constants.RAPI), how)
    local_cluster.run("ganeti-daemon-util", "stop", constants.RAPI)
    try:
        yield
    finally:
        local_cluster.run("ganeti-daemon-util", "start", constants.RAPI)


def log_in_again(page: Any, local_cluster: Local) -> None:
    page.locator(".login", has_text="Your session has ended").wait_for()
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click("button.primary")


@pytest.mark.parametrize(
    ("how", "why"),
    [(signal.SIGTERM, "why: The remote API stops"), (signal.SIGKILL, "why: The connection")],
)
@pytest.mark.parametrize("kind", ["serial", "vnc"])
def test_a_console_opens_by_itself_after_the_server_was_restarted(
    page: Any, local_cluster: Local, kind: str, how: int, why: str
) -> None:
    open_console(page, local_cluster, kind)
    page.evaluate(LISTEN)
    with without_server(local_cluster, how):
        page.locator(".link.lost", has_text="connection lost – trying again").wait_for()
        page.wait_for_timeout(1000)
        told = page.evaluate("window.told")
        assert LOST in told
        assert any(text.startswith(why) for text in told), told
    if how == signal.SIGKILL:  # it could not keep its sessions
        log_in_again(page, local_cluster)
    page.locator(".link.live").wait_for()
    assert page.locator(".who").inner_text() == "You control it"
    if kind == "vnc":
        wait_lit(page, 500)
        return
    page.keyboard.type("it is back")
    wait_text(page, "it is back")


def test_a_console_of_a_frozen_server_opens_by_itself(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    pid = local_cluster.pid(constants.RAPI)
    os.kill(pid, signal.SIGSTOP)
    try:
        page.locator(".link.lost").wait_for()
        page.keyboard.type("into the void")
    finally:
        os.kill(pid, signal.SIGCONT)
    page.locator(".link.live").wait_for()
    page.keyboard.type("it thaws")
    assert "into the void" not in wait_text(page, "it thaws")


def test_a_console_gives_up_when_the_guest_was_stopped_meanwhile(
    page: Any, local_cluster: Local
) -> None:
    open_console(page, local_cluster, "serial")
    with without_server(local_cluster):
        local_cluster.run("gnt-instance", "shutdown", "--timeout", "0", NAME)
    page.locator(".why", has_text="does not run").wait_for()
    page.locator(".link.closed").wait_for()
    local_cluster.run("gnt-instance", "startup", NAME)
    page.wait_for_timeout(3000)
    page.locator(".link.closed").wait_for()
    page.click("text=Reconnect")
    page.locator(".link.live").wait_for(timeout=30_000)


def test_a_console_gives_up_when_its_user_may_not_open_it_any_more(
    browser: Any, local_cluster: Local
) -> None:
    users = Paths(local_cluster.directory / "node1").rapi_users
    before = users.read_text()
    users.write_text(f"{before}typist pw @operator\n")
    context = browser.new_context(ignore_https_errors=True)
    try:
        page = context.new_page()
        page.goto(address(local_cluster, "serial"))
        page.fill("#user", "typist")
        page.fill("#password", "pw")
        page.click("button.primary")
        page.locator(".link.live").wait_for()
        with without_server(local_cluster):
            users.write_text(f"{before}typist pw read\n")
        page.locator(".login", has_text="Your session has ended").wait_for()
        page.fill("#user", "typist")
        page.fill("#password", "pw")
        page.click("button.primary")
        page.locator(".why", has_text="has none of the permissions").wait_for()
        page.locator(".link.closed").wait_for()
    finally:
        context.close()
        users.write_text(before)


def test_what_was_lost_is_taken_from_nobody(browser: Any, page: Any, local_cluster: Local) -> None:
    users = Paths(local_cluster.directory / "node1").rapi_users
    before = users.read_text()
    users.write_text(f"{before}typist pw @operator\n")
    context = browser.new_context(ignore_https_errors=True)
    try:
        open_console(page, local_cluster, "serial")
        page.context.set_offline(True)
        page.locator(".link.lost").wait_for()
        other = context.new_page()
        other.goto(address(local_cluster, "serial"))
        other.fill("#user", "typist")
        other.fill("#password", "pw")
        other.click("button.primary")
        other.locator(".who", has_text="You control it").wait_for()
        page.context.set_offline(False)
        page.locator(".who", has_text="typist controls it, you view only").wait_for()
        assert other.locator(".who").inner_text().startswith("You control it")
    finally:
        context.close()
        users.write_text(before)


def test_view_only_gives_up_control(page: Any, second: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    page.click("text=View only")
    page.locator(".who", has_text="Nobody controls it. You view only").wait_for()
    open_console(second, local_cluster, "serial", "view")
    second.locator(".who", has_text="Nobody controls it").wait_for()


def test_an_address_without_an_instance_is_explained(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "console.html")
    page.locator(".problem", has_text="?instance=NAME").wait_for()
    page.goto(local_cluster.url + "console.html?instance=nobody.example.com&kind=serial")
    page.locator(".why", has_text="nobody.example.com").wait_for()


def test_a_console_needs_a_log_in(browser: Any, local_cluster: Local) -> None:
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.goto(address(local_cluster, "serial", "view"))
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click("button.primary")
    page.locator(".link.live").wait_for()
    context.close()


def test_a_display_on_a_port_asks_for_its_password(
    page: Any, local_cluster: Local, tmp_path: Path
) -> None:
    name, secret = "console2.example.com", tmp_path / "password"
    secret.write_text("s3cret\n")
    local_cluster.run(
        "gnt-instance",
        "add",
        "-t",
        "file",
        "--disk",
        "0:size=8M",
        "-o",
        "bootsector+beat",
        "-n",
        "node3.example.com",
        "--no-nics",
        "-H",
        f"kvm:vnc_bind_address=127.0.0.1,vnc_password_file={secret}",
        name,
    )
    page.goto(local_cluster.url + f"instances/{name}")
    with page.context.expect_page() as opened:
        page.click("text=Screen")
    screen = opened.value
    screen.fill("dialog input", "wrong")
    screen.click("text=Send")
    screen.locator(".why", has_text="did not let you in").wait_for()
    screen.click("text=Reconnect")
    screen.fill("dialog input", "s3cret")
    screen.click("text=Send")
    screen.locator(".link.live").wait_for()
    wait_lit(screen, 500)
    screen.goto(address(local_cluster, "vnc", "view").replace(NAME, name))
    screen.fill("dialog input", "s3cret")
    screen.click("text=Send")
    screen.locator(".link.live").wait_for()
    wait_lit(screen, 500)
    screen.locator(".screen canvas").click()
    screen.keyboard.type("nobody-types-this")
    screen.goto(address(local_cluster, "serial").replace(NAME, name))
    wait_text(screen, "beat")
    assert "nobody" not in screen.evaluate("window.ganeti.read()")
    screen.close()


def test_a_migration_is_told_and_the_console_follows(page: Any, local_cluster: Local) -> None:
    name = "console3.example.com"
    local_cluster.run(
        "gnt-instance",
        "add",
        "-t",
        "sharedfile",
        "--disk",
        "0:size=8M",
        "-o",
        "bootsector+default",
        "-n",
        "node3.example.com",
        "--no-nics",
        name,
    )
    page.goto(address(local_cluster, "serial").replace(NAME, name))
    wait_text(page, name)
    page.evaluate(LISTEN)
    local_cluster.run("gnt-instance", "migrate", "-f", "-n", "node2.example.com", name)
    page.wait_for_function("window.told.some((text) => text.includes('moves to another node'))")
    page.locator(".link.live").wait_for()
    page.keyboard.type("still here")
    wait_text(page, "still here")


def test_a_console_ends_with_its_session(page: Any, local_cluster: Local) -> None:
    open_console(page, local_cluster, "serial")
    page.evaluate(
        """async () => { const s = await (await fetch('/2/sessions/current')).json();
        const headers = {'X-Ganeti-CSRF': s.csrf};
        await fetch('/2/sessions/current', {method: 'DELETE', headers}) }"""
    )
    page.locator(".why", has_text="your session has ended").wait_for(timeout=30_000)
    page.click("text=Reconnect")
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click("button.primary")
    page.locator(".link.live").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["serial", "vnc"])
def test_consoles_are_accessible(page: Any, local_cluster: Local, kind: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    open_console(page, local_cluster, kind, "view")
    found = Axe().run(page).response["violations"]
    serious = [
        (item["id"], [node["html"][:120] for node in item["nodes"]])
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
    assert serious == []
    page.set_viewport_size({"width": 390, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


CONTAINER = "container1.example.com"
TREE = """#!/bin/sh
set -eu
PATH=$PATH:/usr/sbin:/sbin
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/bin" "$tree/sbin" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/tmp"
cp "$(command -v busybox)" "$tree/bin/busybox"
for name in sh sleep echo cat hostname; do ln -s busybox "$tree/bin/$name"; done
cat > "$tree/sbin/init" <<'end'
#!/bin/sh
trap 'exit 0' PWR
while :; do /bin/sh -i < /dev/console > /dev/console 2>&1; sleep 1; done
end
chmod +x "$tree/sbin/init"
mkfs.ext4 -q -F -O ^has_journal -d "$tree" "$DISK_0_PATH"
"""


@needs_programs("lxc-start")
@needs_programs("busybox")
def test_a_shell_in_a_container_answers(page: Any, local_cluster: Local) -> None:
    for root in local_cluster.directory.glob("node*"):
        system = Paths(root).os_search_path[1] / "tree"
        system.mkdir(parents=True, exist_ok=True)
        for script in ("create", "export", "import", "rename"):
            (system / script).write_text(TREE if script == "create" else "#!/bin/sh\n")
            (system / script).chmod(0o755)
        (system / "ganeti_api_version").write_text("15\n")
    local_cluster.run("gnt-cluster", "modify", "--enabled-hypervisors", "kvm,lxc")
    local_cluster.run(
        "gnt-instance",
        "add",
        "-H",
        "lxc:num_ttys=0",
        "-t",
        "file",
        "--disk",
        "0:size=16M",
        "-o",
        "tree",
        "-n",
        "node2.example.com",
        "--no-nics",
        "-B",
        "memory=64M",
        CONTAINER,
    )
    page.goto(f"{local_cluster.url}instances/{CONTAINER}")
    with page.context.expect_page() as opened:
        page.locator(".page-head a", has_text="Serial console").click()
    shell = opened.value
    shell.locator(".link.live").wait_for()
    shell.locator(".screen").click()
    shell.keyboard.type("echo the answer is $((6 * 7)) on $(hostname)\n")
    wait_text(shell, f"the answer is 42 on {CONTAINER.partition('.')[0]}")
    take(shell, "console-container")
    shell.close()
    local_cluster.run("gnt-instance", "remove", "--force", "--shutdown-timeout=10", CONTAINER)
