"""Memory that jobs are about to take: of two at the same time at least the later one knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ganeti import constants
from ganeti.config.job_claims import JobClaims, MemoryClaim
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.instance import Instance

STARTS = MemoryClaim(1, "n1", "job 1", 512, reserves=False)
RESERVES = MemoryClaim(2, "n1", "i2", 256, reserves=True)


def test_the_later_of_two_sees_the_earlier_and_no_other_node() -> None:
    claims = JobClaims()
    assert claims.claim_memory([STARTS]) == []
    assert claims.claim_memory([RESERVES]) == [STARTS]
    assert claims.claim_memory([replace(STARTS, job_id=3, node="n2")]) == []


def test_a_claim_ends_with_its_job() -> None:
    claims = JobClaims()
    claims.claim_memory([STARTS])
    claims.release(STARTS.job_id)
    assert claims.claim_memory([RESERVES]) == []


@pytest.mark.parametrize(
    ("instance", "reserves", "told"),
    [
        (None, True, False),
        (Instance(uuid="i2", forthcoming=True), True, True),
        (Instance(uuid="i2", forthcoming=True), False, True),
        # committed, but not started yet: only the claim knows
        (Instance(uuid="i2", name="web2"), False, False),
        (Instance(uuid="i2", name="web2"), True, True),
    ],
)
def test_what_is_on_record_is_not_counted_twice(
    instance: Instance | None, reserves: bool, told: bool
) -> None:
    cluster = Cluster(
        uuid="c",
        cluster_name="c",
        master_node="n",
        master_ip="192.0.2.1",
        master_netdev="lo",
        master_netmask=32,
    )
    known = {} if instance is None else {instance.uuid: instance}
    data = ConfigData(version=constants.CONFIG_VERSION, cluster=cluster, instances=known)
    assert replace(RESERVES, reserves=reserves).is_counted_by(Config(data)) is told
