"""Recorded command lines of QEMU: how a case in ``test/recorded/kvm_argv.json`` is read.

A case names only what differs from a plain guest, in what goes in and in what comes out: the first
has the whole command line, the others the rows that they drop and add.
``python test/unit/hypervisor/kvm_cases.py`` writes the file anew from the code; what changed is
then for a human to judge.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ganeti.hypervisor.kvm import argv, params
from ganeti.hypervisor.kvm.devices import Drive, Nic
from ganeti.storage.registry import traits_of

RECORDED = Path(__file__).parents[2] / "recorded" / "kvm_argv.json"
TABLE = RECORDED.with_name("kvm_argv_params.json")
UUID = "5a3c1f0e-7f4f-4a52-8a36-0d5be6d4a001"
NODE = argv.Node(
    qemu="/usr/bin/kvm",
    accelerator="tcg",
    default_machine="pc-i440fx-7.2",
    version=(7, 2, 22),
    aliases={"q35": "pc-q35-7.2"},
    sandbox=True,
)
FILES = argv.Files(
    pid_file="/run/kvm/pid/web1",
    qmp="web1.qmp",
    serial="web1.serial",
    serial_log="/log/web1-serial.log",
    agent="web1.qga",
    log="/log/web1-qemu.log",
    events="/run/kvm/ctrl/web1.events",
    spice_cert="/data/spice.pem",
    spice_ca="/data/spice-ca.pem",
)


def drive(number: int = 1, **changes: Any) -> Drive:
    """A file disk."""
    facts = {
        "uuid": f"d1d1d1d1-0000-4000-8000-00000000000{number}",
        "template": "file",
        "path": f"/srv/web1/disk{number}",
    }
    facts |= changes
    return msgspec.convert({"shared": traits_of(facts["template"]).shared, **facts}, Drive)


def nic(number: int = 1, **changes: Any) -> Nic:
    """A card on QEMU's own network."""
    facts = {
        "uuid": f"e1e1e1e1-0000-4000-8000-00000000000{number}",
        "mac": f"aa:00:00:00:00:0{number}",
    }
    return msgspec.convert({**facts, **changes}, Nic)


def command(case: dict[str, Any]) -> list[str]:
    """What the code makes of a case."""
    chosen = {"kernel_path": "", **case.get("params", {})}
    facts = dict(case.get("guest", {}))
    drives = tuple(drive(i, **d) for i, d in enumerate(facts.pop("drives", [{}]), 1))
    nics = tuple(nic(i, **n) for i, n in enumerate(facts.pop("nics", []), 1))
    guest = argv.Guest(
        **{"name": "web1", "uuid": UUID, "memory": 512, "vcpus": 2, **facts},
        params=params.load(chosen),
        drives=drives,
        nics=nics,
    )
    node = msgspec.structs.replace(NODE, **_node(case))
    chroot = "/run/kvm/chroot/web1" if guest.params.use_chroot else ""
    files = msgspec.structs.replace(FILES, chroot=chroot)
    if guest.params.firmware != "bios":
        files = msgspec.structs.replace(files, uefi_code="/fw/code", uefi_variables="/fw/web1")
    return argv.build(guest, node, files)


def _node(case: dict[str, Any]) -> dict[str, Any]:
    facts = dict(case.get("node", {}))
    if "version" in facts:
        facts["version"] = tuple(facts["version"])
    return facts


def by_option(words: list[str]) -> list[list[str]]:
    """An option and its value together, as a human reads them."""
    found: list[list[str]] = []
    for word in words[1:]:
        if word.startswith("-") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


def difference(case: dict[str, Any]) -> dict[str, list[list[str]]]:
    """What a case drops of the plain command line and adds to it, in order."""
    rows, plain = by_option(command(case)), by_option(command({}))
    return {
        "drops": _minus(plain, rows),
        "adds": _minus(rows, plain),
    }


def _minus(rows: list[list[str]], others: list[list[str]]) -> list[list[str]]:
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found


def cases() -> list[dict[str, Any]]:
    return list(json.loads(RECORDED.read_text()))


def _written(recorded: list[dict[str, Any]]) -> str:
    texts = []
    for number, case in enumerate(recorded):
        given = {k: v for k, v in case.items() if k not in ("argv", "drops", "adds")}
        results = difference(case) if number else {"argv": by_option(command(case))}
        lines = [f'  "{key}": {json.dumps(value)}' for key, value in given.items()]
        for key, rows in results.items():
            if rows:
                text = ",\n".join(f"   {json.dumps(row)}" for row in rows)
                lines.append(f'  "{key}": [\n{text}\n  ]')
        texts.append(" {\n" + ",\n".join(lines) + "\n }")
    return "[\n" + ",\n".join(texts) + "\n]\n"


if __name__ == "__main__":
    RECORDED.write_text(_written(cases()))
