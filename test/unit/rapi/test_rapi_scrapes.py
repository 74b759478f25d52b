"""The text for Prometheus: what stands in it, and that many scrapers cost one text."""

from __future__ import annotations

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ganeti import errors
from ganeti.rapi import exposition
from ganeti.rapi.identity import Identity, list_permissions
from ganeti.rapi.scrapes import OLDEST, Desk, Requests


def test_hostile_names_stay_in_their_label() -> None:
    name = 'a"} 1\nganeti_evil{x="\\'
    text = exposition.write({"ganeti_instance_vcpus": [[[name], 2]]}).decode()
    [family] = text_string_to_metric_families(text)
    [sample] = family.samples
    assert (sample.name, sample.labels) == ("ganeti_instance_vcpus", {"instance_name": name})


def test_histograms_and_counters_have_the_names_of_prometheus() -> None:
    counts = [0, 1, 1, 2, 2, 2, 2, 2, 3]
    text = exposition.write(
        {
            "ganeti_rpc_duration_seconds": [[["node1"], counts, 2.5]],
            "ganeti_rpc_errors": [[["node1"], 7]],
            "ganeti_of_a_later_version": [[[], 1]],
        }
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
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(desk.text())) for _ in range(10)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    desk.stop()
    assert found == [b"text"] * 10
    assert len(made) == 1


def test_an_old_text_is_not_served_while_the_master_is_away() -> None:
    clock, answers = FakeClock(), [b"text"]

    def make() -> bytes:
        if not answers:
            raise errors.NoMasterError("the master daemon does not answer")
        return answers.pop()

    desk = Desk(make, clock)
    assert desk.text() == b"text"
    assert desk.text() == b"text"
    clock.sleep(OLDEST)
    with pytest.raises(errors.NoMasterError):
        desk.text()
    desk.stop()


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
