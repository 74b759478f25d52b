"""A person's way through the interface, on a real cluster with a guest."""

from __future__ import annotations

import statistics
import urllib.parse
from typing import Any

import pytest
from conftest import HERE, Local, log_in, open_page

NAME = "ui1.example.com"
PICTURES = HERE / "build" / "ui"


def fill(page: Any, **values: str) -> None:
    for name, value in values.items():
        page.fill(f"[id='f-{name.replace('__', '-')}']", value)


def submit(page: Any) -> None:
    page.click(".drawer button[type=submit]")
    page.locator(".drawer").wait_for(state="detached")


def watch_end(page: Any, summary: str, status: str = "success") -> None:
    row = page.locator(".dock-job", has_text=summary).first
    row.locator(".status", has_text=status).wait_for(timeout=60_000)


def open_new(page: Any, local_cluster: Local, name: str) -> None:
    fill(page, name=name, os="bootsector+beat", disks__0__size="8M", pnode="node2.example.com")
    page.select_option("#f-disk_template", "sharedfile" if name == NAME else "file")
    assert f"gnt-instance {'reserve' if name != NAME else 'add'}" in page.inner_text(".same")
    assert '"name":"' + name in page.inner_text(".same")


def test_create_and_watch_the_job(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "instances")
    page.click("text=Create instance")
    open_new(page, local_cluster, NAME)
    page.click("text=Dry run")
    page.locator(".note", has_text="found no problem").wait_for(timeout=30_000)
    submit(page)
    watch_end(page, f"INSTANCE_CREATE({NAME})")
    page.locator(".messages", has_text="creating instance disks").wait_for()
    row = page.locator(".grid-row", has_text=NAME)
    row.locator(".status", has_text="running").wait_for()
    delays = page.evaluate("window.ganeti.delays")
    print(f"\nevent to screen: median {statistics.median(delays):.0f} ms of {len(delays)}")
    assert statistics.median(delays) < 300


def test_a_hostile_tag_is_only_text(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + f"instances/{NAME}")
    console = page.locator(".page-head a", has_text="Serial console")
    assert f"/ui/console.html?instance={NAME}&kind=serial" in console.get_attribute("href")
    before = page.evaluate("document.querySelectorAll('script, img').length")
    local_cluster.run("gnt-instance", "add-tags", NAME, "a@b.c+*/:x")
    page.locator(".tag", has_text="a@b.c+*/:x").wait_for()
    local_cluster.run("gnt-instance", "reboot", "--reason", "<img src=x onerror=alert(1)>", NAME)
    watch_end(page, f"INSTANCE_REBOOT({NAME})")
    assert page.evaluate("document.querySelectorAll('script, img').length") == before


HOSTILE = "<img src=x onerror=alert(1)>\"'`${alert(1)}"


def test_hostile_answers_are_only_text(page: Any, local_cluster: Local) -> None:
    """What a server would never keep, as the answer of a query."""

    def spoil(route: Any) -> None:
        response = route.fetch()
        if response.status != 200:  # there is none of that name
            route.fulfill(response=response)
            return
        answer = response.json()
        names = [field["name"] for field in answer["fields"]]
        for name in ("name", "os", "snodes", "tags", "nic.ips"):
            if name in names:
                value = [HOSTILE] if name in ("snodes", "tags", "nic.ips") else HOSTILE
                for row in answer["data"]:
                    row[names.index(name)] = [0, value]
        route.fulfill(json=answer)

    page.route("**/2/query/instance", spoil)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for path in ("instances", "map", f"instances/{urllib.parse.quote(HOSTILE, safe='')}"):
        page.goto(local_cluster.url + path)
        page.locator(".grid-row, .piece, dl", has_text="<img").first.wait_for()
        assert page.locator("main img, main script").count() == 0
    page.click(".page-head >> text=Modify")
    page.locator(".drawer h2", has_text="<img").wait_for()
    assert "'\\''" in page.inner_text(".same")  # quoted for a shell
    assert dialogs == []


def node_of(local_cluster: Local, name: str) -> str:
    return local_cluster.run("gnt-instance", "list", "--no-headers", "-o", "pnode", name).strip()


def test_migrate(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + f"instances/{NAME}")
    page.click(".page-head >> text=Migrate")
    assert "keeps running" in page.inner_text(".consequence")
    fill(page, target_node="node3.example.com")
    assert f"gnt-instance migrate --target-node node3.example.com {NAME}" in page.inner_text(
        ".same"
    )
    submit(page)
    watch_end(page, f"INSTANCE_MIGRATE({NAME})")
    page.locator(".messages", has_text="memory transferred").wait_for()
    page.locator(".facts a", has_text="node3").wait_for()
    assert node_of(local_cluster, NAME) == "node3.example.com"
    page.locator(".changes", has_text="primary_node").first.wait_for()


def test_drag_on_the_map_migrates(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "map")
    target = page.locator(".map-node", has_text="node1")
    page.locator("button.piece", has_text="ui1").drag_to(target)
    assert page.input_value("#f-target_node") == "node1.example.com"
    submit(page)
    target.locator("button.piece", has_text="ui1").wait_for(timeout=60_000)
    assert node_of(local_cluster, NAME) == "node1.example.com"
    page.locator("button.piece", has_text="ui1").click()
    page.locator(".map-node.fits .verdict", has_text="score").first.wait_for()
    take(page, "map-held")


def test_a_plan_names_where_it_would_go(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "instances")
    page.click("text=Create instance")
    open_new(page, local_cluster, NAME)
    page.click(".buttons >> text=Plan")
    page.locator(".plan", has_text="It would go to node").wait_for()
    page.locator("#f-beparams button").click()
    page.locator("#f-beparams input").nth(0).fill("memory")
    page.locator("#f-beparams input").nth(0).blur()
    page.locator("#f-beparams input").nth(1).fill("900000")
    page.click(".buttons >> text=Plan")
    page.locator(".plan", has_text="No node has room").wait_for()
    assert "MiB of memory" in page.inner_text(".plan")
    assert "It would fit if you reduce its memory" in page.inner_text(".plan")


def test_why_a_job_waits(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "jobs")
    local_cluster.run("gnt-debug", "delay", "--submit", "-n", "node1.example.com", "15")
    local_cluster.run(
        "gnt-node", "modify", "--submit", "--drained=no", "--force", "node1.example.com"
    )
    waiting = page.locator(".dock-job", has_text="NODE_SET_PARAMS").first
    waiting.locator(".why").wait_for(timeout=10_000)
    waiting.click()
    page.locator(".chain .box").nth(1).wait_for()
    page.locator(".chain", has_text="the lock node/node1.example.com").wait_for()
    take(page, "why")
    page.emulate_media(color_scheme="dark")
    take(page, "why-dark")
    page.locator(".chain a").nth(1).focus()
    page.keyboard.press("Enter")
    page.locator("h1 .status", has_text="running").wait_for()
    page.click(".dock .job-buttons button")
    watch_end(page, "NODE_SET_PARAMS", "canceled")


def test_reserve_and_commit(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "reservations")
    page.click("text=Reserve capacity")
    open_new(page, local_cluster, "later1.example.com")
    submit(page)
    watch_end(page, "INSTANCE_CREATE(later1.example.com)")
    page.goto(local_cluster.url + "reservations/later1.example.com")
    page.click(".page-head >> text=Commit")
    submit(page)
    page.goto(local_cluster.url + "instances")
    row = page.locator(".grid-row", has_text="later1.example.com")
    row.locator(".status", has_text="running").wait_for(timeout=60_000)


def test_snapshots_are_made_reverted_and_removed(page: Any, local_cluster: Local) -> None:
    name = "later1.example.com"
    page.goto(local_cluster.url + f"instances/{name}")
    page.click(".page-head >> text=Shut down")
    submit(page)
    watch_end(page, f"INSTANCE_SHUTDOWN({name})")
    page.click("text=Create snapshot")
    fill(page, name="before")
    assert f"gnt-instance snapshot create {name} before" in page.inner_text(".same")
    submit(page)
    watch_end(page, f"SNAPSHOT_CREATE({name})")
    row = page.locator("tr", has_text="before")
    row.locator("text=Revert").click()
    assert "written since is lost" in page.inner_text(".consequence")
    submit(page)
    watch_end(page, f"SNAPSHOT_REVERT({name})")
    row.locator("text=Remove").click()
    page.fill("#sure", "before")
    submit(page)
    watch_end(page, f"SNAPSHOT_REMOVE({name})")
    row.wait_for(state="detached")


def test_backups_are_made_verified_and_restored(page: Any, local_cluster: Local) -> None:
    name, copy = "later1.example.com", "copy1.example.com"
    page.goto(local_cluster.url + "backups")
    page.click("text=Back up")
    fill(page, instance_name=name)
    assert f"gnt-backup run {name}" in page.inner_text(".same")
    submit(page)
    watch_end(page, f"BACKUP_RUN({name})")
    row = page.locator(".grid-row", has_text="later1")
    row.locator(".status", has_text="not verified").wait_for()
    row.locator("a").first.click()
    page.click(".page-head >> text=Verify")
    submit(page)
    watch_end(page, f"BACKUP_VERIFY({name})")
    page.locator(".page-head .status", has_text="ok").wait_for()
    take(page, "backup")
    page.locator(".page-head button", has_text="Restore").first.click()
    assert "written since is lost" in page.inner_text(".consequence")
    assert "gnt-backup restore --backup 20" in page.inner_text(".same")
    submit(page)
    watch_end(page, f"BACKUP_RESTORE({name})")
    page.click(".page-head >> text=Restore to a new instance")
    fill(page, name=copy, pnode="node3.example.com")
    assert f"gnt-backup restore --as {copy}" in page.inner_text(".same")
    submit(page)
    watch_end(page, f"INSTANCE_CREATE({copy})")
    local_cluster.run("gnt-instance", "remove", "--force", copy)
    local_cluster.run("gnt-backup", "schedule", "--every=0.001", name)
    page.goto(local_cluster.url)
    page.locator(".overview", has_text="Backups are late").wait_for()
    local_cluster.run("gnt-backup", "schedule", "--every=0", name)


def test_what_would_happen_if_a_node_died(page: Any, local_cluster: Local) -> None:
    local_cluster.run("gnt-instance", "migrate", "-f", "-n", "node3.example.com", NAME)
    page.goto(local_cluster.url + "nodes/node3.example.com")
    panel = page.locator(".panel", has_text="If this node died")
    panel.get_by_role("button", name="Show what happens").click()
    panel.locator(".moments", has_text="auto_fence_after is not set").wait_for()
    panel.get_by_text("No instance starts elsewhere").wait_for()
    panel.locator("li", has_text="ui1 tag ganeti:watcher:autorepair:failover is missing").wait_for()
    local_cluster.run("gnt-instance", "modify", "-B", "ha=failover", NAME)
    local_cluster.run("gnt-cluster", "modify", "--auto-fence-after=300")
    try:
        panel.get_by_role("button", name="Show what happens").click()
        panel.locator(".moments", has_text="nothing can prove its death").wait_for()
        panel.get_by_text("After gnt-node fence --confirm these start elsewhere").wait_for()
        panel.locator("li", has_text="ui1 → node").wait_for()
        page.goto(local_cluster.url + "recovery")
        page.locator(".facts", has_text="after 5 min 0 s").wait_for()
        row = page.locator("tr", has_text="node3")
        row.get_by_text("never fenced: nothing can prove its death").wait_for()
        page.click("text=Pause recovery")
        fill(page, duration="3600")
        assert "gnt-cluster recovery pause 3600" in page.inner_text(".same")
        submit(page)
        page.locator(".facts", has_text="Recovery pauses until").wait_for()
        row.get_by_text("is not fenced: recovery pauses").wait_for()
        page.click("text=Continue recovery")
        assert "gnt-cluster recovery continue" in page.inner_text(".same")
        submit(page)
        row.get_by_text("never fenced: nothing can prove its death").wait_for()
    finally:
        local_cluster.run("gnt-cluster", "recovery", "continue")
        local_cluster.run("gnt-cluster", "modify", "--auto-fence-after=0")
        local_cluster.run("gnt-instance", "modify", "-B", "ha=default", NAME)


def test_a_notification_is_added_tried_and_removed(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "notifications")
    page.locator(".empty", has_text="Nothing here").wait_for()
    page.click("text=Add notification")
    fill(page, name="pager", command="none")
    assert "gnt-cluster notify add" in page.inner_text(".same")
    submit(page)
    page.locator(".grid-row", has_text="pager").wait_for()
    page.click(".grid-row a")
    page.click("text=Send a test")
    submit(page)
    watch_end(page, "NOTIFICATION_TEST", "error")
    page.click(".page-head >> text=Remove")
    page.locator(".consequence", has_text="messages that wait are dropped").wait_for()
    page.fill("#sure", "pager")
    submit(page)
    page.locator(".empty", has_text="There is no such object").wait_for()
    page.goto(local_cluster.url + "notifications")
    page.locator(".empty", has_text="Nothing here").wait_for()


def test_a_removed_instance_leaves_the_list(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "instances")
    page.locator(".grid-row", has_text="later1.example.com").wait_for()
    local_cluster.run("gnt-instance", "remove", "--force", "later1.example.com")
    page.locator(".grid-row", has_text="later1.example.com").wait_for(state="detached")


def test_a_revoked_session_keeps_the_form(page: Any, browser: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "instances")
    page.click("text=Create instance")
    fill(page, name="kept.example.com")
    page.evaluate(
        """async () => { const s = await (await fetch('/2/sessions/current')).json();
        const headers = {'X-Ganeti-CSRF': s.csrf};
        await fetch('/2/sessions/current', {method: 'DELETE', headers}) }"""
    )
    page.locator(".login.over").wait_for()
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click(".login.over button.primary")
    page.locator(".login.over").wait_for(state="detached")
    assert page.input_value("#f-name") == "kept.example.com"


def test_a_log_in_in_another_window_counts_here(page: Any, local_cluster: Local) -> None:
    page.goto(local_cluster.url + "instances")
    page.click("text=Create instance")
    open_new(page, local_cluster, NAME)
    page.context.clear_cookies()
    page.click(".buttons >> text=Dry run")
    page.locator(".login.over").wait_for()
    other = page.context.new_page()
    log_in(other, local_cluster)
    page.locator(".login.over").wait_for(state="detached")
    page.locator(".link.live").wait_for()
    assert page.input_value("#f-name") == NAME


def test_a_lost_connection_shows_and_heals(page: Any, local_cluster: Local) -> None:
    local_cluster.run("gnt-instance", "add-tags", NAME, "before")
    page.goto(local_cluster.url + f"instances/{NAME}")
    page.locator(".tag", has_text="before").wait_for()
    page.context.set_offline(True)
    page.locator(".link.lost").wait_for()
    local_cluster.run("gnt-instance", "add-tags", NAME, "while-away")
    page.context.set_offline(False)
    page.locator(".link.live").wait_for(timeout=30_000)
    page.locator(".tag", has_text="while-away").wait_for()


#: What is on a page and can have the focus, which a listener notes as soon as it has it.
WALK = """() => {
  const all = "a[href], button:enabled, input:enabled, select, textarea, summary, [tabindex='0']";
  const seen = new Set(), unmarked = [];
  const say = (one) => one.outerHTML.slice(0, 120);
  addEventListener("focusin", (event) => {
    seen.add(event.target);
    if (getComputedStyle(event.target).outlineStyle === "none") unmarked.push(say(event.target));
  });
  const places = () => [...document.querySelectorAll(all)].filter((one) => one.checkVisibility());
  const left = () => places().filter((one) => !seen.has(one)).map(say);
  window.walk = { places: () => places().length, reached: () => seen.size, left, unmarked };
}"""
PAGES = {
    "overview": "",
    "map": "map",
    "instances": "instances",
    "instance": f"instances/{NAME}",
    "nodes": "nodes",
    "node": "nodes/node2.example.com",
    "disks": "disks",
    "backups": "backups",
    "recovery": "recovery",
    "jobs": "jobs",
    "sessions": "sessions",
    "os": "os",
}


def take(page: Any, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(PICTURES / f"{name}.png"))


#: Kinds whose list and whose first object are pages beside those.
OTHERS = (
    "groups",
    "networks",
    "reservations",
    "images",
    "exports",
    "filters",
    "notifications",
    "jobs",
    "disks",
    "os",
)


@pytest.fixture(scope="module")
def every_page(local_cluster: Local, browser: Any) -> dict[str, str]:
    """Paths of the lists of all kinds, and of an object of each kind that has one."""
    local_cluster.run("gnt-network", "add", "--network=198.51.100.0/24", "net1")
    local_cluster.run("gnt-filter", "add", "--predicates", '[["jobid", [">", "id", 100000]]]')
    local_cluster.run(
        "gnt-instance",
        "reserve",
        "-t",
        "file",
        "--disk",
        "0:size=8M",
        "-o",
        "noop",
        "-n",
        "node2.example.com",
        "--no-nics",
        "later2.example.com",
    )
    for name, node, tags in (("web1", 1, "web,prod"), ("web2", 2, "web,prod"), ("db1", 3, "db")):
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
            f"node{node}.example.com",
            "--no-nics",
            "--no-start",
            "--tags",
            tags,
            f"{name}.example.com",
        )
    found = dict(PAGES)
    with open_page(browser, local_cluster) as page:
        for kind in OTHERS:
            found[kind] = kind
            go(page, local_cluster, kind)
            link = page.locator(".grid-row a").first
            if link.count():
                found[f"{kind}-one"] = str(link.get_attribute("href")).removeprefix("/ui/")
    return found


def go(page: Any, local_cluster: Local, path: str) -> None:
    """Open a page, until it shows what it has."""
    page.goto(local_cluster.url + path)
    page.locator(".link.live").wait_for()
    page.wait_for_load_state("load")
    page.locator(".panel, .grid-head, .rack").first.wait_for()
    page.wait_for_timeout(600)


def violations(page: Any, name: str) -> list[tuple[str, str, list[str]]]:
    """What axe finds serious."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (name, found["id"], [node["html"][:120] for node in found["nodes"][:3]])
        for found in Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(
    page: Any, local_cluster: Local, every_page: dict[str, str], scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    serious = []
    for name, path in every_page.items():
        go(page, local_cluster, path)
        if name in PAGES:
            take(page, f"{name}-{scheme}")
        serious += violations(page, name)
    go(page, local_cluster, "instances")
    page.click("text=Create instance")
    page.locator(".drawer .field").first.wait_for()
    fill(page, name="web2.example.com")
    take(page, f"create-{scheme}")
    serious += violations(page, "create")
    page.context.clear_cookies()
    page.reload()
    page.locator("#user").wait_for()
    serious += violations(page, "log in")
    assert serious == []


def test_each_page_is_walked_by_keyboard(
    page: Any, local_cluster: Local, every_page: dict[str, str]
) -> None:
    """The tab key reaches everything that can be done, and shows where it is."""
    steps = 0
    for name, path in every_page.items():
        go(page, local_cluster, path)
        page.evaluate(WALK)
        # More than once: jobs come meanwhile, and a list draws the rows that the focus scrolls to.
        for _round in range(5):
            for _ in range(page.evaluate("window.walk.places()") + 5):
                page.keyboard.press("Tab")
            if not (left := page.evaluate("window.walk.left()")):
                break
        assert left == [], name
        assert page.evaluate("window.walk.unmarked") == [], name
        steps += page.evaluate("window.walk.reached()")
    print(f"\n{len(every_page)} pages, {steps} places reached by the tab key")


def test_a_form_keeps_the_keyboard_and_gives_it_back(page: Any, local_cluster: Local) -> None:
    go(page, local_cluster, f"instances/{NAME}")
    more = page.locator(".page-head .actions summary")
    more.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".drawer").wait_for()
    for _ in range(60):
        assert page.evaluate("!document.activeElement.closest('.frame')")
        page.keyboard.press("Tab")
    page.locator(".drawer").focus()
    page.keyboard.press("Escape")
    page.locator(".drawer").wait_for(state="detached")
    assert more.evaluate("(one) => one === document.activeElement")
    go(page, local_cluster, "map")
    page.locator("button.piece", has_text="ui1").focus()
    page.keyboard.press("Enter")
    to = page.get_by_role("button", name="Migrate ui1 to node3")
    to.focus()
    page.keyboard.press("Enter")
    assert page.input_value("#f-target_node") == "node3.example.com"


def test_a_narrow_screen_needs_no_sideways_scrolling(page: Any, local_cluster: Local) -> None:
    page.set_viewport_size({"width": 390, "height": 780})
    for name, path in PAGES.items():
        go(page, local_cluster, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        take(page, f"{name}-narrow")
    page.click(".burger")
    page.click("nav >> text=Map")
    page.locator(".rack").wait_for()


def test_another_session_is_revoked(page: Any, browser: Any, local_cluster: Local) -> None:
    other = browser.new_context(ignore_https_errors=True)
    second = other.new_page()
    log_in(second, local_cluster)
    page.goto(local_cluster.url + "sessions")
    page.locator("td button.danger").first.wait_for()
    count = page.locator("td button.danger").count()
    for _ in range(count):
        page.locator("td button.danger").first.click()
        page.wait_for_timeout(300)
    second.goto(local_cluster.url)
    second.locator(".login").wait_for()
    other.close()
