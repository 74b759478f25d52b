"""A cluster with template drbd begins on a node whose module is ready for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.doctor import examine, needs
from ganeti.model.config import Config
from ganeti.paths import Paths

HELPER = "sys/module/drbd/parameters/usermode_helper"
MODULE = "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: 473968AD625BA317874A57E\n"


def check_before_init(where: Paths, **settings: Any) -> None:
    """The checks of ``gnt-cluster init`` for a cluster with these settings."""
    given = {"enabled_disk_templates": ["drbd"], **settings}
    data = defaults.configuration(
        InitSettings(cluster_name="cluster.example.com", enabled_hypervisors=["fake"], **given),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    examine.refuse(examine.before_cluster(where, needs.derive(Config(data))))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    for path, text in ((HELPER, "/bin/true\n"), ("proc/drbd", MODULE)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    return Paths(tmp_path)


def test_a_helper_that_does_nothing_is_the_default(root: Paths) -> None:
    check_before_init(root)


def test_another_helper_of_the_module_is_refused(root: Paths) -> None:
    with pytest.raises(errors.OpPrereqError, match="has the user-mode helper /bin/true"):
        check_before_init(root, drbd_helper="/bin/false")


def test_another_version_of_the_module_is_refused(root: Paths) -> None:
    root.under("/proc/drbd").write_text("version: 9.2.4 (api:2/proto:86-121)\n")
    with pytest.raises(errors.OpPrereqError, match=r"DRBD 9\.2\.4 is loaded on this node"):
        check_before_init(root)


def test_no_module_is_said_unless_drbd_is_not_used(root: Paths) -> None:
    root.under("/proc/drbd").unlink()
    with pytest.raises(errors.OpPrereqError, match="module is not loaded on this node: "):
        check_before_init(root)
    check_before_init(root, enabled_disk_templates=["file"])
