"""What gnt-instance says to words that make no sense: one sentence, an exit code, no job."""

from __future__ import annotations

from pathlib import Path

import pytest
from recording_master import RecordingMaster, Run

ADD = "add -t plain -n node1"

#: Words and a part of the sentence; the exit code is 1.
WRONG = [
    # disks of a new instance
    ("add -n node1 web1", "No disk was given"),
    (f"{ADD} --disk 0:size=10X web1", "Disk 0: '10X' has the unknown unit 'X'"),
    (f"{ADD} --disk 0:size=-1 web1", "Disk 0: '-1' is not a size"),
    (f"{ADD} --disk 0:size= web1", "Disk 0: '' is not a size"),
    (f"{ADD} --disk 0:size web1", "Disk 0: 'size' needs a value"),
    (f"{ADD} --disk 0:mode=ro web1", "Disk 0 needs a size"),
    (f"{ADD} --disk 1:size=1 web1", "Disk 0 needs a size"),
    (f"{ADD} --disk 0:size=1 --disk 0:size=2 web1", "disk 0 is given twice"),
    (f"{ADD} --disk size=1 web1", "'size=1' is not a disk index"),
    (f"{ADD} --disk -1:size=1 web1", "'-1' is not a disk index"),
    (f"{ADD} --disk 16:size=1 web1", "there is no disk 16: an instance has at most 16"),
    (f"{ADD} --disk {'9' * 400}:size=1 web1", "an instance has at most 16"),
    (f"{ADD} --disk no_0 web1", "disk 0 cannot be removed"),
    (f"{ADD} --disk 0:adopt=a,size=1 web1", "an adopted disk keeps its size"),
    (f"{ADD} --disk 0:adopt=a,spindles=1 web1", "an adopted disk keeps its spindles"),
    (f"{ADD} --disk 0:size=1,spindles=x web1", "spindles must be a number, not 'x'"),
    (f"{ADD} --disk 0:size=1,size=2 web1", "Duplicate key 'size'"),
    (f"{ADD} --disk 0:size=1,mode=rx web1", "parameter disks[0].mode"),
    (f"{ADD} --disk 0:size=1 -s 1G web1", "either --disk or --os-size"),
    ("add -t diskless -s 1G web1", "A diskless instance has no disks"),
    ("add -t diskless --disk 0:size=1 web1", "A diskless instance has no disks"),
    # NICs
    ("add -t diskless --no-nics --net 0:link=a web1", "either --net or --no-nics"),
    ("add -t diskless --net 0:lnk=a web1", "unknown key 'lnk' (did you mean link?)"),
    ("add -t diskless --net 0:link web1", "'link' needs a value"),
    ("add -t diskless --net 8:link=a web1", "an instance has at most 8"),
    ("add -t diskless --net eth0:link=a web1", "'eth0' is not a NIC index"),
    # parameters
    ("add -t diskless -B mem=1 web1", "unknown backend parameter 'mem' (did you mean memory?)"),
    ("add -t diskless -B -mem web1", "unknown backend parameter 'mem'"),
    ("add -t diskless -B memory=1Q web1", "'memory' cannot be '1Q': expected a size"),
    ("add -t diskless -B memory web1", "'memory' needs a value"),
    ("add -t diskless -B vcpus=two web1", "'vcpus' cannot be 'two': expected a number"),
    ("add -t diskless -B vcpus=0 web1", "'vcpus' cannot be '0'"),
    ("modify -B ha=always web1", "'ha'; choose from tags, none, restart, failover"),
    ("add -t diskless -B auto_balance=often web1", "'auto_balance' must be true or false"),
    ("add -t diskless -B vcpus=1,vcpus=2 web1", "Duplicate key 'vcpus'"),
    ("add -t diskless -H acpi=true web1", "-H takes <hypervisor>:<key>=<value>"),
    ("add -t diskless -H no_kvm web1", "-H takes <hypervisor>:<key>=<value>"),
    ("add -t diskless -H kvn:acpi=true web1", "got 'kvn' (did you mean kvm?)"),
    ("startup -H -acpi web1", "'acpi' cannot be taken back for one start"),
    ("startup -B -maxmem web1", "'maxmem' cannot be taken back for one start"),
    # changes
    ("modify web1", "Nothing to change"),
    ("modify -f --no-hotplug web1", "Nothing to change"),
    ("modify --online --offline web1", "only one of --online and --offline"),
    ("modify --disk add:mode=ro web1", "a new disk needs a size"),
    ("modify --disk 0:add web1", "a new disk needs a size"),
    ("modify --disk 0 web1", "--disk 0: nothing to change"),
    ("modify --disk 0:remove,mode=ro web1", "'remove' takes no other keys, such as 'mode'"),
    ("modify --disk remove:size=1 web1", "'remove' takes no other keys, such as 'size'"),
    ("modify --disk 0:add,remove web1", "only one of add and remove"),
    ("modify --disk 0:remove=yes web1", "'remove' takes no value"),
    ("modify --disk no_0 web1", "to remove disk 0 write 0:remove"),
    ("modify --disk :size=1 web1", "is missing at the front"),
    ("modify --disk -2:remove web1", "'-2' is not a disk index"),
    ("modify --net 0:speed=1 web1", "unknown key 'speed'"),
    ("modify -m 0 web1", "runtime_mem: expected an integer above 0"),
    # disks
    ("grow-disk web1 x 1G", "'x' is not a list of disk indexes"),
    ("grow-disk web1 0,1 1G", "'0,1' is not the index of a disk"),
    ("grow-disk web1 16 1G", "parameter disk: expected an integer from 0 to 15"),
    ("grow-disk web1 0 big", "Disk 0: 'big' is not a size"),
    ("recreate-disks --disk 1 --disk 1:size=4 web1", "disk 1 is given twice"),
    ("recreate-disks --disk x web1", "'x' is not a disk index"),
    ("replace-disks web1", "exactly one of -p, -s, -a, -n and -I"),
    ("replace-disks -p -n node3 web1", "exactly one of -p, -s, -a, -n and -I"),
    ("replace-disks -p --disks 0,x web1", "'0,x' is not a list of disk indexes"),
    # moves
    ("migrate --non-live --migration-mode live web1", "only one of --non-live and --migration"),
    ("migrate -n node2 -I hail web1", "only one of --target-node and --iallocator"),
    ("failover -n node2 -I hail web1", "only one of --target-node and --iallocator"),
    ("move -f web1", "choose the target node with --node"),
    # others
    ("shutdown --timeout -5 web1", "timeout: expected an integer of at least 0"),
    ("reinstall -o x --select-os web1", "either --os-type or --select-os"),
    ("info", "Name the instances to show"),
    ("info --all web1", "Name the instances to show"),
    ("add-tags web1", "No tags were given"),
    ("add-tags --from /nowhere web1", "Cannot read tags from '/nowhere'"),
    ("batch-create /nowhere", "Cannot read instances from '/nowhere': No such file"),
    ("batch-create /", "Cannot read instances from '/': Is a directory"),
    ("list -F", "--filter takes exactly one argument"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[words[:60] for words, _ in WRONG])
def test_wrong_words(master: RecordingMaster, gnt_instance: Run, words: str, sentence: str) -> None:
    master.add_instance("web1")
    ran = gnt_instance(words)
    assert ran.code == 1
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert master.jobs == []


#: Words the parser itself refuses, with usage and exit code 2.
UNREADABLE = [
    ("add --foo web1", "no such option: --foo"),
    ("add --os web1", "option --os is ambiguous"),
    ("add -t plian web1", "invalid value 'plian'; choose from"),
    ("add -s 10Q web1", "option -s: '10Q' has the unknown unit"),
    ("add -s", "option -s needs a value"),
    ("add -c perhaps web1", "neither yes nor no"),
    ("reboot -t warm web1", "invalid value 'warm'; choose from full, hard, soft"),
    ("migrate --migration-mode slow web1", "invalid value 'slow'; choose from live, non-live"),
    ("remove --shutdown-timeout soon web1", "'soon' is not an integer"),
    ("startup --priority urgent web1", "invalid value 'urgent'; choose from high, low, normal"),
    ("list --units k", "invalid value 'k'; choose from g, h, m, t"),
]


@pytest.mark.parametrize(("words", "sentence"), UNREADABLE, ids=[w for w, _ in UNREADABLE])
def test_unreadable_options(
    master: RecordingMaster, gnt_instance: Run, words: str, sentence: str
) -> None:
    ran = gnt_instance(words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: gnt-instance ")
    assert sentence in ran.err.splitlines()[-1]
    assert master.requests == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("add -t diskless web1 web2", "0 to 1 argument ([<host>]), not 2"),
        ("rename web1", "exactly 2 arguments (<old-name> <new-name>), not 1"),
        ("grow-disk web1 0", "exactly 3 arguments (<instance> <disk> <size>), not 2"),
        ("console", "exactly 1 argument (<instance>), not 0"),
    ],
)
def test_wrong_number_of_arguments(
    master: RecordingMaster, gnt_instance: Run, words: str, expected: str
) -> None:
    ran = gnt_instance(words)
    assert ran.code == 1
    assert ran.err.splitlines()[0] == f"Error: Command {words.split()[0]} expects {expected}"
    assert master.requests == []


def test_an_unknown_command_shows_what_there_is(gnt_instance: Run) -> None:
    ran = gnt_instance("consol web1")
    assert ran.code == 1
    assert "has no command 'consol' (did you mean console?)" in ran.err
    assert "grow-disk" in ran.out


@pytest.mark.parametrize("words", ["snapshot", "snapshot nix web1"])
def test_a_command_without_its_verb_names_the_verbs(gnt_instance: Run, words: str) -> None:
    ran = gnt_instance(words)
    assert ran.code == 1
    assert ran.err == "gnt-instance snapshot needs one of: create, list, remove, revert\n"
    assert ran.out == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "invalid JSON at line 1 column 1"),
        ("{}", "must hold a JSON list"),
        ("[]", "must hold a JSON list"),
        ("[1]", "instance 1: expected an object"),
        ('[{"name": "a"}]', "unknown parameter 'name' (did you mean instance_name?)"),
        ('[{"os": "a"}]', "unknown parameter 'os' (did you mean os_type?)"),
        ('[{"disk_templat": "a"}]', "(did you mean disk_template?)"),
        ('[{"instance_name": "a"}]', "parameter disks is missing"),
        (
            '[{"instance_name": "a", "disks": [{"size": "x"}], "nics": []}]',
            "instance 1: OP_INSTANCE_CREATE: parameter disks[0].size",
        ),
    ],
)
def test_wrong_batch_files(
    master: RecordingMaster, gnt_instance: Run, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "instances.json"
    path.write_text(text)
    ran = gnt_instance("batch-create", str(path))
    assert ran.code == 1
    assert sentence in ran.err
    assert master.jobs == []


def test_every_command_explains_itself(gnt_instance: Run) -> None:
    overview = gnt_instance("--help")
    assert overview.code == 0
    rows = [line[2:].partition("  ")[0] for line in overview.out.splitlines() if line[:2] == "  "]
    names = [row.partition(",")[0] for row in rows]
    assert len(names) > 25
    for name in (word for word in names if word.islower() and not word.startswith("gnt-")):
        ran = gnt_instance(*name.split(), "--help")
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: gnt-instance {name} ")
        assert "--reason" in ran.out
