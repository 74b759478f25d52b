"""Command lines that try every option of every command that submits jobs, one at a time.

They are made from the commands as they are; what was recorded of them is replayed as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from ganeti.cli.command import Args, Command, Program
from ganeti.cli.option import Option
from ganeti.cli.options import SUBMIT_OPTIONS

#: Commands that act on this server, on others, or only ask.
NOT_RUN = {
    ("gnt-cluster", name)
    for name in ("accept-config", "command", "copyfile", "destroy", "epo", "init")
} | {
    ("gnt-cluster", "master-failover"),
    ("gnt-cluster", "recover-quorum"),
    ("gnt-cluster", "watcher"),
    ("gnt-debug", "locks"),
    ("gnt-debug", "metad"),
    ("gnt-debug", "test-jobqueue"),
    ("gnt-debug", "wconfd"),
    ("gnt-instance", "console"),
    ("gnt-debug", "submit-job"),
    ("gnt-job", "watch"),
}
#: What every line of a command begins with: what must be said, and what answers its question.
ALWAYS: dict[tuple[str, str], tuple[str, ...]] = {
    ("gnt-disk", "add"): ("-t", "plain", "-s", "1G"),
    ("gnt-instance", "add"): ("--disk", "0:size=1G"),
    ("gnt-disk", "modify"): ("--mode", "ro"),
    ("gnt-group", "modify"): ("--alloc-policy", "preferred"),
    ("gnt-instance", "modify"): ("-B", "vcpus=2"),
    ("gnt-instance", "move"): ("-n", "node2.example.com"),
    ("gnt-instance", "replace-disks"): ("-a",),
    ("gnt-instance", "reserve"): ("--disk", "0:size=1G"),
    ("gnt-network", "add"): ("--network", "192.0.2.0/24"),
    ("gnt-network", "connect"): ("-N", "mode=bridged,link=br0"),
    ("gnt-network", "modify"): ("--gateway", "192.0.2.3"),
    ("gnt-node", "add"): ("--no-node-setup",),
    ("gnt-node", "modify"): ("--drained", "no"),
    ("gnt-node", "modify-storage"): ("--allocatable", "yes"),
}
ANSWERS = ("--force", "--yes", "--force-multiple")
#: Value of an option, by its name; else by its kind.
BY_FLAG = {
    "--add-reserved-ips": "192.0.2.7,192.0.2.8",
    "--add-uids": "1000-1010,1020",
    "--compression-tools": "gzip,lzop",
    "--cpu-ratio": "2",
    "--data-collector-interval": "cpu-avg-load=5",
    "--disk": "0:size=2G,spindles=2",
    "--disk-parameters": "drbd:metavg=xenvg",
    "--disk-state": "lvm-vg/xenvg:total=1",
    "--disks": "0,2",
    "--enabled-data-collectors": "cpu-avg-load=no",
    "--enabled-disk-templates": "plain,drbd",
    "--enabled-hypervisors": "kvm,fake",
    "--expires": "2030-01-01",
    "--gateway": "192.0.2.1",
    "--gateway6": "2001:db8::1",
    "--hypervisor-state": "kvm:mem_node=1",
    "--iallocator": "hail",
    "--ignore-errors": "ENODERPC",
    "--ipolicy-bounds-specs": (
        "min:cpu-count=1,disk-count=1,disk-size=1G,memory-size=1G,nic-count=1,spindle-use=1"
        "/max:cpu-count=2,disk-count=2,disk-size=2G,memory-size=2G,nic-count=2,spindle-use=2"
    ),
    "--ipolicy-disk-templates": "plain,drbd",
    "--ipolicy-std-specs": "cpu-count=1",
    "--mac-prefix": "aa:00:01",
    "--net": "0:link=br1,mac=auto",
    "--network": "192.0.2.0/24",
    "--network6": "2001:db8::/64",
    "--nics": "00:11:22:33:44:56/192.0.2.4",
    "--nic-parameters": "mode=bridged,link=br1",
    "--remove-reserved-ips": "192.0.2.7",
    "--remove-uids": "1000",
    "--reserved-lvs": "a.*,b",
    "--secondary-ip": "192.0.2.9",
    "--tags": "a,b,,c\\",
    "--uid-pool": "1000-1010",
    "--owner": "eve",
    "--ssh-key": "",
    "--password-file": "",
    "--user-data": "",
    "--vendor-data": "",
    "--network-config": "",
}
BY_KIND = {
    "string": "word",
    "int": "7",
    "float": "1.5",
    "unit": "3G",
    "bool": "yes",
    "list": "a,b",
    "maybefloat": "1.5",
    "keyval": "one=1,two,no_three,-four",
    "keyprivateval": "one=1,-four",
    "identkeyval": "kvm:acpi=true,-boot_order",
}
BY_COMMAND = {
    ("gnt-cluster", "modify", "--backend-parameters"): "maxmem=1G,-vcpus",
    ("gnt-instance", "modify", "--disk"): "add:size=2G,name=d",
    ("gnt-instance", "modify", "--net"): "0:remove",
    ("gnt-instance", "startup", "--hypervisor-parameters"): "one=1,two,no_three",
    ("gnt-instance", "startup", "--backend-parameters"): "memory=1G",
    ("gnt-instance", "modify", "--hypervisor-parameters"): "acpi=true,-boot_order",
    ("gnt-network", "connect", "--nic-parameters"): "mode=routed,link=100,vlan=7",
    ("gnt-cluster", "verify", "--node-group"): "default",
}
BY_ARGUMENT = {
    "disk": "0",
    "host": "web9.example.com",
    "instance": "web1.example.com",
    "node": "node1.example.com",
    "seconds": "1.5",
    "size": "2G",
}
NEW_NODE = "node9.example.com"


def lines(program: Program, command: Command) -> Iterator[tuple[str, ...]]:
    """Words of a command: without options, then with each option alone."""
    key = (program.name, command.name)
    flags = {flag for option in command.options for flag in option.flags}
    base = ALWAYS.get(key, ()) + tuple(flag for flag in ANSWERS if flag in flags)
    args = arguments(program, command)
    yield (*base, *args)
    for option in command.options:
        if option in SUBMIT_OPTIONS:
            continue
        flag = option.flags[-1]
        for value in _values(key, option, flag):
            yield (*base, *value, *args)


def _values(key: tuple[str, str], option: Option, flag: str) -> Iterator[tuple[str, ...]]:
    if not option.takes_value:
        yield (flag,)
    elif option.choices:
        yield (flag, option.choices[-1])
    else:
        text = BY_COMMAND.get((*key, flag)) or BY_FLAG.get(flag) or BY_KIND.get(option.kind, "")
        if option.kind == "bool":
            yield (flag, "no")
        if text:
            yield (flag, text)
        if option.action == "append" and text:
            yield (flag, text, flag, text)


def arguments(program: Program, command: Command) -> tuple[str, ...]:
    """One word for each argument, two where any number is accepted."""
    found: list[str] = []
    for arg in command.args:
        found += _words(program, arg)
    return tuple(found)


def _words(program: Program, arg: Args) -> list[str]:
    if arg.choices:
        return [arg.choices[0]]
    if arg.kind == "host" and program.name == "gnt-node":
        return [NEW_NODE]
    word = BY_ARGUMENT.get(arg.kind, arg.kind)
    if arg.kind == "disk" and program.name == "gnt-disk":
        word = "disk1"
    if arg.kind == "instance" and arg.most is None:
        return [word, "web2.example.com"]
    return [word]
