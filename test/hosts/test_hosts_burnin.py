"""The acceptance test of a new cluster: burnin of KVM instances on LVM and on DRBD.

It takes about an hour, so only ``make check-burnin`` runs it. BURNIN_INSTANCES says how many
instances there are; half of them have mirrored disks.
"""

from __future__ import annotations

import os
import re
import time

import pytest
from lab.cluster import Cluster

INSTANCES = int(os.environ.get("BURNIN_INSTANCES", "20"))
#: Seconds for one run of burnin, and for both.
LIMIT = 3 * 3600
_PARAMS = "kvm:kernel_path=,serial_console=true,vhost_net=false,migration_bandwidth=32"
#: What must be done with instances of each template, besides what all can do.
_OWN = {"plain": {"move"}, "drbd": {"replace1", "replace2", "failover", "migrate"}}
_COMMON = {
    *("create", "grow", "importexport", "reinstall", "reboot", "activate-disks"),
    *("add-disks", "add-nics", "startstop", "remove"),
}


@pytest.fixture
def roomy_cluster(cluster: Cluster) -> Cluster:
    """A cluster whose volume group has both disks."""
    for node in cluster.nodes:
        node.sh("pvs -q /dev/vdb || { pvcreate -q /dev/vdb; vgextend -q xenvg /dev/vdb; }")
    cluster.ok("cluster modify -H", _PARAMS)
    return cluster


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("template", ["plain", "drbd"])
def test_burnin(roomy_cluster: Cluster, template: str) -> None:
    cluster = roomy_cluster
    count = max(INSTANCES // 2, 1)
    names = [f"{template}{number}.example.com" for number in range(1, count + 1)]
    sizes = ("--disk-size=32M", "--disk-growth=4M", "--mem-size=32M", "--no-nics")
    begin = time.monotonic()
    ran = cluster.master.run(
        "ganeti-burnin",
        *(
            "-o",
            "bootsector+default",
            "-H",
            "kvm",
            "-t",
            template,
            "-I",
            "hail",
            "-p",
            *sizes,
            *names,
        ),
        limit=LIMIT,
        env={"GANETI_TIME_FACTOR": "3"},
    )
    print(f"\n{ran.out}\n{count} of {template}: {time.monotonic() - begin:.0f} s", flush=True)
    assert ran.code == 0, ran.out + ran.err
    rows = re.findall(r"^([a-z][a-z0-9-]*) +(\d+) +(\d+) ", ran.out, re.M)
    table = {step: (int(jobs), int(failed)) for step, jobs, failed in rows}
    assert table == dict.fromkeys(_COMMON | _OWN[template], (count, 0))
    assert ran.lines[-1] == "Everything worked"
    assert cluster.cells("instance list -o name") == []
    cluster.ok("cluster verify")
