"""A cluster with template drbd begins on a node whose module is ready for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.bootstrap import defaults, init
from ganeti.bootstrap.settings import InitSettings
from ganeti.model.cluster import Cluster
from ganeti.paths import Paths

HELPER = "sys/module/drbd/parameters/usermode_helper"


def cluster(**settings: Any) -> Cluster:
    given = {"enabled_disk_templates": ["drbd", "plain"], "vg_name": "xenvg", **settings}
    data = defaults.configuration(
        InitSettings(cluster_name="cluster.example.com", enabled_hypervisors=["fake"], **given),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    return data.cluster


@pytest.fixture
def root(tmp_path: Path) -> Paths:
    (tmp_path / HELPER).parent.mkdir(parents=True)
    (tmp_path / HELPER).write_text("/bin/true\n")
    return Paths(tmp_path)


def test_a_helper_that_does_nothing_is_the_default(root: Paths) -> None:
    assert cluster().drbd_usermode_helper == "/bin/true"
    assert cluster(enabled_disk_templates=["file"]).drbd_usermode_helper is None
    init._mirrors(root, cluster())


def test_another_helper_of_the_module_is_refused(root: Paths) -> None:
    with pytest.raises(errors.OpPrereqError, match="has the user-mode helper /bin/true"):
        init._mirrors(root, cluster(drbd_helper="/bin/false"))


def test_no_module_is_said_unless_drbd_is_not_used(root: Paths) -> None:
    root.under(f"/{HELPER}").unlink()
    with pytest.raises(errors.OpPrereqError, match="module is not loaded"):
        init._mirrors(root, cluster())
    init._mirrors(root, cluster(enabled_disk_templates=["file"]))
