"""What the fields of each kind say, and with which status."""

import pytest
from query_cluster import StubSources, config, instance, node

from ganeti.model import job as job_model
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, AdminStateSource, DiskTemplate
from ganeti.model.filter_rule import FilterRule
from ganeti.model.group import NodeGroup
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.query import engine
from ganeti.query.kinds.os import diagnose_filter
from ganeti.query.live import ClusterFacts, JobView, LockView, NodeRequest
from ganeti.rpc.objects import ExtStorageInfo, InstanceInfo, OsInfo

UP, DOWN, OFF = AdminState.UP, AdminState.DOWN, AdminState.OFFLINE
RUNS = InstanceInfo(memory=256, vcpus=2, state=0)
STOPPED = InstanceInfo(memory=256, vcpus=2, state=1)


def data(sources, what, fields, qfilter=None):
    return engine.query(sources, what, fields, qfilter)["data"]


# nodes ---------------------------------------------------------------------------------------


@pytest.fixture
def nodes():
    """Nodes: one that answers, one that is down, one offline, one without instances."""
    members = [node(1), node(2), node(3, offline=True), node(4, vm_capable=False)]
    sources = StubSources(config(members))
    sources.down = {"n2"}
    storage = [{"type": "lvm-vg", "name": "xenvg", "storage_free": 70, "storage_size": 100}]
    memory = {"memory_total": 4096, "memory_free": 1024, "memory_dom0": 512, "cpu_total": 8}
    sources.nodes["n1"] = ("boot1", storage, [memory])
    return sources


def test_live_node_fields_and_their_statuses(nodes):
    found = data(nodes, "node", ["name", "bootid", "mfree", "dtotal", "dfree", "cnodes"])
    assert [row[1:] for row in found] == [
        [(0, "boot1"), (0, 1024), (0, 100), (0, 70), (2, None)],
        [(2, None)] * 5,
        [(4, None)] * 5,
        [(0, "boot"), (3, None), (3, None), (3, None), (3, None)],
    ]
    ((call, asked),) = nodes.calls
    assert call == "node_info"
    assert set(asked) == {"n1", "n2", "n4"}
    assert asked["n4"] == NodeRequest()


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("bootid", NodeRequest()),
        ("mfree", NodeRequest(hypervisors=("kvm",))),
        ("ctotal", NodeRequest(hypervisors=("kvm",))),
        ("dfree", NodeRequest(units=(("lvm-vg", "xenvg", [False]),))),
        ("spfree", NodeRequest(units=(("lvm-pv", "xenvg", [False]),))),
    ],
)
def test_nodes_are_asked_for_no_more_than_is_wanted(nodes, field, request_):
    data(nodes, "node", [field])
    ((_, asked),) = nodes.calls
    assert asked["n1"] == request_
    assert set(asked) == ({"n1", "n2", "n4"} if field == "bootid" else {"n1", "n2"})


def test_no_call_when_all_nodes_are_offline(nodes):
    assert data(nodes, "node", ["mfree"], ["==", "name", "node3"]) == [[(4, None)]]
    assert nodes.calls == []


def test_static_node_fields():
    members = [
        node(1, ndparams={"oob_program": "/bin/oob"}),
        node(2, drained=True),
        node(3, offline=True),
        node(4, master_candidate=True),
    ]
    guests = [instance(10), instance(9), instance(1, disks=("d",), primary_node="n2")]
    disk = Disk(uuid="d", dev_type=DiskTemplate.DRBD, nodes=("n2", "n1"), iv_name="disk/0", size=1)
    sources = StubSources(config(members, guests, disks=[disk]))
    fields = ["role", "powered", "pinst_list", "sinst_cnt", "hv_state", "group", "ndp/ssh_port"]
    found = data(sources, "node", fields)
    assert [row[0] for row in found] == [(0, role) for role in "MDOC"]
    assert [row[1] for row in found] == [(0, True), (3, None), (3, None), (3, None)]
    assert found[0][2:] == [
        (0, ["inst9.example.com", "inst10.example.com"]),
        (0, 1),
        (3, None),
        (0, "default"),
        (0, 22),
    ]


# instances -----------------------------------------------------------------------------------

#: What htools ask of all instances: released versions, and the oldest that we know.
HTOOLS = [
    "name",
    "disk_usage",
    "be/memory",
    "be/vcpus",
    "status",
    "pnode",
    "snodes",
    "tags",
    "be/auto_balance",
    "disk_template",
]
NEWER = ["be/spindle_use", "disk.sizes", "disk.spindles", "forthcoming"]


@pytest.mark.parametrize(
    ("fields", "qfilter", "seen"),
    [
        (HTOOLS, None, ["inst1.example.com"]),
        ([*HTOOLS, *NEWER], None, ["inst1.example.com"]),
        (["name", "pnode", "status"], None, ["inst1.example.com", "u2"]),
        ([*HTOOLS, *NEWER], ["?", "forthcoming"], ["u2"]),
    ],
)
def test_a_reservation_without_a_node_does_not_keep_htools_from_loading(fields, qfilter, seen):
    placeless = instance(2, forthcoming=True, name=None, primary_node="", uuid="u2")
    sources = StubSources(config([node(1)], [instance(1), placeless]))
    sources.running["n1"] = {"inst1.example.com": RUNS}
    found = data(sources, "instance", fields, qfilter)
    assert [row[0][1] for row in found] == seen
    if qfilter is None and fields[1] == "disk_usage":
        assert {status for row in found for status, _value in row} == {0}


@pytest.mark.parametrize(
    ("state", "source", "info", "expected"),
    [
        (UP, "admin", RUNS, "running"),
        (UP, "admin", None, "ERROR_down"),
        (UP, "admin", STOPPED, "USER_down"),
        (DOWN, "admin", RUNS, "ERROR_up"),
        (DOWN, "admin", None, "ADMIN_down"),
        (DOWN, "user", None, "USER_down"),
        (OFF, "admin", None, "ADMIN_offline"),
        (OFF, "admin", RUNS, "ERROR_up"),
    ],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_instance_status(state, source, info, expected, allowed):
    guest = instance(
        1,
        admin_state=state,
        admin_state_source=AdminStateSource(source),
        hvparams={"user_shutdown": True},
    )
    sources = StubSources(config([], [guest], enabled_user_shutdown=allowed))
    sources.running["n1"] = {guest.name: info} if info else {}
    if expected == "USER_down" and not allowed:
        expected = "ERROR_down" if state is UP else "ADMIN_down"
    assert data(sources, "instance", ["status"]) == [[(0, expected)]]


def test_instances_on_nodes_that_are_down_offline_or_wrong():
    members = [node(1), node(2), node(3, offline=True)]
    disk = Disk(uuid="d", dev_type=DiskTemplate.DRBD, nodes=("n1", "n2"), iv_name="disk/0", size=1)
    guests = [
        instance(1, disks=("d",)),
        instance(2, primary_node="n2"),
        instance(3, primary_node="n3"),
        instance(4, forthcoming=True),
    ]
    sources = StubSources(config(members, guests, disks=[disk]))
    sources.running["n2"] = {"inst1.example.com": RUNS}
    fields = ["status", "oper_state", "oper_ram", "oper_vcpus"]
    found = data(sources, "instance", fields)
    assert found[0] == [(0, "ERROR_wrongnode"), (0, True), (0, 256), (0, 2)]
    assert found[2] == [(0, "ERROR_nodeoffline"), (4, None), (4, None), (4, None)]
    assert found[3][1:] == [(3, None)] * 3
    sources.down = {"n2"}
    found = data(sources, "instance", fields)
    assert found[0] == [(0, "ERROR_down"), (0, False), (3, None), (3, None)]
    assert found[1] == [(0, "ERROR_nodedown"), (2, None), (2, None), (2, None)]


def test_instance_cards_disks_and_parameters():
    disks = [
        Disk(uuid="d1", dev_type=DiskTemplate.DRBD, nodes=("n1", "n2"), iv_name="disk/0", size=20),
        Disk(uuid="d2", dev_type=DiskTemplate.PLAIN, nodes=("n1",), iv_name="disk/1", size=8),
    ]
    cards = (
        Nic(uuid="c1", mac="aa:00:00:00:00:01", ip="192.0.2.9"),
        Nic(uuid="c2", mac="aa:00:00:00:00:02", network="net"),
    )
    net = Network(uuid="net", name="net1", network="198.51.100.0/28")
    linked = {"net": {"mode": "openvswitch", "link": "sw", "vlan": "100"}}
    group = NodeGroup(uuid="g1", name="default", networks=linked)
    guest = instance(1, disks=("d1", "d2"), nics=cards, hvparams={"acpi": False})
    sources = StubSources(
        config([node(1), node(2)], [guest], disks=disks, networks=[net], groups=[group])
    )

    def value(name):
        return data(sources, "instance", [name])[0][0]

    assert value("nic.bridges") == (0, ["br0", None])
    assert value("nic.vlans") == (0, [None, "100"])
    assert value("nic.networks.names") == (0, [None, "net1"])
    assert value("nic.ip/1") == value("nic.ip/5") == value("nic.network/0") == (3, None)
    assert value("nic.link/1") == (0, "sw")
    assert value("disk_usage") == (0, 20 + 128 + 8)
    assert value("disk_template") == (0, "mixed")
    assert value("snodes") == (0, ["node2.example.com"])
    assert value("snodes.group") == (0, ["default"])
    assert value("hv/acpi") == (0, False)
    assert value("hv/root_path") == (0, None)
    assert value("hv/pae") == (3, None)
    assert value("hv/migration_mode") == (1, None)
    assert "migration_mode" not in value("hvparams")[1]
    assert value("be/memory") == value("be/maxmem") == (0, 128)
    assert value("network_port") == (3, None)


def test_private_os_parameters_are_hidden():
    private = {"debian": {"key": "cluster secret"}}
    guest = instance(1, osparams={"mirror": "a"}, osparams_private={"own": "instance secret"})
    sources = StubSources(config([], [guest], osparams_private_cluster=private))
    everything = data(sources, "instance", ["osparams", "custom_osparams"])
    assert set(everything[0][0][1]) == {"mirror", "key", "own"}
    assert "cluster secret" not in str(everything)
    assert "instance secret" not in str(everything)


# exports -------------------------------------------------------------------------------------


def test_exports():
    sources = StubSources(config([node(1), node(2), node(3, offline=True), node(4)]))
    sources.exported["n1"] = ["web10", "web9"]
    sources.down = {"n4"}
    assert data(sources, "export", ["node", "export"]) == [
        [(0, "node1.example.com"), (0, "web9")],
        [(0, "node1.example.com"), (0, "web10")],
        [(0, "node2.example.com"), (2, None)],
        [(0, "node3.example.com"), (4, None)],
        [(0, "node4.example.com"), (2, None)],
    ]
    assert sources.calls == [("exports", ["n1", "n2", "n4"])]
    by_node = ["|", ["==", "node", "node2"], ["==", "node", "n1"]]
    found = data(sources, "export", ["export"], by_node)
    assert found == [[(2, None)], [(0, "web9")], [(0, "web10")]]
    by_both = ["&", ["=~", "export", "9$"], ["==", "node", "node1"]]
    matched = data(sources, "export", ["export"], by_both)
    assert matched == [[(0, "web9")]]


# jobs ----------------------------------------------------------------------------------------


def job(job_id, *statuses, archived=False, **changes):
    ops = [
        {
            "input": {"OP_ID": "OP_TEST_DELAY", "duration": 1.0, "reason": []},
            "status": status,
            "result": None,
            "log": [],
            "priority": index,
        }
        for index, status in enumerate(statuses)
    ]
    record = {"id": job_id, "ops": ops, **changes}
    return JobView(job_model.from_wire(record), archived)


@pytest.fixture
def queue():
    sources = StubSources(config())
    sources.queue = {
        10: job(10, "running", received_timestamp=[1000, 900_000]),
        9: job(9, "success", "error", "error", received_timestamp=[999, 1]),
        2: job(2, "success", archived=True),
    }
    return sources


def test_jobs_come_by_id_and_without_archive(queue):
    assert data(queue, "job", ["id"]) == [[(0, 9)], [(0, 10)]]
    assert queue.calls == [("job_ids", False)]


def test_the_archive_is_searched_when_the_field_is_used(queue):
    assert data(queue, "job", ["id", "archived"]) == [
        [(0, 2), (0, True)],
        [(0, 9), (0, False)],
        [(0, 10), (0, False)],
    ]
    assert data(queue, "job", ["id"], ["?", "archived"]) == [[(0, 2)]]
    by_id = ["==", "id", 2]
    assert data(queue, "job", ["id", "status"], by_id) == [[(0, 2), (3, None)]]
    assert data(queue, "job", ["status", "archived"], by_id) == [[(0, "success"), (0, True)]]


def test_job_ids_are_looked_up_in_their_order_and_may_be_unknown(queue):
    wanted = ["|", ["==", "id", 10], ["==", "id", 77], ["==", "id", "9"]]
    found = data(queue, "job", ["id", "status"], wanted)
    assert found == [[(0, 10), (0, "running")], [(0, 77), (3, None)], [(0, 9), (0, "error")]]


def test_job_filters(queue):
    assert data(queue, "job", ["id"], ["<", "id", 10]) == [[(0, 9)]]
    assert data(queue, "job", ["id"], ["==", "status", "running"]) == [[(0, 10)]]
    assert data(queue, "job", ["id"], ["<=", "received_ts", 1000]) == [[(0, 9)], [(0, 10)]]
    assert data(queue, "job", ["id"], ["<", "received_ts", 1000]) == [[(0, 9)]]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], "success"),
        (["success", "success"], "success"),
        (["queued", "queued"], "queued"),
        (["success", "queued"], "queued"),
        (["success", "waiting", "queued"], "waiting"),
        (["success", "running", "queued"], "running"),
        (["success", "error", "error"], "error"),
        (["canceling", "queued"], "canceling"),
        (["success", "canceled"], "canceled"),
    ],
)
def test_job_status(queue, statuses, expected):
    queue.queue = {1: job(1, *statuses)}
    assert data(queue, "job", ["status"]) == [[(0, expected)]]


def test_secrets_of_jobs_are_hidden(queue):
    view = job(1, "queued")
    view.record.ops[0].input["osparams_secret"] = {"password": "sesame"}
    queue.queue = {1: view}
    ((_, ops), (_, summary)) = data(queue, "job", ["ops", "summary"])[0]
    assert "sesame" not in str(ops)
    assert set(ops[0]["osparams_secret"]) == {"password"}
    assert len(summary) == 1


# the rest ------------------------------------------------------------------------------------


def test_locks():
    sources = StubSources(config())
    sources.lock_list = [
        LockView("node/n10"),
        LockView("node/n9", "exclusive", [91], [("shared", [92, "main"])]),
    ]
    assert data(sources, "lock", ["name", "mode", "owner", "pending"]) == [
        [(0, "node/n9"), (0, "exclusive"), (0, ["91"]), (0, [["shared", ["92", '"main"']]])],
        [(0, "node/n10"), (0, None), (0, []), (0, [])],
    ]
    assert sources.calls == [("locks", None)]


def test_networks():
    net = Network(
        uuid="net",
        name="net1",
        network="198.51.100.0/29",
        reservations="00010000",
        ext_reservations="10000101",
    )
    pool = Network(uuid="bare", name="bare", network="192.0.2.0/24")
    linked = {"net": {"mode": "routed", "link": "100", "vlan": ""}}
    groups = [NodeGroup(uuid="g1", name="default", networks=linked)]
    guest = instance(1, nics=(Nic(uuid="c", mac="aa:00:00:00:00:01", network="net"),))
    sources = StubSources(config([], [guest], networks=[net, pool], groups=groups))
    fields = ["map", "free_count", "reserved_count", "external_reservations", "group_list"]
    found = data(sources, "network", [*fields, "inst_list", "mac_prefix"])
    assert found[0] == [(3, None)] * 4 + [(0, []), (0, []), (3, None)]
    assert found[1] == [
        (0, "X..X.X.X"),
        (0, 4),
        (0, 4),
        (0, "198.51.100.0, 198.51.100.5, 198.51.100.7"),
        (0, [["default", "routed", "100", ""]]),
        (0, ["inst1.example.com"]),
        (3, None),
    ]


def test_groups():
    group = NodeGroup(uuid="g1", name="default", ndparams={"ssh_port": 2222})
    sources = StubSources(config([node(2), node(1)], [instance(1)], groups=[group]))
    fields = ["node_cnt", "node_list", "pinst_cnt", "alloc_policy", "ndp/ssh_port", "diskparams"]
    assert data(sources, "group", fields) == [
        [
            (0, 2),
            (0, ["node1.example.com", "node2.example.com"]),
            (0, 1),
            (0, "preferred"),
            (0, 2222),
            (0, {"drbd": {"metavg": "xenvg", "protocol": "C"}, "plain": {"stripes": 1}}),
        ]
    ]


def test_filter_rules():
    rules = [
        FilterRule(uuid="b", watermark=5, priority=1, action=["RATE_LIMIT", 2]),
        FilterRule(uuid="a", watermark=4, priority=9, predicates=(["jobid", [">", "id", 1]],)),
    ]
    sources = StubSources(config(filters=rules))
    assert data(sources, "filter", ["uuid", "priority", "action", "predicates"]) == [
        [(0, "a"), (0, 9), (0, "CONTINUE"), (0, [["jobid", [">", "id", 1]]])],
        [(0, "b"), (0, 1), (0, ["RATE_LIMIT", 2]), (0, [])],
    ]
    assert data(sources, "filter", ["uuid"], ["<", "priority", 5]) == [[(0, "b")]]


def test_the_cluster_is_one_row():
    sources = StubSources(config())
    sources.facts = ClusterFacts(drained=True, architecture=("64bits", "x86_64"))
    found = data(sources, "cluster", ["name", "cluster_name", "master_node", "config_version"])
    name = (0, "cluster.example.com")
    assert found == [[name, name, (0, "node1.example.com"), (0, 3020000)]]
    assert sources.calls == []
    assert data(sources, "cluster", ["drain_flag", "watcher_pause", "architecture"]) == [
        [(0, True), (3, None), (0, ["64bits", "x86_64"])]
    ]


def definition(name, **changes):
    values = {
        "path": f"/srv/os/{name}",
        "valid": True,
        "diagnose": "",
        "variants": ["a", "b"],
        "parameters": [("mirror", "Where from")],
        "api_versions": [20, 15],
    }
    return OsInfo(name=name, **(values | changes))


def test_os_definitions():
    sources = StubSources(config([node(1), node(2), node(3, offline=True)], hidden_os=("lenny",)))
    sources.os = {
        "n1": [definition("debian"), definition("lenny")],
        "n2": [definition("debian", variants=["b"], api_versions=[20])],
    }
    found = data(sources, "os", ["name", "valid", "hidden", "variants", "api_versions"])
    assert found == [
        [(0, "debian"), (0, True), (0, False), (0, ["b"]), (0, [20])],
        [(0, "lenny"), (0, False), (0, True), (0, []), (0, [])],
    ]
    assert sources.calls == [("os_diagnose", ["n1", "n2"])]
    assert data(sources, "os", ["name"], diagnose_filter(["name"], [])) == [[(0, "debian")]]


def test_storage_providers():
    sources = StubSources(config([node(1), node(2)]))
    sources.providers = {"n1": [ExtStorageInfo("ceph", "/p", True, "", [("pool", "Pool")])]}
    found = data(sources, "extstorage", ["name", "nodegroup_status", "parameters"])
    assert found == [[(0, "ceph"), (0, {"default": {"valid": False}}), (0, [["pool", "Pool"]])]]
