"""The master goes away under an open page: killed, frozen, restarted, on another node."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Local, open_page
from test_ui_consoles import LISTEN, LOST
from test_ui_pages import fill, take

from ganeti import constants

NAME = "held1.example.com"


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A cluster whose remote API listens on the cluster's address, which goes with the master."""
    made = Local(tmp_path_factory.mktemp("failover") / "c", "fake")
    try:
        facts = json.loads((made.directory / "local-cluster.json").read_text())
        for root in made.directory.glob("node*"):
            default = root / "etc/default/ganeti"
            default.parent.mkdir(parents=True, exist_ok=True)
            default.write_text(f"RAPI_ARGS=-b {facts['cluster_address']}\n")
        made.run("ganeti-daemon-util", "stop", constants.RAPI)
        made.run("ganeti-daemon-util", "start", constants.RAPI)
        made.env["RAPI_URL"] = f"https://{facts['cluster_address']}:{facts['port_base'] + 1}"
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
            "node3.example.com",
            "--no-nics",
            NAME,
        )
        yield made
    finally:
        made.tool("destroy")


@pytest.fixture
def page(browser: Any, moving: Local) -> Iterator[Any]:
    with open_page(browser, moving) as made:
        yield made


def measure_until_shown(page: Any, what: str) -> float:
    """Seconds until the page shows it."""
    began = time.monotonic()
    page.locator(what).wait_for()
    return time.monotonic() - began


def log_in_again(page: Any, local_cluster: Local) -> None:
    page.locator(".login.over").wait_for()
    page.fill("#user", local_cluster.env["RAPI_USER"])
    page.fill("#password", local_cluster.env["RAPI_PASSWORD"])
    page.click(".login.over button.primary")
    page.locator(".link.live").wait_for()


def test_a_master_daemon_that_dies_is_told_and_missed_by_nobody(page: Any, moving: Local) -> None:
    page.goto(f"{moving.url}instances/{NAME}")
    page.locator(".facts").first.wait_for()
    os.kill(moving.pid(constants.MASTERD), signal.SIGKILL)
    print(f"\nmaster daemon killed: told after {measure_until_shown(page, '.link.away'):.1f} s")
    moving.run("ganeti-daemon-util", "start", constants.MASTERD)
    moving.run("gnt-instance", "add-tags", NAME, "made-while-away")
    page.locator(".link.live").wait_for()
    page.locator(".tag", has_text="made-while-away").wait_for()


def test_a_server_that_says_nothing_more_counts_as_lost(page: Any, moving: Local) -> None:
    pid = moving.pid(constants.RAPI)
    os.kill(pid, signal.SIGSTOP)
    try:
        print(f"\nserver frozen: told after {measure_until_shown(page, '.link.lost'):.1f} s")
    finally:
        os.kill(pid, signal.SIGCONT)
    page.locator(".link.live").wait_for()


def test_a_console_says_that_its_node_is_down(page: Any, moving: Local) -> None:
    page.goto(f"{moving.url}console.html?instance={NAME}&kind=serial")
    page.locator(".link.live").wait_for()
    moving.tool("kill-node", "node3.example.com")
    page.locator(".why", has_text="node3.example.com").wait_for()
    print(f"\n{page.inner_text('.why')}")
    take(page, "console-node-down")
    page.click("text=Reconnect")
    page.locator(".why", has_text="node3.example.com").wait_for()
    moving.tool("start-node", "node3.example.com")
    moving.run("gnt-instance", "startup", NAME)
    page.click("text=Reconnect")
    page.locator(".link.live").wait_for()


def test_another_master_takes_over_under_the_page(page: Any, moving: Local) -> None:
    page.goto(f"{moving.url}instances/{NAME}")
    page.click(".page-head .actions summary")
    page.click(".page-head >> text=Add tags")
    fill(page, tag="typed-before")
    moving.tool("kill-node", "node1.example.com")
    print(f"\nmaster killed: told after {measure_until_shown(page, '.link.lost'):.1f} s")
    take(page, "master-lost")
    moving.run("gnt-cluster", "master-failover", node="node2")
    moving.run("gnt-instance", "add-tags", NAME, "made-by-the-new-master", node="node2")
    log_in_again(page, moving)
    assert page.input_value("#f-tag") == "typed-before"
    page.locator(".tag", has_text="made-by-the-new-master").wait_for()
    page.locator(".dock-job", has_text="TAGS_SET").first.wait_for()
    page.click(".drawer button[type=submit]")
    page.locator(".tag", has_text="typed-before").wait_for()
    page.goto(moving.url)
    page.locator(".page-head", has_text="master node2").wait_for()
    page.locator(".changes", has_text="master-failover").wait_for()
    page.locator(".overview", has_text="node1").wait_for()


def test_a_console_opens_again_at_the_new_master(page: Any, moving: Local) -> None:
    page.goto(f"{moving.url}console.html?instance={NAME}&kind=serial")
    page.locator(".link.live").wait_for()
    moving.tool("start-node", "node1.example.com")
    page.evaluate(LISTEN)
    moving.run("gnt-cluster", "master-failover", node="node3")
    page.locator(".login", has_text="the console opens by itself").wait_for()
    told = page.evaluate("window.told")
    assert LOST in told
    assert any("remote API stops" in text for text in told), told
    page.fill("#user", moving.env["RAPI_USER"])
    page.fill("#password", moving.env["RAPI_PASSWORD"])
    page.click("button.primary")
    page.locator(".link.live").wait_for()


def test_who_came_by_the_name_of_a_node_is_led_to_the_cluster(page: Any, moving: Local) -> None:
    elsewhere = page.get_by_role("link", name="go to cluster.example.com")
    os.kill(moving.pid(constants.RAPI, "node3"), signal.SIGKILL)
    elsewhere.wait_for()
    assert elsewhere.get_attribute("href").startswith("https://cluster.example.com:")
    moving.run("ganeti-daemon-util", "start", constants.RAPI, node="node3")
    log_in_again(page, moving)
    assert elsewhere.count() == 0
