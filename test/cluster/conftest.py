"""One three-node cluster for each test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster") / "c", 3)
    try:
        yield made
    finally:
        made.destroy()
