"""Configurations with many instances, for benchmarks: written under a stopped master.

None of the instances exists on a node.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ganeti.base import files
from ganeti.config.store import read_config, write_checkpoint
from ganeti.model import base
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate, HypervisorName
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.paths import Paths


def fill(root: Path, instances: int) -> None:
    """Give the cluster whose master node has this root so many stopped instances.

    Each has a file disk and a NIC.
    """
    data = read_config(Paths(root)).data
    nodes = sorted(data.nodes)
    made = []
    for number in range(instances):
        name = f"synthetic{number}.example.com"
        disk = Disk(
            uuid=str(uuid.uuid4()),
            dev_type=DiskTemplate.FILE,
            iv_name="disk/0",
            size=1024,
            logical_id=("loop", f"/srv/ganeti/file-storage/{name}/0"),
            nodes=(nodes[number % len(nodes)],),
            params={},
        )
        made.append((_instance(number, name, disk), disk))
    _write(root, data, made)


def fill_mirrored(root: Path, instances: int, group: str) -> None:
    """Running instances with DRBD disks on volume group ``group``, spread over pairs of nodes."""
    data = read_config(Paths(root)).data
    nodes = sorted(data.nodes)
    count = len(nodes)
    made = []
    for number in range(instances):
        name = f"synthetic{number}.example.com"
        first = number % count
        second = (first + 1 + number // count % (count - 1)) % count
        pair = (nodes[first], nodes[second])
        volumes = tuple(
            Disk(
                uuid=str(uuid.uuid4()),
                dev_type=DiskTemplate.PLAIN,
                size=size,
                logical_id=(group, f"{name}.{part}"),
                nodes=pair,
                params={},
            )
            for part, size in (("data", 1024), ("meta", 128))
        )
        disk = Disk(
            uuid=str(uuid.uuid4()),
            dev_type=DiskTemplate.DRBD,
            iv_name="disk/0",
            size=1024,
            logical_id=(*pair, 11000 + number, 2 * number, 2 * number + 1, "secret"),
            nodes=pair,
            children=volumes,
            params={},
        )
        made.append((_instance(number, name, disk, admin_state=AdminState.UP), disk))
    policy = {**data.cluster.ipolicy, "disk-templates": ["drbd", "plain", "file"]}
    cluster = base.replace(
        data.cluster,
        enabled_disk_templates=(DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.FILE),
        volume_group_name=group,
        ipolicy=policy,
        ndparams={**data.cluster.ndparams, "spindle_count": 12},
    )
    _write(root, base.replace(data, cluster=cluster), made)


def _instance(number: int, name: str, disk: Disk, **more: Any) -> Instance:
    mac = f"aa:00:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    return Instance(
        uuid=str(uuid.uuid4()),
        name=name,
        primary_node=disk.nodes[0],
        os="noop",  # type: ignore[arg-type]
        hypervisor=HypervisorName.FAKE,
        nics=(Nic(uuid=str(uuid.uuid4()), mac=mac),),
        disks=(disk.uuid,),  # type: ignore[arg-type]
        ctime=1.0,
        mtime=1.0,
        serial_no=1,
        **more,
    )


def _write(root: Path, data: ConfigData, made: Sequence[tuple[Instance, Disk]]) -> None:
    where = Paths(root)
    full = base.replace(
        data,
        instances={**data.instances, **{item.uuid: item for item, _ in made}},
        disks={**data.disks, **{disk.uuid: disk for _, disk in made}},
        serial_no=data.serial_no + 1,
    )
    write_checkpoint(Config(full), where)
    files.remove(where.journal_file)
