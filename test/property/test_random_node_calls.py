"""Whatever a caller sends, a node daemon refuses it in words or does it; no bug shows.

What would act on this machine or wait is left out, programs of the system are not found, and of
the drivers only those that stay below the root of the test are named.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_node import LocalNode
from random_json import odd, spoiled

from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.server import BUG_TEXT, RpcApp
from ganeti.rpc.wire import specs

_LEFT_OUT = {
    "node_powercycle",
    "node_leave_cluster",
    "node_stop_master",
    "node_activate_master_ip",
    "node_deactivate_master_ip",
    "node_change_master_netmask",
    "test_delay",
    "disk_receive",
    "disk_send",
    "drbd_wait_sync",
}
#: At most so many requests and seconds.
_REQUESTS, _SECONDS = 10_000, 9.0
_SEED = 20261122

UUID = "99999999-2222-3333-4444-555555555555"


def samples(paths: Paths) -> dict[str, Any]:
    """Valid values by the name of a type."""
    disk = {
        "uuid": UUID,
        "dev_type": "file",
        "iv_name": "disk/0",
        "size": 4,
        "logical_id": ["loop", str(paths.file_storage / "web1.example.com" / "disk0")],
    }
    nic = {
        "uuid": UUID,
        "mac": "aa:00:00:11:22:33",
        "ip": None,
        "nicparams": {"mode": "bridged", "link": "br0", "vlan": ""},
    }
    instance = {
        "uuid": UUID,
        "name": "web1.example.com",
        "primary_node": "node1-uuid",
        "os": "noop",
        "hypervisor": "fake",
        "hvparams": {"migration_mode": "live"},
        "beparams": {"maxmem": 256, "minmem": 128, "vcpus": 2},
        "osparams": {},
        "nics": [nic],
        "disks_info": [disk],
        "run_epoch": [1, 1],
        "tags": ["a"],
    }
    volume = {**disk, "dev_type": "plain", "logical_id": ["xenvg", f"{UUID}.disk0"]}
    mirror = {
        **disk,
        "dev_type": "drbd",
        "children": [volume, volume],
        "params": {"net-custom": ""},
        "logical_id": ["node1", "node2", 11000, 0, 0, "secret"],
    }
    right = {"uuid": UUID, "name": "web1.example.com", "epoch": [1, 2], "state": "gone"}
    place = {"repository": "", "instance": "web1.example.com", "id": "20261124-020000"}
    return {
        "NodeDisk": (disk, disk, volume, mirror),
        "NodeInstance": instance,
        "InstanceMetadata": {
            "uuid": UUID,
            "name": "web1.example.com",
            "nics": [nic],
            "osparams_public": {"a": "b"},
        },
        "RunRight": right,
        "MasterNetwork": {"uuid": UUID, "ip": "192.0.2.9", "netmask": 32, "netdev": "lo"},
        "ReplicaUpdate": {
            "epoch": 1,
            "sequence": 1,
            "base": 0,
            "serial": 1,
            "records": ["a"],
            "files": {"job-5": "{}"},
            "archive": ["job-5"],
            "remove": ["job-6"],
        },
        "NodeImage": {
            "uuid": UUID,
            "name": "debian-13",
            "size": 4,
            "sha256": "0" * 64,
            "disk_size": 1,
            "sources": [["node2", "192.0.2.2"]],
        },
        "HelperTask": {"image": "/srv/none", "installs": True, "timeout": 1},
        "BackupPlace": place,
        "BootTest": {"sign": "agent", "timeout": 1},
        "FileRequest": {
            "paths": ["/etc/fstab"],
            "image": "/srv/none",
            "startup_timeout": 1,
            "timeout": 1,
        },
        "BackupRequest": {"place": place, "settings": "[export]"},
        "ImportExportOptions": {"compress": "gzip", "magic": "m", "connect_timeout": 1},
        "HotplugAction": "hotadd",
        "HotplugTarget": "disk",
        "str": "fake",
        "int": 5,
        "bool": True,
        "float": 1.5,
        "Any": [],
        "None": None,
    }


def make_valid(dice: random.Random, kind: Any, known: dict[str, Any]) -> Any:
    """A value of a type."""
    from types import UnionType
    from typing import Union, get_args, get_origin

    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return make_valid(dice, dice.choice(parts), known)
    if origin is tuple:
        return [make_valid(dice, part, known) for part in parts]
    if origin is list:
        return [make_valid(dice, parts[0], known) for _ in range(dice.choice((0, 1, 1, 2)))]
    if origin is dict:
        keys = [dice.choice(("fake", "a", "web1.example.com", "kvm")) for _ in range(2)]
        return {key: make_valid(dice, parts[1], known) for key in keys}
    kind = getattr(kind, "__supertype__", kind)
    name = getattr(kind, "__name__", str(kind))
    if name in ("NoneType", "Any", "object"):
        return odd(dice) if name == "Any" else None
    found = known[name]
    return dice.choice(found) if isinstance(found, tuple) else found


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RpcApp]:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    paths = Paths(tmp_path / "root")
    monkeypatch.setenv("GANETI_ROOTDIR", str(paths.root))
    for directory in (
        paths.data,
        paths.run,
        paths.log,
        paths.conf,
        paths.queue,
        paths.file_storage,
    ):
        directory.mkdir(parents=True, mode=0o750)
    paths.ssconf("file_storage_dir").write_text(f"{paths.file_storage}\n")
    context = NodeContext(paths, "node1.example.com")
    node = LocalNode(context)
    yield RpcApp(node.families, lambda _environ: None)
    context.stopping.set()
    node.stop()


def ask(app: RpcApp, name: str, args: Any) -> tuple[str, bytes]:
    body = json.dumps(args).encode()
    status: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/{name}",
        "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)),
    }
    answer = b"".join(app(environ, lambda line, _headers: status.append(line)))
    return status[0], answer


def test_no_call_fails_by_a_bug(
    app: RpcApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(_SEED)
    known = samples(Paths(tmp_path / "root"))
    calls = sorted(set(specs()) - _LEFT_OUT)
    end = time.monotonic() + _SECONDS
    bugs: dict[str, str] = {}
    for name in calls:
        make_valid(dice, specs()[name].args, known)  # each type has a sample
    for _ in range(_REQUESTS):
        name = dice.choice(calls)
        args = spoiled(dice, make_valid(dice, specs()[name].args, known))
        status, answer = ask(app, name, args)
        if status.startswith("200") and BUG_TEXT.encode() in answer:
            bugs.setdefault(f"{name}: {answer.decode()[:150]}", json.dumps(args)[:600])
        elif not status.startswith(("200", "400")):
            bugs[f"{name}: {status}"] = json.dumps(args)[:600]
        if time.monotonic() > end:
            break
    assert not bugs, "\n".join(f"{what}\n    {args}" for what, args in sorted(bugs.items()))
    assert not [record for record in caplog.records if record.exc_info]
