"""Verification finds what it documents: each code in a situation that is made real.

Store, operations, node handlers and files are real (see ``one_process``). Where a tool or a kernel
is needed that a test cannot have, :data:`ELSEWHERE` says which test emits the code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import constants
from ganeti.config.changes import Author
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate, HypervisorName, MasterVote
from ganeti.model.instance import Instance
from ganeti.net import certs, pacemaker
from ganeti.node import verify as node_verify
from ganeti.opcodes.cluster import OpClusterVerifyConfig, OpClusterVerifyGroup
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import CVErrorCode, InstCreateMode, VerifyOptionalChecks
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.verification import mirrors, requirements, storage
from ganeti.ops.verification.report import Report

WEB = "web.example.com"
REPOSITORY = Path(__file__).parents[3]

Monkey = pytest.MonkeyPatch
#: code -> file of a test that emits it from answers of tools which are not here
ELSEWHERE = {"ENODEORPHANLV": "test/cluster/test_cluster_storage.py"}


def run(cluster: OneProcess, **options: Any) -> list[str]:
    """All findings of a verification, without the ports that nobody serves here."""
    before = len(cluster.log)
    options.setdefault("error_codes", True)
    cluster.run(OpClusterVerifyConfig(**options))
    for group in cluster.config.groups.values():
        cluster.run(OpClusterVerifyGroup(group_name=group.name, **options))
    return [
        line
        for line in cluster.log[before:]
        if line.startswith("  - ") and "Connection refused" not in line
    ]


def put(cluster: OneProcess, item: Any, **changes: Any) -> None:
    """Change an object of the configuration."""
    cluster.store.change("test", Author(), lambda draft: draft.put(base.replace(item, **changes)))


def set_cluster(cluster: OneProcess, **changes: Any) -> None:
    cluster.store.change("test", Author(), lambda draft: draft.update_cluster(**changes))


def add(cluster: OneProcess, name: str = WEB, *, node: int = 2, start: bool = False) -> Instance:
    cluster.run(
        OpInstanceCreate(
            instance_name=name,
            mode=InstCreateMode.CREATE,
            os_type="noop",
            start=start,
            nics=[],
            disks=[DiskParams(size=1)],
            disk_template=DiskTemplate.FILE,
            pnode=f"node{node}.example.com",
            beparams={"memory": 64},
        )
    )
    return cluster.instance(name)


def add_disk(cluster: OneProcess, kind: DiskTemplate, *nodes: int, **more: Any) -> None:
    """An instance with a disk that exists in the configuration only."""
    item = add(cluster)
    uuids = tuple(cluster.node(number).uuid for number in nodes)
    place: tuple[Any, ...] = ("xenvg", "web.disk0")
    if kind is DiskTemplate.DRBD:
        parts = tuple(
            Disk(
                uuid=f"{name}-0",
                dev_type=DiskTemplate.PLAIN,
                logical_id=("xenvg", name),
                size=1,
                nodes=uuids,
            )
            for name in ("data", "meta")
        )
        place, more = (*uuids, 11000, 0, 0, "secret"), {**more, "children": parts}
    [old] = cluster.config.disks_of(item)
    put(cluster, old, dev_type=kind, logical_id=place, nodes=uuids, **more)
    put(cluster, cluster.instance(WEB), disks_active=True)


def script(cluster: OneProcess, node: str, **rules: Any) -> None:
    path = cluster.paths[node].conf / "fake-hypervisor.json"
    path.write_text(json.dumps({what: {"*": {"lie": lie}} for what, lie in rules.items()}))


# situations: each makes one real, and gives kind and name of what must be found -------------------

Subject = tuple[str, str]
NODE2 = ("node", "node2.example.com")
INSTANCE = ("instance", WEB)
CLUSTER = ("cluster", "c.example.com")


def expired_certificate(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.clock.ahead = 50 * 365 * 86400.0
    return CLUSTER


def expiring_client(cluster: OneProcess, _monkey: Monkey) -> Subject:
    master, own = cluster.paths["node1"], cluster.paths["node2"].client_cert
    authority = certs.read_authority(master.ca_key, master.ca_cert)
    certs.write(own, certs.issue_client(authority, "node2.example.com", days=1))
    return CLUSTER


def port_twice(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, add(cluster), network_port=11000)
    set_cluster(cluster, tcpudp_port_pool=(11000,))
    return CLUSTER


def primary_removed(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, add(cluster), primary_node="gone")
    return ("node", "gone")


def group_removed(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, cluster.node(2), group="gone")
    return NODE2


def file_differs(cluster: OneProcess, _monkey: Monkey) -> Subject:
    for node, where in cluster.paths.items():
        where.hmac_key.write_text("other" if node == "node2" else "same")
    return CLUSTER


def file_unreadable(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.paths["node2"].hmac_key.mkdir()
    return NODE2


def tag_shared(cluster: OneProcess, _monkey: Monkey) -> Subject:
    set_cluster(cluster, tags=("htools:iextags:service",))
    for name in (WEB, "db.example.com"):
        put(cluster, add(cluster, name), tags=("service:dns",))
    return NODE2


def primary_offline(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, add(cluster), admin_state=AdminState.UP)
    put(cluster, cluster.node(2), offline=True)
    return INSTANCE


def guest_died(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add(cluster, start=True)
    (cluster.paths["node2"].fake_hypervisor / WEB).unlink()
    return INSTANCE


def disk_short(cluster: OneProcess, _monkey: Monkey) -> Subject:
    [uuid] = add(cluster).disks
    with cluster.image(uuid).open("r+b") as stream:
        stream.truncate(10)
    return INSTANCE


def creation_interrupted(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, add(cluster), forthcoming=True, creating=7)
    return INSTANCE


def spindles_not_set(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add_disk(cluster, DiskTemplate.PLAIN, 2)
    set_cluster(cluster, ndparams={**cluster.config.cluster.ndparams, "exclusive_storage": True})
    return INSTANCE


def disk_lost(cluster: OneProcess, _monkey: Monkey) -> Subject:
    [uuid] = add(cluster).disks
    cluster.image(uuid).unlink()
    return INSTANCE


def policy_changed(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add(cluster)
    policy = json.loads(json.dumps(cluster.config.cluster.ipolicy))
    policy["minmax"][0]["min"]["memory-size"] = 512
    set_cluster(cluster, ipolicy=policy)
    return INSTANCE


def groups_split(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add_disk(cluster, DiskTemplate.DRBD, 2, 3)
    [group] = cluster.config.groups.values()
    put(cluster, group, uuid="other", name="other")
    put(cluster, cluster.node(3), group="other")
    return INSTANCE


def mirror_on_exclusive_storage(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add_disk(cluster, DiskTemplate.DRBD, 2, 3)
    set_cluster(cluster, ndparams={**cluster.config.cluster.ndparams, "exclusive_storage": True})
    return INSTANCE


def guest_elsewhere(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add(cluster, start=True)
    there = cluster.paths["node3"].fake_hypervisor
    there.mkdir()
    (cluster.paths["node2"].fake_hypervisor / WEB).rename(there / WEB)
    return INSTANCE


def mirror_not_active(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add_disk(cluster, DiskTemplate.DRBD, 2, 3)
    return NODE2


def helper_missing(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add_disk(cluster, DiskTemplate.DRBD, 2, 3)
    set_cluster(cluster, drbd_usermode_helper="/bin/no-such-helper")
    return NODE2


def path_forbidden(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.paths["node2"].file_storage_paths.write_text("/etc\n")
    return NODE2


def storage_writable(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.paths["node2"].file_storage.chmod(0o777)
    return NODE2


def share_missing(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.paths["node2"].shared_file_storage.unlink()
    return NODE2


def gluster_in_the_way(cluster: OneProcess, _monkey: Monkey) -> Subject:
    enabled = (*cluster.config.cluster.enabled_disk_templates, DiskTemplate.GLUSTER)
    set_cluster(cluster, enabled_disk_templates=enabled, gluster_storage_dir="/mnt/gluster")
    place = cluster.paths["node2"].under("/mnt/gluster")
    place.parent.mkdir()
    place.write_text("no directory")
    return NODE2


def hook_fails(cluster: OneProcess, _monkey: Monkey) -> Subject:
    directory = cluster.paths["node2"].hooks / "cluster-verify-post.d"
    directory.mkdir(parents=True)
    (directory / "check").write_text("#!/bin/sh\necho the rack is too warm\nexit 1\n")
    (directory / "check").chmod(0o755)
    return NODE2


def hypervisor_broken(cluster: OneProcess, _monkey: Monkey) -> Subject:
    script(cluster, "node2", verify="no fake device")
    return NODE2


def no_volume_group(cluster: OneProcess, _monkey: Monkey) -> Subject:
    enabled = (*cluster.config.cluster.enabled_disk_templates, DiskTemplate.PLAIN)
    set_cluster(cluster, enabled_disk_templates=enabled, volume_group_name="no-such-group")
    return NODE2


def memory_gone(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add(cluster)
    put(cluster, cluster.instance(WEB), forthcoming=True)
    script(cluster, "node2", node_info={"memory_free": 1})
    return NODE2


def address_unreachable(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, cluster.node(3), primary_ip="not an address")
    return ("node", "node3.example.com")


def no_oob_program(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, cluster.node(2), ndparams={"oob_program": "/usr/sbin/no-such-ipmi"})
    return ("node", "node1.example.com")


def no_fence_agent(cluster: OneProcess, _monkey: Monkey) -> Subject:
    put(cluster, cluster.node(2), ndparams={"fence_agent": "fence_no_such"})
    return ("node", "node1.example.com")


def no_etcd(cluster: OneProcess, _monkey: Monkey) -> Subject:
    set_cluster(cluster, master_vote=MasterVote.ETCD)
    return ("node", "node1.example.com")


def no_pacemaker(cluster: OneProcess, monkey: Monkey) -> Subject:
    set_cluster(cluster, master_vote=MasterVote.PACEMAKER)
    monkey.setattr(pacemaker, "has_quorum", lambda _seconds: False)
    return ("node", "node1.example.com")


def file_without_disk(cluster: OneProcess, _monkey: Monkey) -> Subject:
    image = cluster.image(add(cluster).disks[0])
    image.with_name("00000000-0000-4000-8000-000000000000.file.disk0").write_text("")
    return NODE2


def guest_unknown(cluster: OneProcess, _monkey: Monkey) -> Subject:
    add(cluster, start=True)
    guests = cluster.paths["node2"].fake_hypervisor
    (guests / "stranger").write_text((guests / WEB).read_text())
    return NODE2


def os_missing(cluster: OneProcess, _monkey: Monkey) -> Subject:
    directory = cluster.paths["node2"].os_search_path[0]
    source = directory.readlink()
    directory.unlink()
    directory.mkdir()
    (directory / "noop").symlink_to(source / "noop")
    return NODE2


def daemon_dead(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.silent.add(cluster.node(2).uuid)
    return NODE2


def directory_open(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.paths["node2"].data.chmod(0o777)
    return NODE2


def log_in_refused(cluster: OneProcess, monkey: Monkey) -> Subject:
    set_cluster(cluster, modify_ssh_setup=True)
    monkey.setenv("GANETI_REMOTE_SHELL", "sh -c 'echo Permission denied >&2; exit 255'")
    return NODE2


def clocks_apart(cluster: OneProcess, _monkey: Monkey) -> Subject:
    cluster.clock.ahead = 1000.0
    return NODE2


def script_missing(cluster: OneProcess, _monkey: Monkey) -> Subject:
    set_cluster(cluster, use_external_mip_script=True)
    return NODE2


def install_other_software(_cluster: OneProcess, monkey: Monkey) -> Subject:
    old = {"PROTOCOL_VERSION": 2160000, "RELEASE_VERSION": "2.16.0"}
    monkey.setattr(node_verify, "constants", SimpleNamespace(**{**vars(constants), **old}))
    return NODE2


def drbd_versions(cluster: OneProcess, _monkey: Monkey) -> Subject:
    nodes = [cluster.node(number) for number in (1, 2, 3)]
    texts = ("9.2.1", "8.4.11", "9.2.1")
    answers = {node.uuid: {"drbd-version": text} for node, text in zip(nodes, texts)}
    mirrors.versions(_report(cluster), nodes, answers)
    return NODE2


def volumes_unlike(cluster: OneProcess, _monkey: Monkey) -> Subject:
    set_cluster(cluster, ndparams={**cluster.config.cluster.ndparams, "exclusive_storage": True})
    nodes = [cluster.node(number) for number in (1, 2)]
    answers = {
        node.uuid: {
            "pvlist": [{"name": "/dev/sda", "vg_name": "vg", "attributes": "a--", "size": size}]
        }
        for node, size in zip(nodes, (1000, 2000))
    }
    storage.group_sizes(_report(cluster), cluster.config, "default", nodes, answers)
    return ("group", "default")


def _report(cluster: OneProcess) -> Report:
    context = cluster._context(SimpleNamespace(log=cluster.log.append))
    return Report(context, error_codes=True, ignored=())


SITUATIONS: dict[str, Callable[[OneProcess, Monkey], Subject]] = {
    "ECLUSTERCERT": expired_certificate,
    "ECLUSTERCFG": port_twice,
    "ECLUSTERCLIENTCERT": expiring_client,
    "ECLUSTERDANGLINGINST": primary_removed,
    "ECLUSTERDANGLINGNODES": group_removed,
    "ECLUSTERFILECHECK": file_differs,
    "EEXTAGS": tag_shared,
    "EGROUPDIFFERENTPVSIZE": volumes_unlike,
    "EINSTANCEBADNODE": primary_offline,
    "EINSTANCEDOWN": guest_died,
    "EINSTANCEFAULTYDISK": disk_short,
    "EINSTANCELAYOUT": creation_interrupted,
    "EINSTANCEMISSINGCFGPARAMETER": spindles_not_set,
    "EINSTANCEMISSINGDISK": disk_lost,
    "EINSTANCEPOLICY": policy_changed,
    "EINSTANCESPLITGROUPS": groups_split,
    "EINSTANCEUNSUITABLENODE": mirror_on_exclusive_storage,
    "EINSTANCEWRONGNODE": guest_elsewhere,
    "ENODEDRBD": mirror_not_active,
    "ENODEDRBDHELPER": helper_missing,
    "ENODEDRBDVERSION": drbd_versions,
    "ENODEETCD": no_etcd,
    "ENODEFENCING": no_fence_agent,
    "ENODEFILECHECK": file_unreadable,
    "ENODEFILESTORAGEPATHS": path_forbidden,
    "ENODEFILESTORAGEPATHUNUSABLE": storage_writable,
    "ENODEGLUSTERSTORAGEPATHUNUSABLE": gluster_in_the_way,
    "ENODEHOOKS": hook_fails,
    "ENODEHV": hypervisor_broken,
    "ENODELVM": no_volume_group,
    "ENODEN1": memory_gone,
    "ENODENET": address_unreachable,
    "ENODEOOBPATH": no_oob_program,
    "ENODEORPHANFILE": file_without_disk,
    "ENODEORPHANINSTANCE": guest_unknown,
    "ENODEOS": os_missing,
    "ENODEPACEMAKER": no_pacemaker,
    "ENODERPC": daemon_dead,
    "ENODESETUP": directory_open,
    "ENODESHAREDFILESTORAGEPATHUNUSABLE": share_missing,
    "ENODESSH": log_in_refused,
    "ENODETIME": clocks_apart,
    "ENODEUSERSCRIPTS": script_missing,
    "ENODEVERSION": install_other_software,
}
#: Codes whose situation is not an error: the cluster works on.
WARNINGS = {"EINSTANCEPOLICY", "EINSTANCESPLITGROUPS"}
#: Codes that are judged from answers in the test itself.
PURE = {"ENODEDRBDVERSION", "EGROUPDIFFERENTPVSIZE"}


def test_a_sound_cluster_has_no_findings(cluster: OneProcess) -> None:
    add(cluster, start=True)
    assert run(cluster) == []


@pytest.mark.parametrize("code", SITUATIONS)
def test_the_situation_is_found(cluster: OneProcess, monkeypatch: Monkey, code: str) -> None:
    kind, name = SITUATIONS[code](cluster, monkeypatch)
    found = cluster.log if code in PURE else run(cluster)
    level = "WARNING" if code in WARNINGS else "ERROR"
    wanted = f"  - {level}:{code}:{kind}:{name}:"
    assert any(line.startswith(wanted) for line in found), "\n".join(found)


def test_every_documented_code_has_a_situation_or_a_test_elsewhere() -> None:
    documented = {code.value for code in CVErrorCode}
    assert documented == SITUATIONS.keys() | ELSEWHERE.keys()
    for code, test in ELSEWHERE.items():
        assert code in (REPOSITORY / test).read_text(), f"{test} emits {code} no more"


def test_an_ignored_code_is_a_warning_and_the_result_is_good(cluster: OneProcess) -> None:
    cluster.paths["node2"].data.chmod(0o777)
    ignored = frozenset({CVErrorCode.ENODESETUP, CVErrorCode.ENODENET})
    before = len(cluster.log)
    assert cluster.run(OpClusterVerifyGroup(group_name="default", ignore_errors=ignored)) is True
    [line] = [line for line in cluster.log[before:] if "everybody may write" in line]
    assert line.startswith("  - WARNING: node node2.example.com: everybody may write to ")
    assert not any("ERROR" in line for line in cluster.log[before:])
    assert cluster.run(OpClusterVerifyGroup(group_name="default")) is False


# one cause, one finding ---------------------------------------------------------------------------


def test_a_dead_node_is_one_finding(cluster: OneProcess) -> None:
    add(cluster)
    add(cluster, "db.example.com")
    cluster.silent.add(cluster.node(2).uuid)
    [found] = run(cluster)
    assert found.startswith("  - ERROR:ENODERPC:node:node2.example.com:no answer: ")
    assert found.endswith("; the state of its 2 instances is not known")


def test_a_candidate_that_answers_and_lags_is_named(cluster: OneProcess) -> None:
    node = cluster.node(1)
    cluster.lagging[node.uuid] = "cannot write /var/lib/ganeti/queue/journal"
    assert run(cluster) == [
        f"  - ERROR:ECLUSTERFILECHECK:node:{node.name}:it has no copy of the newest configuration"
        " and jobs: cannot write /var/lib/ganeti/queue/journal"
    ]
    cluster.silent.add(node.uuid)
    assert "newest configuration" not in "".join(run(cluster))


def test_a_node_that_dies_on_the_way_is_one_finding(cluster: OneProcess) -> None:
    add(cluster)
    at = len(cluster.steps)
    run(cluster)
    calls = [step for step in cluster.steps[at:] if step.startswith("before ")]
    for number in range(1, len(calls) + 1):
        cluster.fault = (cluster.calls + number, False)
        found = run(cluster)
        assert len(found) <= 1, f"{calls[number - 1]}: {found}"
        cluster.fault = None
        cluster.restart_daemons()


# memory -------------------------------------------------------------------------------------------


def test_the_secondary_node_has_the_memory_for_a_failover(cluster: OneProcess) -> None:
    add_disk(cluster, DiskTemplate.DRBD, 2, 3)
    put(cluster, cluster.instance(WEB), admin_state=AdminState.UP)

    def list_findings() -> list[str]:
        return [line for line in run(cluster) if "ENODEN1" in line]

    assert list_findings() == []
    script(cluster, "node3", node_info={"memory_free": 63})
    assert list_findings() == [
        "  - ERROR:ENODEN1:node:node3.example.com:if node node2.example.com fails, 64 MiB of"
        f" memory are needed here for 1 instance ({WEB}), but only 63 MiB are free"
    ]
    skipped = frozenset({VerifyOptionalChecks.NPLUSONE_MEM})
    before = len(cluster.log)
    cluster.run(OpClusterVerifyGroup(group_name="default", skip_checks=skipped, error_codes=True))
    assert not any("ENODEN1" in line for line in cluster.log[before:])
    put(cluster, cluster.instance(WEB), beparams={"auto_balance": False})
    assert list_findings() == []


# files ------------------------------------------------------------------------------------------


def test_files_are_named_with_the_nodes_that_differ(cluster: OneProcess) -> None:
    one, two, three = (cluster.paths[f"node{number}"] for number in (1, 2, 3))
    for where in (one, two):
        where.hmac_key.write_text("key")
        where.rapi_users.write_text("admin")
    two.domain_secret.write_text("secret")
    three.ca_key.write_text("stolen")
    text = "\n".join(run(cluster))
    send = "gnt-cluster redist-conf sends the file of the master again"
    for wanted in (
        f"file /var/lib/ganeti/hmac.key is missing on node3.example.com; {send}",
        "file /var/lib/ganeti/cluster-domain-secret is missing on the master node, but"
        " node2.example.com has it",
        "file /var/lib/ganeti/rapi/users is on node2.example.com, but only master candidates",
        "file /var/lib/ganeti/ca.key is on node3.example.com, but only master candidates",
    ):
        assert f":ECLUSTERFILECHECK:cluster:c.example.com:{wanted}" in text
    assert text.count("ECLUSTERFILECHECK") == 4


# programs ---------------------------------------------------------------------------------------


def test_a_network_script_is_wanted_where_its_instance_may_run(cluster: OneProcess) -> None:
    params = HYPERVISORS.get("xen-pvm").traits.scripts
    assert params == {"vif_script"}
    put(
        cluster,
        add(cluster),
        hypervisor=HypervisorName("xen-pvm"),
        hvparams={"vif_script": "/etc/xen/vif-mine"},
    )
    config, paths = cluster.config, cluster.paths["node1"]
    nodes = [cluster.node(number) for number in (1, 2, 3)]
    assert requirements.checks(config, paths, nodes)["user-scripts"] == ["/etc/xen/vif-mine"]
    found = [line for line in run(cluster) if "ENODEUSERSCRIPTS" in line]
    assert found == [
        "  - ERROR:ENODEUSERSCRIPTS:node:node2.example.com:user scripts are missing or not"
        " executable: /etc/xen/vif-mine"
    ]
