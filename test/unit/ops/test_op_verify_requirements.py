"""What gnt-cluster verify says of what single nodes answered: exports, images, keys, programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from op_samples import Findings, change, config, node, put, with_cluster, with_group, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate, HypervisorName, MasterVote
from ganeti.model.image import Image
from ganeti.ops.verification import bridges, exports, files, images, requirements, ssh
from ganeti.paths import Paths

N2, N3 = node(2, master_candidate=True), node(3)
PATHS = Paths(Path("/nowhere"))


def image(name: str, **more: Any) -> Image:
    return Image(uuid=f"image-{name}", name=name, file_size=4096, **more)  # type: ignore[arg-type]


# exports -----------------------------------------------------------------------------------


def test_an_export_that_was_cut_off_is_named_with_what_to_do(findings: Findings) -> None:
    answers = {"node-2": {"unfinished-exports": ["/srv/export/web1.example.com.new"]}}
    exports.judge(findings.report, [N2, N3], answers, ())
    assert findings.lines == [
        "ERROR:ENODEORPHANFILE:node:node2.example.com:the export /srv/export/web1.example.com.new"
        " was cut off and is not listed; the next gnt-backup export of web1.example.com to this"
        " node replaces it, or: rm -r /srv/export/web1.example.com.new"
    ]


def test_an_export_that_is_being_made_is_none(findings: Findings) -> None:
    answers = {"node-2": {"unfinished-exports": ["/srv/export/web1.example.com.new"]}}
    exports.judge(findings.report, [N2], answers, {"web1.example.com"})
    assert findings.lines == []


def test_exports_that_a_node_cannot_list(findings: Findings) -> None:
    exports.judge(
        findings.report, [N2], {"node-2": {"unfinished-exports": "permission denied"}}, ()
    )
    assert findings.lines == [
        "ERROR:ENODEFILECHECK:node:node2.example.com:exports: permission denied"
    ]


# images ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files_of_node", "said"),
    [
        ({"image-a": 4096}, []),
        ({"image-a": 4095}, ["its copy of image a is damaged"]),
        ({}, ["its copy of image a is missing"]),
        ({"image-a": 4096, "x": 1, "y": 2}, ["it has files of 2 images that were removed"]),
        ("permission denied", ["images: permission denied"]),
        (None, []),
    ],
)
def test_copies_of_images(findings: Findings, files_of_node: Any, said: list[str]) -> None:
    of = put(config(N2), "images", image("a"))
    answers = {} if files_of_node is None else {"node-2": {"images": files_of_node}}
    images.judge(findings.report, of, [N2], answers)
    assert [line.split(":", 4)[4].partition(";")[0] for line in findings.lines] == said


def test_images_are_kept_by_master_candidates_and_once_they_are_made(findings: Findings) -> None:
    of = put(config(N2, N3), "images", image("a"))
    images.judge(findings.report, of, [N3], {"node-3": {"images": {}}})
    of = put(config(N2, N3), "images", image("a", creating=4))
    images.judge(findings.report, of, [N2], {"node-2": {"images": {}}})
    assert findings.lines == []
    assert findings.report.ok


def test_an_image_whose_job_was_killed(findings: Findings) -> None:
    of = put(config(), "images", image("a", creating=4), image("b", creating=5), image("c"))
    images.check_interrupted(findings.report, of, [5])
    assert findings.lines == [
        "ERROR:ECLUSTERCFG:cluster:cluster.example.com:job 4 was interrupted while it made image"
        " a; remove what is left of it with gnt-image remove a"
    ]


# keys of SSH -------------------------------------------------------------------------------


def test_keys_of_ssh_that_nodes_complain_about(findings: Findings) -> None:
    ssh.node(findings.report, N2, {"ssh-setup": ["a", "b"], "ssh-clutter": "cannot read keys"})
    ssh.node(findings.report, N3, {"ssh-setup": []})
    assert findings.lines == [
        "ERROR:ENODESSH:node:node2.example.com:a",
        "ERROR:ENODESSH:node:node2.example.com:b",
        "ERROR:ENODESSH:node:node2.example.com:cannot read keys",
    ]


def test_clutter_is_looked_for_when_it_is_wanted() -> None:
    of = config(N2)
    stored = {"node-2": ["ssh-rsa AAAA root@node2"]}
    assert "ssh-clutter" not in ssh.checks(of, stored, clutter=False)
    asked = ssh.checks(of, stored, clutter=True)
    assert asked["ssh-clutter"] == {"node2.example.com": "ssh-rsa AAAA root@node2"}


# files of disks ----------------------------------------------------------------------------


def with_file(kind: DiskTemplate = DiskTemplate.FILE) -> Config:
    of = with_instance(config(N2, N3), "web1", "node-2")
    disk = of.disks["disk-web1"]  # type: ignore[index]
    return put(of, "disks", base.replace(disk, dev_type=kind))


def test_files_that_belong_to_no_disk(findings: Findings) -> None:
    of = with_file()
    shared = f"{of.cluster.shared_file_storage_dir}/lost"
    answers = {
        "node-2": {"file-disks": ["/srv/web1", "/srv/lost", shared]},
        "node-3": {"file-disks": ["/srv/web1", shared]},
    }
    files.orphans(findings.report, of, of, [N2, N3], answers)
    said = [line.split(":", 3)[3].partition(" belongs")[0] for line in findings.lines]
    assert said == [
        "node2.example.com:file /srv/lost",
        f"node2.example.com:file {shared}",  # which all nodes see, once
        "node3.example.com:file /srv/web1",  # the disk is not on that node
    ]


def test_a_file_that_a_job_made_meanwhile_is_no_orphan(findings: Findings) -> None:
    answers = {"node-2": {"file-disks": ["/srv/web1"]}}
    for before, after in ((config(N2), with_file()), (with_file(), config(N2))):
        files.orphans(findings.report, before, after, [N2], answers)
    assert findings.lines == []


def test_files_that_a_node_cannot_list(findings: Findings) -> None:
    of = with_file()
    files.orphans(findings.report, of, of, [N2], {"node-2": {"file-disks": "no such directory"}})
    assert findings.lines == [
        "ERROR:ENODEFILESTORAGEPATHS:node:node2.example.com:files of disks: no such directory"
    ]


def test_what_to_do_about_a_disk_that_is_missing() -> None:
    of = with_file()
    disk, owner = of.disks["disk-web1"], of.instance("web1")  # type: ignore[index]
    again = "gnt-instance recreate-disks web1 recreates it, empty"
    assert files.remedy(disk, owner, {}) == f"there is no file /srv/web1; {again}"
    assert files.remedy(disk, owner, {"file-disks": "failed"}).startswith("there is no file")
    assert files.remedy(disk, None, {}).endswith("gnt-disk remove disk-web1 forgets it")
    moved = files.remedy(disk, owner, {"file-disks": ["/srv/web1", "/mnt/web1"]})
    assert moved == (
        "its file was being moved, and is /mnt/web1; to move it back: mkdir -p /srv && mv"
        " /mnt/web1 /srv/web1"
    )
    volume = with_file(DiskTemplate.PLAIN).disks["disk-web1"]  # type: ignore[index]
    assert files.remedy(volume, owner, {}) == again


# programs and directories ------------------------------------------------------------------


def test_nodes_are_asked_for_the_programs_that_operations_run() -> None:
    of = config(
        node(2, ndparams={"oob_program": "/sbin/oob"}),
        node(3, ndparams={"fence_agent": "fence_ipmilan", "watchdog": "/dev/watchdog"}),
        use_external_mip_script=True,
        master_vote=MasterVote.ETCD,
    )
    nodes = sorted(of.nodes.values(), key=lambda item: item.name)
    asked = requirements.checks(of, PATHS, nodes)
    assert asked["oob-paths"] == ["/sbin/oob"]
    assert asked["fence-agents"] == [("fence_ipmilan", "node3.example.com")]
    assert asked["watchdogs"] == [("/dev/watchdog", "node3.example.com")]
    assert asked["etcd"] == (f"/ganeti/{of.cluster.uuid}/master", "node1.example.com")
    assert "pacemaker" not in asked
    assert asked["user-scripts"] == [str(PATHS.common(PATHS.master_ip_script))]
    asked = requirements.checks(config(master_vote=MasterVote.PACEMAKER), PATHS, [])
    assert asked["pacemaker"] == "node1.example.com"


def test_a_watchdog_matters_on_every_node(findings: Findings) -> None:
    of = config(N2, N3)
    for item, text in ((N2, ""), (N3, "/dev/watchdog: No such file or directory")):
        requirements.node(findings.report, of, PATHS, item, {"watchdogs": text})
    assert findings.lines == [
        "ERROR:ENODEFENCING:node:node3.example.com:watchdog: /dev/watchdog: No such file or"
        " directory",
    ]


def test_a_program_of_helpers_matters_where_a_master_may_run(findings: Findings) -> None:
    of = config(N2, N3)
    answers = {"oob-paths": ["/sbin/oob is missing", None], "fence-agents": "failed"}
    answers["etcd"] = ["/etc/ganeti/etcd is missing"]
    answers["pacemaker"] = ["Pacemaker has no quorum here"]
    for item in (N2, N3):
        requirements.node(findings.report, of, PATHS, item, answers)
    assert findings.lines == [
        "ERROR:ENODEOOBPATH:node:node2.example.com:out-of-band program: /sbin/oob is missing",
        "ERROR:ENODEFENCING:node:node2.example.com:fence agent: failed",
        "ERROR:ENODEETCD:node:node2.example.com:/etc/ganeti/etcd is missing",
        "ERROR:ENODEPACEMAKER:node:node2.example.com:Pacemaker has no quorum here",
    ]


def test_scripts_and_directories_of_a_node(findings: Findings) -> None:
    script = str(PATHS.common(PATHS.master_ip_script))
    of = config(N3, use_external_mip_script=True, file_storage_dir="/srv/files")
    answers = {
        "nodesetup": ["the clock is wrong", None],
        "user-scripts": [script, "/of/another"],
        "file-storage-path": "it is not a directory",
        "allowed-file-storage-paths": ["/usr", "/etc"],
    }
    requirements.node(findings.report, of, PATHS, N3, answers)
    requirements.node(findings.report, of, PATHS, N3, {"allowed-file-storage-paths": "cannot read"})
    assert findings.lines == [
        "ERROR:ENODESETUP:node:node3.example.com:the clock is wrong",
        "ERROR:ENODEUSERSCRIPTS:node:node3.example.com:user scripts are missing or not"
        f" executable: {script}",
        "ERROR:ENODEFILESTORAGEPATHUNUSABLE:node:node3.example.com:disks of template file cannot"
        " be in /srv/files: it is not a directory",
        "ERROR:ENODEFILESTORAGEPATHS:node:node3.example.com:directories that no disks may be in"
        " are allowed: /usr, /etc",
        "ERROR:ENODEFILESTORAGEPATHS:node:node3.example.com:cannot read",
    ]


def test_a_node_without_guests_needs_no_directories(findings: Findings) -> None:
    of = config(file_storage_dir="/srv/files", use_external_mip_script=True)
    item = node(3, vm_capable=False, master_capable=False)
    requirements.node(
        findings.report, of, PATHS, item, {"file-storage-path": "it is not a directory"}
    )
    assert findings.lines == []


def test_nodes_that_the_master_cannot_log_in_to(findings: Findings) -> None:
    requirements.log_in(findings.report, N2, {"node3.example.com": "permission denied"})
    requirements.log_in(findings.report, N2, "no remote shell")
    assert [line.partition("; gnt")[0] for line in findings.lines] == [
        "ERROR:ENODESSH:node:node3.example.com:the master cannot run a command here with its"
        " remote shell: permission denied",
        "ERROR:ENODESSH:node:node2.example.com:the master cannot run a command here with its"
        " remote shell: no remote shell",
    ]


def test_directories_are_looked_at_where_a_template_uses_them() -> None:
    of = config(enabled_disk_templates=[DiskTemplate.FILE], file_storage_dir="/srv/files")
    of = with_cluster(of, shared_file_storage_dir="/srv/shared", gluster_storage_dir="/srv/gluster")
    asked = requirements.checks(of, PATHS, [])
    assert asked["file-storage-path"] == "/srv/files"
    assert "shared-file-storage-path" not in asked
    assert "gluster-storage-path" not in asked
    assert "allowed-file-storage-paths" in asked
    none = with_cluster(of, file_storage_dir="")
    assert "file-storage-path" not in requirements.checks(none, PATHS, [])
    plain = with_cluster(of, enabled_disk_templates=[DiskTemplate.PLAIN])
    assert set(requirements.checks(plain, PATHS, [])) == {"nodesetup"}


def test_scripts_of_guests_are_looked_for_where_they_run() -> None:
    of = with_instance(config(N2, N3), "web1", "node-2")
    of = change(of, hypervisor=HypervisorName.XEN_PVM, hvparams={"vif_script": "/etc/xen/own"})
    asked = requirements.checks(of, PATHS, [N2])
    assert "/etc/xen/own" in asked["user-scripts"]
    assert "/etc/xen/own" not in requirements.checks(of, PATHS, [N3]).get("user-scripts", [])
    # a name without a directory is looked for by the tools of the hypervisor
    named = change(of, hvparams={"vif_script": "vif-bridge"})
    assert "vif-bridge" not in requirements.checks(named, PATHS, [N2]).get("user-scripts", [])
    external = with_cluster(of, use_external_mip_script=True)
    unable = base.replace(N3, vm_capable=False, master_capable=False)
    assert "user-scripts" not in requirements.checks(external, PATHS, [unable])
    guestless = base.replace(N2, vm_capable=False, master_capable=False)
    assert "user-scripts" not in requirements.checks(external, PATHS, [guestless])


def test_files_of_disks_are_listed_where_disks_are_files() -> None:
    assert files.checks(config(enabled_disk_templates=[DiskTemplate.FILE])) == {"file-disks": None}
    assert files.checks(config(enabled_disk_templates=[DiskTemplate.PLAIN])) == {}
    # a disk of a template that is not enabled any more
    left = with_cluster(with_file(), enabled_disk_templates=[DiskTemplate.PLAIN])
    assert files.checks(left) == {"file-disks": None}


# bridges -----------------------------------------------------------------------------------


def bridged() -> Config:
    of = with_cluster(config(N2, N3), nicparams={"default": {"mode": "bridged", "link": "br0"}})
    return change(with_instance(of, "web1", "node-2", "node-3"), hypervisor=HypervisorName.KVM)


def test_bridges_that_guests_need_are_asked_for() -> None:
    of = bridged()
    assert bridges.checks(of, [N2, N3]) == {"bridges": ["br0"]}
    assert bridges.checks(of, [of.nodes[of.cluster.master_node]]) == {}
    assert bridges.checks(change(of, hypervisor=HypervisorName.FAKE), [N2, N3]) == {}
    assert bridges.checks(change(of, nics=()), [N2, N3]) == {}
    assert bridges.checks(change(of, forthcoming=True), [N2, N3]) == {}
    assert bridges.checks(change(of, primary_node="node-9"), [N2, N3]) == {}


def test_a_bridge_that_is_missing_is_named_with_who_needs_it(findings: Findings) -> None:
    answers = {
        "node-2": {"bridges": ["br0", "br9"]},  # nobody needs br9 any more
        "node-3": {"bridges": "ip: command failed"},
    }
    bridges.judge(findings.report, bridged(), [N2, N3], answers)
    assert [line.partition(";")[0] for line in findings.lines] == [
        "ERROR:ENODENET:node:node2.example.com:bridge br0 is missing, but web1 may run here",
        "ERROR:ENODENET:node:node3.example.com:bridges: ip: command failed",
    ]


def test_only_three_of_those_that_need_a_bridge_are_named(findings: Findings) -> None:
    of = bridged()
    for name in ("web2", "web3", "web4", "web5"):
        of = with_instance(of, name, "node-2", "node-3")
        of = change(of, name, hypervisor=HypervisorName.KVM)
    bridges.judge(findings.report, of, [N2], {"node-2": {"bridges": ["br0"]}})
    [line] = findings.lines
    assert "web1, web2, web3 and 2 more" in line


def test_with_shared_disks_the_nodes_of_the_group_need_the_bridge() -> None:
    of = with_group(config(N2, N3), "rack1")
    of = with_cluster(of, nicparams={"default": {"mode": "bridged", "link": "br0"}})
    of = put(of, "nodes", node(4, "group-rack1"))
    of = change(with_instance(of, "web1", "node-2"), hypervisor=HypervisorName.KVM)
    disk = of.disks["disk-web1"]  # type: ignore[index]
    local = put(of, "disks", base.replace(disk, dev_type=DiskTemplate.FILE))
    shared = put(of, "disks", base.replace(disk, dev_type=DiskTemplate.EXT, nodes=()))
    for config_, nodes in ((local, ["node-2"]), (shared, ["node-2", "node-3"])):
        needed = [
            n
            for n in ("node-2", "node-3", "node-4")
            if bridges.checks(
                config_,
                [config_.nodes[n]],  # type: ignore[index]
            )
        ]
        assert needed == nodes
