"""What a new cluster asks when nobody says where an instance goes."""

from __future__ import annotations

import pytest

from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings


@pytest.mark.parametrize(("given", "asked"), [(None, "hail"), ("", ""), ("most-free", "most-free")])
def test_the_default_allocator_is_the_one_inside(given: str | None, asked: str) -> None:
    data = defaults.configuration(
        InitSettings(
            cluster_name="c.example.com", enabled_hypervisors=["fake"], default_iallocator=given
        ),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    assert data.cluster.default_iallocator == asked
