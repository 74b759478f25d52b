"""Minors and ports of DRBD disks: nobody gets what another has, and what is free is used again."""

from __future__ import annotations

import config_samples as samples
import pytest

from ganeti import errors
from ganeti.config import drbd, verify
from ganeti.config.changes import Author, Draft
from ganeti.config.job_claims import JobClaims
from ganeti.config.store import Store
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate

A, B, C = "node-1", "node-2", "node-3"


def mirror(uuid: str, *logical_id: object, **more: object) -> Disk:
    return samples.disk(
        uuid,
        "web1",
        dev_type=DiskTemplate.DRBD,
        logical_id=logical_id,
        nodes=tuple(logical_id[:2]),
        **more,
    )


def with_disks(*disks: Disk) -> Config:
    table = {"disk-1": samples.disk("disk-1", "web1.example.com")}
    table |= {disk.uuid: disk for disk in disks}
    return samples.config(disks=table)


def test_lowest_free_minor_of_each_node() -> None:
    config = with_disks(
        mirror("d1", A, B, 11000, 0, 0, "s1"),
        mirror("d2", A, C, 11001, 2, 0, "s2"),
    )
    found = JobClaims().claim_minors([A, B, C], lambda: config, 1)
    assert found == [1, 1, 1]


def test_jobs_in_flight_do_not_share_a_minor() -> None:
    config = samples.config()
    claims = JobClaims()
    assert claims.claim_minors([A, B], lambda: config, 1) == [0, 0]
    assert claims.claim_minors([B, C], lambda: config, 2) == [1, 0]
    assert claims.claim_minors([A, A], lambda: config, 2) == [1, 2]
    claims.release(1)
    assert claims.claim_minors([A, B], lambda: config, 3) == [0, 0]


def test_forthcoming_disk_keeps_its_minor() -> None:
    config = with_disks(mirror("d1", A, B, 11000, 0, 0, "s1", forthcoming=True))
    assert JobClaims().claim_minors([A, B], lambda: config, 1) == [1, 1]


def test_port_is_given_with_the_disk_and_comes_back_with_it(store: Store) -> None:
    author = Author()
    disk = mirror("d1", A, B, 0, 0, 0, "s1")

    def add(draft: Draft) -> None:
        draft.put(draft.number_disk(disk))

    store.change("add", author, add)
    port = drbd.port(store.current.disks["d1"])
    assert port is not None
    assert port == store.current.cluster.highest_used_port

    def remove(draft: Draft) -> None:
        draft.remove_disk(draft.config.disks["d1"])

    store.change("remove", author, remove)
    assert store.current.cluster.tcpudp_port_pool == (port,)
    store.change("add", author, add)
    assert drbd.port(store.current.disks["d1"]) == port
    assert store.current.cluster.tcpudp_port_pool == ()


def test_other_disks_get_no_port(store: Store) -> None:
    disk = samples.disk("d9", "web1")
    store.change("add", Author(), lambda draft: draft.put(draft.number_disk(disk)))
    assert store.current.disks["d9"].logical_id == disk.logical_id


def test_all_ports_taken_is_said(store: Store) -> None:
    def exhaust(draft: Draft) -> None:
        draft.update_cluster(highest_used_port=14999)
        draft.allocate_port()

    with pytest.raises(errors.ConfigurationError, match="11000 to 14999"):
        store.change("ports", Author(), exhaust)


def test_verify_finds_what_would_mix_up_two_disks() -> None:
    config = with_disks(
        mirror("d1", A, B, 11000, 0, 0, "same"),
        mirror("d2", A, C, 11000, 0, 1, "same"),
        mirror("d3", C, C, 11002, 5, 6, "own"),
    )
    text = "\n".join(verify.problems(config))
    assert "DRBD minor 0 of node node1.example.com belongs to disks d1, d2" in text
    assert "disk d1 has the same DRBD secret as another disk" in text
    assert "both sides of disk d3 are on one node" in text
    assert "TCP port 11000 is used 2 times" in text


def test_secrets_differ() -> None:
    assert len({drbd.new_secret() for _ in range(50)}) == 50
    assert len(drbd.new_secret()) == 40
