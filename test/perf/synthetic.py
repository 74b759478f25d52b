"""Configurations with many instances, for benchmarks: written under a stopped master."""

from __future__ import annotations

import uuid
from pathlib import Path

from ganeti.base import files
from ganeti.config.store import read_config, write_checkpoint
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import DiskTemplate, HypervisorName
from ganeti.model.nic import Nic
from ganeti.paths import Paths


def fill(root: Path, instances: int) -> None:
    """Give the cluster whose master node has this root so many stopped instances.

    Each has a file disk and a NIC; none exists on a node.
    """
    where = Paths(root)
    data = read_config(where).data
    nodes = sorted(data.nodes)
    made: dict[str, Instance] = {}
    disks: dict[str, Disk] = {}
    for number in range(instances):
        name = f"synthetic{number}.example.com"
        node = nodes[number % len(nodes)]
        disk = Disk(
            uuid=str(uuid.uuid4()),
            dev_type=DiskTemplate.FILE,
            iv_name="disk/0",
            size=1024,
            logical_id=("loop", f"/srv/ganeti/file-storage/{name}/0"),
            nodes=(node,),
            params={},
        )
        mac = f"aa:00:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        nic = Nic(uuid=str(uuid.uuid4()), mac=mac)
        instance = Instance(
            uuid=str(uuid.uuid4()),
            name=name,
            primary_node=node,
            os="noop",  # type: ignore[arg-type]
            hypervisor=HypervisorName.FAKE,
            nics=(nic,),
            disks=(disk.uuid,),  # type: ignore[arg-type]
            ctime=1.0,
            mtime=1.0,
            serial_no=1,
        )
        made[instance.uuid] = instance
        disks[disk.uuid] = disk
    full = base.replace(
        data,
        instances={**data.instances, **made},
        disks={**data.disks, **disks},
        serial_no=data.serial_no + 1,
    )
    write_checkpoint(Config(full), where)
    files.remove(where.journal_file)
