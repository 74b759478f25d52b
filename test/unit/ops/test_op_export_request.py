"""What an export may ask for, and how long it may take."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, with_cluster

from ganeti import errors
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.net import certs, cluster_trust
from ganeti.opcodes import wire
from ganeti.opcodes.backup import OpBackupExport
from ganeti.ops.planning import export_request

SECRET = "of both clusters"
PLACE = cluster_trust.DiskPlace("192.0.2.9", 5000, "magic")
REMOTE = {"mode": "remote", "target_node": [], "x509_key_name": [], "destination_x509_ca": "pem"}
VOLUME = Disk(uuid="a", dev_type=DiskTemplate.PLAIN, iv_name="disk/0", size=100)
OBJECT = base.replace(VOLUME, dev_type=DiskTemplate.RBD, iv_name="disk/1", size=23)


def export(**given: Any) -> OpBackupExport:
    values = {"instance_name": "web1", "target_node": "node2", **given}
    return wire.decode(OpBackupExport, values)


def test_tools_that_the_cluster_allows() -> None:
    of = with_cluster(config(), compression_tools=("gzip",))
    export_request.check_compression(of, "none")
    export_request.check_compression(of, "gzip")
    with pytest.raises(errors.OpPrereqError, match=r"'lzop' of compress; choose from none, gzip"):
        export_request.check_compression(of, "lzop")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"remove_instance": True, "long_sleep": True},
        {"zero_free_space": True, "zeroing_timeout_fixed": 0, "zeroing_timeout_per_mib": 0},
        {"shutdown": False},
        REMOTE,
    ],
)
def test_options_that_go_together(given: dict[str, Any]) -> None:
    export_request.check_options(export(**given))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"remove_instance": True, "shutdown": False}, "must be stopped first"),
        ({"long_sleep": True, "shutdown": False}, "--long-sleep .* no sense"),
        ({"zero_free_space": True, "shutdown": False}, "--zero-free-space needs"),
        ({"zeroing_timeout_fixed": 1}, "--zeroing-timeout-fixed makes sense only"),
        ({"zeroing_timeout_per_mib": 1}, "--zeroing-timeout-per-mib makes sense only"),
        ({"zero_free_space": True, "zeroing_timeout_fixed": -1}, "fixed is -1, and cannot be"),
        ({"target_node": []}, "target_node must be the name of a node in mode local"),
        ({"destination_x509_ca": "pem"}, "mode local takes no destination_x509_ca"),
        ({**REMOTE, "target_node": "node2"}, "must be a list with the place of each disk"),
        ({**REMOTE, "x509_key_name": None}, "mode remote needs x509_key_name"),
    ],
)
def test_options_that_exclude_each_other(given: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        export_request.check_options(export(**given))


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 600 + 25),
        ({"zeroing_timeout_fixed": 0}, 25),
        ({"zeroing_timeout_per_mib": 0}, 600),
        ({"zeroing_timeout_fixed": 10, "zeroing_timeout_per_mib": 2}, 10 + 246),
    ],
)
def test_seconds_for_zeroing(given: dict[str, Any], seconds: int) -> None:
    op = export(zero_free_space=True, **given)
    assert export_request.choose_zeroing_time(op, [VOLUME, OBJECT]) == seconds


def remote(**given: Any) -> OpBackupExport:
    pem = certs.self_signed("other.example.com").cert.decode()
    values = {
        **REMOTE,
        "x509_key_name": list(cluster_trust.sign_key_name(SECRET, "key-1")),
        "destination_x509_ca": cluster_trust.sign_certificate(SECRET, pem),
        "target_node": [list(cluster_trust.sign_place(SECRET, 0, PLACE))],
    }
    return export(**{**values, **given})


def test_a_remote_export_has_what_the_other_cluster_signed() -> None:
    key, pem, places = export_request.check_remote(remote(), SECRET, 1)
    assert key == "key-1"
    assert pem.startswith("-----BEGIN CERTIFICATE-----")
    assert places == [PLACE]
    with pytest.raises(errors.OpPrereqError, match=r"not signed with the domain secret"):
        export_request.check_remote(remote(), "another secret", 1)


@pytest.mark.parametrize("count", [0, 2])
def test_each_disk_has_a_place(count: int) -> None:
    text = f"has {count} disks, and the other cluster expects 1"
    with pytest.raises(errors.OpPrereqError, match=text):
        export_request.check_remote(remote(), SECRET, count)


def test_volumes_can_be_frozen_also_below_a_mirror() -> None:
    mirror = base.replace(VOLUME, dev_type=DiskTemplate.DRBD, children=(VOLUME, VOLUME))
    assert export_request.has_snapshots(VOLUME)
    assert export_request.has_snapshots(mirror)
    assert not export_request.has_snapshots(OBJECT)


@pytest.mark.parametrize(("running", "shutdown"), [(False, False), (True, True)])
def test_disks_without_writer_need_no_snapshot(running: bool, shutdown: bool) -> None:
    export_request.check_frozen([VOLUME, OBJECT], running=running, shutdown=shutdown)


def test_disks_that_a_guest_writes_to_must_be_frozen() -> None:
    export_request.check_frozen([VOLUME], running=True, shutdown=False)
    with pytest.raises(errors.OpPrereqError, match=r"runs, and disk/1 cannot be frozen"):
        export_request.check_frozen([VOLUME, OBJECT], running=True, shutdown=False)
