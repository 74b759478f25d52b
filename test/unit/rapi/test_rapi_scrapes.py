"""The text for Prometheus: what stands in it, and that many scrapers cost one text."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ganeti import errors
from ganeti.luxi.client import Client
from ganeti.rapi import exposition, scrapes
from ganeti.rapi.app import make_app
from ganeti.rapi.identity import Identity, list_permissions
from ganeti.rapi.scrapes import DESK, OLDEST, Desk, Requests, Text


def test_hostile_names_stay_in_their_label() -> None:
    name = 'a"} 1\nganeti_evil{x="\\'
    text = exposition.write([("ganeti_instance_vcpus", [[[name], 2]])]).decode()
    [family] = text_string_to_metric_families(text)
    [sample] = family.samples
    assert (sample.name, sample.labels) == ("ganeti_instance_vcpus", {"instance_name": name})


def test_histograms_and_counters_have_the_names_of_prometheus() -> None:
    counts = [0, 1, 1, 2, 2, 2, 2, 2, 3]
    text = exposition.write(
        [
            ("ganeti_rpc_duration_seconds", [[["node1"], counts, 2.5]]),
            ("ganeti_rpc_errors", [[["node1"], 7]]),
            ("ganeti_of_a_later_version", [[[], 1]]),
        ]
    ).decode()
    assert 'ganeti_rpc_errors_total{node_name="node1"} 7.0' in text
    assert 'ganeti_rpc_duration_seconds_bucket{le="+Inf",node_name="node1"} 3.0' in text
    assert "later" not in text


class FakeClock:
    def __init__(self) -> None:
        self.moment = 1000.0

    def now(self) -> float:
        return self.moment

    def monotonic(self) -> float:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += seconds


def test_ten_scrapers_at_once_need_one_text() -> None:
    made, ready = [], threading.Event()

    def make() -> bytes:
        ready.wait(5)
        made.append(1)
        return b"text"

    desk = Desk(make, FakeClock())
    found: list[Text] = []
    threads = [threading.Thread(target=lambda: found.append(desk.text())) for _ in range(10)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    desk.stop()
    assert [text.plain for text in found] == [b"text"] * 10
    assert len(made) == 1


def test_a_scrape_just_after_the_text_was_given_up_gets_a_whole_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scrapes, "PERIOD", 0.005)
    clock, late = FakeClock(), threading.Event()

    def make() -> bytes:
        if clock.moment > 1000.0:
            late.set()
        return b"text"

    desk = Desk(make, clock)
    desk.text()
    [thread] = [found for found in threading.enumerate() if found.name == "metrics"]
    clock.sleep(scrapes.INTEREST - 1)
    assert late.wait(10), "it is renewed while somebody may scrape"
    clock.sleep(2)
    thread.join(10)
    assert not thread.is_alive(), "nobody scrapes any more"
    assert desk.text().plain == b"text"
    desk.stop()


def test_an_old_text_is_not_served_while_the_master_is_away() -> None:
    clock, answers = FakeClock(), [b"text"]

    def make() -> bytes:
        if not answers:
            raise errors.NoMasterError("the master daemon does not answer")
        return answers.pop()

    desk = Desk(make, clock)
    assert desk.text().plain == b"text"
    assert desk.text().plain == b"text"
    clock.sleep(OLDEST)
    with pytest.raises(errors.NoMasterError):
        desk.text()
    desk.stop()


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=1.0", True),
        ("gzip;q=0", False),
        ("gzip; q=0.00, identity", False),
        ("br, identity", False),
        ("gzipped", False),
        (None, False),
    ],
)
def test_a_scraper_that_takes_gzip_gets_the_same_text_by_gzip(header, packed) -> None:
    made = b"# HELP a b\na 1.0\n" * 50
    desk = Desk(lambda: made, FakeClock())
    app = make_app(
        luxi=lambda: Client(Path("nowhere")),
        authenticate=lambda _header, _address: Identity("prometheus", frozenset({"metrics.read"})),
    )
    answers: list[tuple[str, dict[str, str]]] = []
    environ: dict[str, Any] = {DESK: desk}
    setup_testing_defaults(environ)
    environ["PATH_INFO"] = "/metrics"
    if header is not None:
        environ["HTTP_ACCEPT_ENCODING"] = header
    body = b"".join(app(environ, lambda status, found: answers.append((status, dict(found)))))
    desk.stop()
    [(status, headers)] = answers
    headers = {name.lower(): text for name, text in headers.items()}
    assert (status, headers["vary"]) == ("200 OK", "Accept-Encoding")
    assert (headers.get("content-encoding") == "gzip") is packed
    assert int(headers["content-length"]) == len(body)
    assert (gzip.decompress(body) if packed else body) == made


def test_requests_are_counted_by_the_path_of_the_table() -> None:
    requests = Requests()
    for name in ("web1", "web2"):
        requests.note("GET", "/2/instances/{instance_name}", "200", 0.01)
        assert name
    assert requests.report()["ganeti_api_requests"] == [
        [["GET", "/2/instances/{instance_name}", "200"], 2]
    ]


def test_scraping_is_a_permission_of_its_own() -> None:
    wanted = list_permissions("GET", "/metrics", ("read",))
    assert wanted == {"read", "metrics.read"}
    assert Identity("prometheus", frozenset({"metrics.read"})).has_any(wanted)
    assert not Identity("alice", frozenset({"instance.*"})).has_any(wanted)
