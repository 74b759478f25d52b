"""Words of gnt-instance commands to opcodes, as they arrive at the master."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.base import jsonio
from ganeti.opcodes import registry


def drop_defaults(op: dict[str, Any]) -> dict[str, Any]:
    """An opcode without parameters that have their default."""
    fields = msgspec.structs.fields(registry.find(op["OP_ID"]))
    usual: dict[str, Any] = {}
    for field in fields:
        if field.default_factory is not msgspec.NODEFAULT:
            usual[field.name] = field.default_factory()
        elif field.default is not msgspec.NODEFAULT:
            usual[field.name] = field.default
    found = {key: value for key, value in op.items() if key not in usual or usual[key] != value}
    if op["OP_ID"] == "OP_RESERVATION_ADD":
        own = {"reason": [], "debug_level": None}
        found["instances"] = [drop_defaults({**item, **own}) for item in op["instances"]]
    return found


def create(name: str = "web1.example.com", **fields: Any) -> dict[str, Any]:
    return {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": name,
        "mode": "create",
        "disks": [],
        "nics": [{}],
        "no_install": False,
        **fields,
    }


def make_reservation(name: str, **fields: Any) -> dict[str, Any]:
    shape = create(name)
    del shape["no_install"]
    return {**shape, "forthcoming": True, **fields}


def make_op(op_id: str, **fields: Any) -> dict[str, Any]:
    return {"OP_ID": op_id, "instance_name": "web1", **fields}


ADD = "add -t diskless"

CASES: list[tuple[str, dict[str, Any]]] = [
    # where, how large
    (
        "add -t plain -n node1 -o debian+small -s 10G web1.example.com",
        create(
            disk_template="plain", pnode="node1", os_type="debian+small", disks=[{"size": 10240}]
        ),
    ),
    (
        "add --disk-template=drbd -n node1:node2 --no-start --no-wait-for-sync -g fast"
        " --disk 1:size=1,mode=ro --disk 0:size=1.5G,vg=ssd,metavg=m,name=root,spindles=2"
        " web1.example.com",
        create(
            disk_template="drbd",
            pnode="node1",
            snode="node2",
            start=False,
            wait_for_sync=False,
            group_name="fast",
            disks=[
                {"size": 1536, "vg": "ssd", "metavg": "m", "name": "root", "spindles": 2},
                {"size": 4, "mode": "ro"},
            ],
        ),
    ),
    (
        "add -t plain --disk 0:adopt=old -I hail --opportunistic-locking --no-install"
        " web1.example.com",
        create(
            disk_template="plain",
            disks=[{"adopt": "old", "size": 0}],
            iallocator="hail",
            opportunistic_locking=True,
            no_install=True,
        ),
    ),
    (
        "add -t ext --disk 0:size=4,provider=pvd,pool=fast web1.example.com",
        create(disk_template="ext", disks=[{"size": 4, "provider": "pvd", "pool": "fast"}]),
    ),
    (
        "add -t sharedfile -s 4 --file-driver loop --file-storage-dir sub web1.example.com",
        create(
            disk_template="sharedfile",
            disks=[{"size": 4}],
            file_driver="loop",
            file_storage_dir="sub",
        ),
    ),
    # NICs
    (f"{ADD} --no-nics web1.example.com", create(disk_template="diskless", nics=[])),
    (
        f"{ADD} --net 2:mac=auto --net 0:link=br0,ip=10.0.0.1,network=lan --no-conflicts-check"
        " web1.example.com",
        create(
            disk_template="diskless",
            conflicts_check=False,
            nics=[{"link": "br0", "ip": "10.0.0.1", "network": "lan"}, {}, {"mac": "auto"}],
        ),
    ),
    # parameters
    (
        f"{ADD} -B memory=1G,vcpus=2,no_auto_balance web1.example.com",
        create(
            disk_template="diskless",
            beparams={"minmem": 1024, "maxmem": 1024, "vcpus": 2, "auto_balance": False},
        ),
    ),
    (
        f"{ADD} -B maxmem=2g,memory=512,-vcpus,spindle_use=default web1.example.com",
        create(disk_template="diskless", beparams={"maxmem": 2048, "minmem": 512}),
    ),
    (
        f"{ADD} -H kvm:boot_order=network,acpi,no_pae,-kernel_path web1.example.com",
        create(
            disk_template="diskless",
            hypervisor="kvm",
            hvparams={"boot_order": "network", "acpi": True, "pae": False},
        ),
    ),
    (f"{ADD} -H fake web1.example.com", create(disk_template="diskless", hypervisor="fake")),
    (
        f"{ADD} -O root=yes --os-parameters-private pw=1 --os-parameters-secret key=2 --tags a,b"
        " --force-variant --ignore-ipolicy -c yes web1.example.com",
        create(
            disk_template="diskless",
            osparams={"root": "yes"},
            osparams_private={"pw": "1"},
            osparams_secret={"key": "2"},
            tags=["a", "b"],
            force_variant=True,
            ignore_ipolicy=True,
            instance_communication=True,
        ),
    ),
    (
        f"{ADD} --ip-check --name-check --no-ip-check --no-name-check --forthcoming"
        " web1.example.com",
        create(disk_template="diskless", ip_check=True, name_check=True, forthcoming=True),
    ),
    (
        f"{ADD} --commit --helper-startup-timeout 5 --helper-shutdown-timeout 6 web1.example.com",
        create(
            disk_template="diskless",
            commit=True,
            helper_startup_timeout=5,
            helper_shutdown_timeout=6,
            nics=[],
        ),
    ),
    (
        "add --commit web1.example.com",
        create(commit=True, nics=[]),
    ),
    (
        "add --forthcoming",
        create("", forthcoming=True),
    ),
    (
        "reserve -t diskless --no-nics -o noop -I hail --owner alice web1 web2",
        {
            "OP_ID": "OP_RESERVATION_ADD",
            "iallocator": "hail",
            "owner": "alice",
            "instances": [
                make_reservation("web1", disk_template="diskless", nics=[], os_type="noop"),
                make_reservation("web2", disk_template="diskless", nics=[], os_type="noop"),
            ],
        },
    ),
    (
        "add --forthcoming --expires 2040-01-01T00:00:00+00:00 -n node1 --no-install",
        {
            "OP_ID": "OP_RESERVATION_ADD",
            "expires": 2208988800.0,
            "instances": [make_reservation("", pnode="node1", no_install=True)],
        },
    ),
    (
        "modify-reservation --owner bob --expires never --note x web1",
        make_op("OP_RESERVATION_SET_PARAMS", owner="bob", never_expires=True, note="x"),
    ),
    # remove, rename
    (
        "remove -f --ignore-failures --shutdown-timeout 3 web1",
        make_op("OP_INSTANCE_REMOVE", ignore_failures=True, shutdown_timeout=3),
    ),
    (
        "rename --name-check web1 web2",
        make_op("OP_INSTANCE_RENAME", new_name="web2", name_check=True),
    ),
    # disks
    (
        "activate-disks --ignore-size --wait-for-sync web1",
        make_op("OP_INSTANCE_ACTIVATE_DISKS", ignore_size=True, wait_for_sync=True),
    ),
    ("deactivate-disks -f web1", make_op("OP_INSTANCE_DEACTIVATE_DISKS", force=True)),
    ("grow-disk web1 2 1.5G", make_op("OP_INSTANCE_GROW_DISK", disk=2, amount=1536)),
    (
        "grow-disk --absolute --no-wait-for-sync --ignore-ipolicy web1 0 3",
        make_op(
            "OP_INSTANCE_GROW_DISK",
            disk=0,
            amount=4,
            absolute=True,
            wait_for_sync=False,
            ignore_ipolicy=True,
        ),
    ),
    ("recreate-disks web1", make_op("OP_INSTANCE_RECREATE_DISKS")),
    (
        "recreate-disks --disk 2 --disk 0:size=2G,spindles=3 -n a:b web1",
        make_op(
            "OP_INSTANCE_RECREATE_DISKS",
            nodes=["a", "b"],
            disks=[[0, {"size": 2048, "spindles": 3}], [2, {}]],
        ),
    ),
    ("recreate-disks -I . web1", make_op("OP_INSTANCE_RECREATE_DISKS", iallocator=".")),
    (
        "replace-disks -p --disks 0,2 web1",
        make_op("OP_INSTANCE_REPLACE_DISKS", mode="replace_on_primary", disks=[0, 2]),
    ),
    ("replace-disks -s web1", make_op("OP_INSTANCE_REPLACE_DISKS", mode="replace_on_secondary")),
    ("replace-disks -a web1", make_op("OP_INSTANCE_REPLACE_DISKS", mode="replace_auto")),
    (
        "replace-disks -n node3 --early-release --ignore-ipolicy web1",
        make_op(
            "OP_INSTANCE_REPLACE_DISKS",
            mode="replace_new_secondary",
            remote_node="node3",
            early_release=True,
            ignore_ipolicy=True,
        ),
    ),
    (
        "replace-disks -I hail web1",
        make_op("OP_INSTANCE_REPLACE_DISKS", mode="replace_new_secondary", iallocator="hail"),
    ),
    # moves
    (
        "failover -f -n node3 --ignore-consistency --cleanup --shutdown-timeout 1 web1",
        make_op(
            "OP_INSTANCE_FAILOVER",
            target_node="node3",
            ignore_consistency=True,
            cleanup=True,
            shutdown_timeout=1,
        ),
    ),
    ("migrate -f web1", make_op("OP_INSTANCE_MIGRATE")),
    ("migrate -f --non-live web1", make_op("OP_INSTANCE_MIGRATE", mode="non-live")),
    (
        "migrate -f --migration-mode live -I hail --allow-failover --no-runtime-changes"
        " --ignore-hvversions --cleanup web1",
        make_op(
            "OP_INSTANCE_MIGRATE",
            mode="live",
            iallocator="hail",
            allow_failover=True,
            allow_runtime_changes=False,
            ignore_hvversions=True,
            cleanup=True,
        ),
    ),
    (
        "move -f -n node2 --compress gzip --ignore-consistency web1",
        make_op("OP_INSTANCE_MOVE", target_node="node2", compress="gzip", ignore_consistency=True),
    ),
    # settings
    (
        "modify -B -maxmem,vcpus=4,minmem=default,ha=default web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS",
            beparams={"maxmem": "default", "vcpus": 4, "minmem": "default", "ha": "default"},
        ),
    ),
    (
        "modify --hypervisor-parameters=boot_order=network,-acpi web1",
        make_op("OP_INSTANCE_SET_PARAMS", hvparams={"boot_order": "network", "acpi": "default"}),
    ),
    (
        "modify -o debian -O a=1,-b --os-parameters-private p=1 --force-variant web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS",
            os_name="debian",
            osparams={"a": "1", "b": "default"},
            osparams_private={"p": "1"},
            force_variant=True,
        ),
    ),
    (
        "modify --disk add:size=1G --disk 1:add,size=3,mode=ro --disk remove --disk -1:remove"
        " --disk root:mode=rw --disk 0:attach,uuid=u --disk 0:detach --disk 2:modify,name=x web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS",
            disks=[
                ["add", -1, {"size": 1024}],
                ["add", 1, {"size": 4, "mode": "ro"}],
                ["remove", -1, {}],
                ["remove", -1, {}],
                ["modify", "root", {"mode": "rw"}],
                ["attach", 0, {"uuid": "u"}],
                ["detach", 0, {}],
                ["modify", 2, {"name": "x"}],
            ],
        ),
    ),
    (
        "modify --net add --net 0:ip=none,network=lan --net 1:remove --no-hotplug"
        " --no-conflicts-check web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS",
            hotplug=False,
            conflicts_check=False,
            nics=[
                ["add", -1, {}],
                ["modify", 0, {"ip": "none", "network": "lan"}],
                ["remove", 1, {}],
            ],
        ),
    ),
    (
        "modify -t drbd -n node2 --no-wait-for-sync --ignore-ipolicy -f web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS",
            disk_template="drbd",
            remote_node="node2",
            force=True,
            wait_for_sync=False,
            ignore_ipolicy=True,
        ),
    ),
    (
        "modify -t ext -e provider=p,x=1 web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS", disk_template="ext", ext_params={"provider": "p", "x": "1"}
        ),
    ),
    (
        "modify --new-primary node2 -m 1G -c no web1",
        make_op(
            "OP_INSTANCE_SET_PARAMS", pnode="node2", runtime_mem=1024, instance_communication=False
        ),
    ),
    ("modify --offline web1", make_op("OP_INSTANCE_SET_PARAMS", offline=True)),
    ("modify --online web1", make_op("OP_INSTANCE_SET_PARAMS", offline=False)),
    ("modify --reseed web1", make_op("OP_INSTANCE_SET_PARAMS", reseed=True)),
    # tags
    (
        "add-tags web1 a b",
        {"OP_ID": "OP_TAGS_SET", "kind": "instance", "name": "web1", "tags": ["a", "b"]},
    ),
    (
        "remove-tags web1 a",
        {"OP_ID": "OP_TAGS_DEL", "kind": "instance", "name": "web1", "tags": ["a"]},
    ),
]


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[words for words, _ in CASES])
def test_words_become_one_opcode(
    master: RecordingMaster, gnt_instance: Run, words: str, expected: dict[str, Any]
) -> None:
    master.results["OP_INSTANCE_ACTIVATE_DISKS"] = []
    ran = gnt_instance(words)
    assert (ran.code, ran.err) == (0, "")
    assert drop_defaults(master.op) == expected


POWER = [
    ("startup web1", make_op("OP_INSTANCE_STARTUP")),
    (
        "start -f --paused --ignore-offline --no-remember -H acpi=true -B memory=300,vcpus=2 web1",
        make_op(
            "OP_INSTANCE_STARTUP",
            force=True,
            startup_paused=True,
            ignore_offline_nodes=True,
            no_remember=True,
            hvparams={"acpi": "true"},
            beparams={"minmem": 300, "maxmem": 300, "vcpus": 2},
        ),
    ),
    (
        "shutdown --timeout 7 --ignore-offline --no-remember web1",
        make_op(
            "OP_INSTANCE_SHUTDOWN",
            timeout=7,
            ignore_offline_nodes=True,
            no_remember=True,
            admin_state_source="admin",
        ),
    ),
    ("stop -f web1", make_op("OP_INSTANCE_SHUTDOWN", force=True, admin_state_source="admin")),
    ("reboot web1", make_op("OP_INSTANCE_REBOOT", reboot_type="hard")),
    (
        "reboot -t full --ignore-secondaries --shutdown-timeout 9 web1",
        make_op(
            "OP_INSTANCE_REBOOT", reboot_type="full", ignore_secondaries=True, shutdown_timeout=9
        ),
    ),
    (
        "reinstall -f -o debian+x --force-variant -O a=1 --os-parameters-secret k=v web1",
        make_op(
            "OP_INSTANCE_REINSTALL",
            os_type="debian+x",
            force_variant=True,
            osparams={"a": "1"},
            osparams_secret={"k": "v"},
        ),
    ),
    ("reinstall -f web1", make_op("OP_INSTANCE_REINSTALL")),
]


@pytest.mark.parametrize(("words", "expected"), POWER, ids=[words for words, _ in POWER])
def test_words_for_one_of_possibly_many_instances(
    master: RecordingMaster, gnt_instance: Run, words: str, expected: dict[str, Any]
) -> None:
    master.add_instance("web1.example.com")
    ran = gnt_instance(words)
    assert ran.code == 0
    assert ran.out == "Waiting for job 1 for web1.example.com ...\n"
    assert drop_defaults(master.op) == {**expected, "instance_name": "web1.example.com"}


def test_common_parameters_and_the_reason_trail(master: RecordingMaster, gnt_instance: Run) -> None:
    before = time.time_ns()
    assert (
        gnt_instance(
            "remove", "-f", "--dry-run", "--priority", "high", "--reason", "too old", "-d", "web1"
        ).code
        == 0
    )
    ((op,),) = master.jobs
    assert (op["dry_run"], op["priority"], op["debug_level"]) == (True, -10, 1)
    user, client = op["reason"]
    assert user[:2] == ["gnt:user", "too old"]
    assert client[:2] == ["gnt:client:gnt-instance", "remove"]
    assert before <= user[2] <= client[2] <= time.time_ns()


def test_submit_prints_the_id_and_does_not_wait(master: RecordingMaster, gnt_instance: Run) -> None:
    ran = gnt_instance("remove -f --submit web1")
    assert (ran.code, ran.out, ran.err) == (0, "", "JobID: 1\n")
    ran = gnt_instance("remove -f --submit --print-jobid web1")
    assert (ran.code, ran.out, ran.err) == (0, "2\n", "JobID: 2\n")
    assert {method for method, _ in master.requests} == {"SubmitJob"}


def test_the_log_of_the_job_is_shown(master: RecordingMaster, gnt_instance: Run) -> None:
    master.logs["OP_INSTANCE_CREATE"] = ["* creating instance disks...", "* starting instance..."]
    ran = gnt_instance("add -t diskless --no-install web1.example.com")
    assert ran.out.splitlines()[0].endswith(" 2023 * creating instance disks...")
    assert ran.out.splitlines()[1].endswith(" 2023 * starting instance...")


def test_results_are_told(master: RecordingMaster, gnt_instance: Run) -> None:
    master.results["OP_INSTANCE_RENAME"] = "web2.example.com"
    assert gnt_instance("rename web1 web2").out == (
        "Instance 'web1' has been renamed to 'web2.example.com'\n"
    )
    master.results["OP_INSTANCE_ACTIVATE_DISKS"] = [["node1", "disk/0", "/dev/xenvg/d0"]]
    assert gnt_instance("activate-disks web1").out == "node1:disk/0:/dev/xenvg/d0\n"
    master.results["OP_INSTANCE_SET_PARAMS"] = [["be/vcpus", 4], ["os", "debian"]]
    ran = gnt_instance("modify -B vcpus=4 web1")
    assert ran.out == "Modified instance web1\n - be/vcpus -> 4\n - os    -> debian\n"
    assert "started next time" in ran.err


def test_a_failed_job_is_explained(master: RecordingMaster, gnt_instance: Run) -> None:
    master.failures["OP_INSTANCE_REMOVE"] = errors.OpPrereqError(
        "instance 'web1' is not known", errors.ErrorCode.NOENT
    )
    ran = gnt_instance("remove -f web1")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "instance 'web1' is not known",
    ]
    master.failures["OP_INSTANCE_REMOVE"] = errors.OpExecError("disk is busy")
    ran = gnt_instance("remove -f web1")
    assert ran.code == 1
    assert ran.err.splitlines() == ["disk is busy"]


def test_secrets_stay_out_of_the_command_log(master: RecordingMaster, gnt_instance: Run) -> None:
    gnt_instance("add -t diskless --os-parameters-secret pw=hunter2 web1.example.com")
    log = (master.where.log / "commands.log").read_text()
    assert "hunter2" not in log
    assert "add -t diskless --os-parameters-secret '<hidden>' web1.example.com" in log
    assert master.op["osparams_secret"] == {"pw": "hunter2"}


# several jobs from one opcode ----------------------------------------------------------------


def children(*jobs: list[Any]) -> dict[str, Any]:
    return {"jobs": list(jobs)}


def test_a_change_of_group_waits_for_its_jobs(master: RecordingMaster, gnt_instance: Run) -> None:
    master.results["OP_INSTANCE_CHANGE_GROUP"] = children([True, 1], [True, 1])
    ran = gnt_instance("change-group --to a --to b -I hail --early-release web1")
    assert ran.code == 0
    assert drop_defaults(master.op) == make_op(
        "OP_INSTANCE_CHANGE_GROUP", target_groups=["a", "b"], iallocator="hail", early_release=True
    )
    assert ran.out.splitlines() == [
        "Submitted jobs 1, 1",
        "Waiting for job 1 ...",
        "Waiting for job 1 ...",
        "Instance 'web1' is in another node group now",
    ]
    master.results["OP_INSTANCE_CHANGE_GROUP"] = children([False, "queue is full"])
    ran = gnt_instance("change-group web1")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "Failed to submit job: queue is full",
        "There were errors: 1 job failed",
    ]


def test_a_batch_is_one_opcode(master: RecordingMaster, gnt_instance: Run, tmp_path: Path) -> None:
    wanted = [
        {"instance_name": "a", "disk_template": "plain", "disks": [{"size": "1G"}], "nics": []},
        {"instance_name": "b", "mode": "create", "disks": [], "nics": [{}], "os_type": "debian"},
    ]
    path = tmp_path / "instances.json"
    path.write_text(jsonio.dumps(wanted))
    master.results["OP_INSTANCE_MULTI_ALLOC"] = {
        **children([True, 1]),
        "allocatable": ["a"],
        "failed": ["b"],
    }
    ran = gnt_instance("batch-create", "-I", "hail", str(path))
    assert ran.code == 1
    assert "No nodes can be allocated for instance b" in ran.err
    op = master.op
    assert (op["OP_ID"], op["iallocator"]) == ("OP_INSTANCE_MULTI_ALLOC", "hail")
    assert [drop_defaults(item) for item in op["instances"]] == [
        {
            "OP_ID": "OP_INSTANCE_CREATE",
            "instance_name": "a",
            "mode": "create",
            "nics": [],
            "disk_template": "plain",
            "disks": [{"size": 1024}],
        },
        {
            "OP_ID": "OP_INSTANCE_CREATE",
            "instance_name": "b",
            "mode": "create",
            "nics": [{}],
            "disks": [],
            "os_type": "debian",
        },
    ]
    master.results["OP_INSTANCE_MULTI_ALLOC"] = {
        **children([True, 1]),
        "allocatable": ["a", "b"],
        "failed": [],
    }
    ran = gnt_instance("batch-create", str(path))
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "All instances were created"
