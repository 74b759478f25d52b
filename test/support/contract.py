"""What scripts and administrators find in Ganeti, against what is here: the recorded tables.

``test/recorded/contract_*.json`` hold names that others rely on; they never follow the code. Each
function of :data:`TABLES` goes through one of them by looking at the code; tests in
``test/contract/interface`` and ``test/cluster/test_cluster_contract.py`` try what has to run.
:func:`hold` keeps the truth in one place: :data:`NOT_YET`, which may only become shorter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

from ganeti.base import jsonio

ROOT = Path(__file__).resolve().parents[2]

#: Table -> what is missing. An entry leaves when it is built; none comes in.
NOT_YET: dict[str, frozenset[str]] = {}
#: Table -> what will not be built, because nothing here needs it. doc/compat.md says why.
NEVER: dict[str, frozenset[str]] = {
    "node calls": frozenset({
        "blockdev_convert", "get_file_info", "get_watcher_pause", "jobqueue_purge",
        "jobqueue_rename", "jobqueue_set_drain_flag", "jobqueue_update", "node_ensure_daemon",
        "node_start_master_daemons", "node_verify_light", "os_export", "upload_file",
    }),
    "daemons": frozenset({"ganeti-kvmd", "ganeti-luxid", "ganeti-wconfd"}),
    "tools": frozenset({
        "tools/cfgshell", "tools/cfgupgrade12", "tools/cluster-merge", "tools/ganeti-listrunner",
        "tools/ovfconverter", "tools/vcluster-setup", "import-export", "node-daemon-setup",
        "ssl-update",
    }),
}  # fmt: skip
#: What was found in this run: table -> (number of wanted things, those that are missing).
FOUND: dict[str, tuple[int, list[str]]] = {}


@cache
def read_recorded(name: str) -> Any:
    """A recorded table."""
    path = ROOT / "test" / "recorded" / f"contract_{name}.json"
    return jsonio.loads(path.read_text(encoding="utf-8"))


def check_table(table: str, wanted: Collection[str], have: Collection[str]) -> None:
    """Note what is there, and fail if that is not what :data:`NOT_YET` says.

    An entry there also stands for what begins with it: a command for its options.
    """
    missing = sorted(set(wanted) - set(have))
    FOUND[table] = (len(set(wanted)), missing)
    known = NOT_YET.get(table, frozenset()) | NEVER.get(table, frozenset())
    covers = {
        item: {name for name in known if f"{item} ".startswith(f"{name} ")} for item in missing
    }
    lost = [item for item, names in covers.items() if not names]
    built = sorted(known.difference(*covers.values()))
    assert not lost, f"{table}: not there: {', '.join(lost)}"
    assert not built, f"{table}: take out of the list of what is missing: {', '.join(built)}"


# what the code says of itself -----------------------------------------------------------------


def _commands() -> tuple[list[str], list[str]]:
    wanted = [
        f"{program} {word}"
        for program, commands in read_recorded("cli").items()
        for name, facts in commands.items()
        for word in (name, *facts["aliases"])
    ]
    return wanted, [item for item in wanted if find_command(item) is not None]


def find_command(item: str) -> Any:
    """The command ``gnt-x name``, or None."""
    from ganeti.cli.programs import PROGRAMS

    program, _, name = item.partition(" ")
    found = PROGRAMS.get(program)
    if found is None:
        return None
    found.load()
    return found.find(name)


def _options() -> tuple[list[str], list[str]]:
    wanted, have = [], []
    for program, commands in read_recorded("cli").items():
        for name, facts in commands.items():
            command = find_command(f"{program} {name}")
            flags = {f for o in command.all_options for f in o.flags} if command else set()
            for flag in facts["options"]:
                wanted.append(item := f"{program} {name} {flag}")
                if flag in flags:
                    have.append(item)
    return wanted, have


def _opcodes() -> tuple[list[str], list[str]]:
    from ganeti.ops import registry

    wanted = list(read_recorded("opcodes"))
    return wanted, [op_id for op_id in wanted if registry.is_built(op_id)]


def _parameters() -> tuple[list[str], list[str]]:
    from ganeti.base import typed
    from ganeti.opcodes import registry

    classes = registry.all_opcodes()
    wanted, have = [], []
    for op_id, names in read_recorded("opcodes").items():
        cls = classes.get(op_id)
        known = {field.encode_name for field in typed.fields(cls)} if cls else set()
        wanted += [f"{op_id} {name}" for name in names]
        have += [f"{op_id} {name}" for name in names if name in known]
    return wanted, have


def _fields() -> tuple[list[str], list[str]]:
    from ganeti.query.registry import KINDS

    wanted, have = [], []
    for kind, facts in read_recorded("query_fields").items():
        known = KINDS.get(kind).fields if kind in KINDS.names() else {}
        wanted += [f"{kind} {name}" for name in facts["fields"]]
        have += [f"{kind} {name}" for name in facts["fields"] if name in known]
    return wanted, have


def _luxi_methods() -> tuple[list[str], list[str]]:
    from ganeti.luxi.calls import METHODS

    return read_recorded("names")["luxi_methods"], list(METHODS)


def _node_calls() -> tuple[list[str], list[str]]:
    from ganeti.rpc import wire

    return read_recorded("names")["node_calls"], list(wire.specs())


def _errors() -> tuple[list[str], list[str]]:
    from ganeti import errors

    return read_recorded("names")["errors"], list(errors.CLASSES)


def _requests() -> tuple[list[str], list[str]]:
    from ganeti.opcodes.base import id_of
    from ganeti.ops import registry
    from ganeti.rapi import routes

    table = routes.group_by_path()
    wanted, have = [], []
    for path, resource in read_recorded("rapi")["resources"].items():
        known = table.get(routes.shape(path.replace("<", "{").replace(">", "}")), {})
        for method in resource["methods"]:
            wanted.append(item := f"{method} {path}")
            route = known.get(method)
            if route and (route.opcode is None or registry.is_built(id_of(route.opcode))):
                have.append(item)
    return wanted, have


def _verify_codes() -> tuple[list[str], list[str]]:
    from ganeti.opcodes.enums import CVErrorCode

    return read_recorded("names")["verify_codes"], [code.value for code in CVErrorCode]


def _collectors() -> tuple[list[str], list[str]]:
    from ganeti.mond.registry import COLLECTORS

    return read_recorded("names")["collectors"], [item.name for item in COLLECTORS]


def _confd_requests() -> tuple[list[str], list[str]]:
    from ganeti.confd.messages import Kind

    wanted = read_recorded("names")["confd_requests"]
    return list(wanted), [name for name, number in wanted.items() if number in set(Kind)]


def _daemons() -> tuple[list[str], list[str]]:
    return read_recorded("names")["daemons"], [path.name for path in (ROOT / "daemons").iterdir()]


def _tools() -> tuple[list[str], list[str]]:
    """Programs below ``/usr/lib/ganeti``; a link counts if its target is installed."""
    table = read_recorded("names")["tools"]
    wanted = [*(f"tools/{name}" for name in table["tools"]), *table[""]]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    have = {path.name for path in (ROOT / "tools" / "net").iterdir()} | {"tools/master-ip-setup"}
    for line in (ROOT / "tools" / "links").read_text().splitlines():
        name, _, target = line.partition(" ")
        program = target.rpartition("/")[2]
        if program in scripts or program in have:
            have.add(name)
    return wanted, sorted(have)


Table = Callable[[], tuple[list[str], list[str]]]
#: Name of a table -> what there should be, and what of it there is.
TABLES: dict[str, Table] = {
    "commands": _commands,
    "options": _options,
    "opcodes": _opcodes,
    "opcode parameters": _parameters,
    "query fields": _fields,
    "requests of the remote API": _requests,
    "LUXI methods": _luxi_methods,
    "node calls": _node_calls,
    "error classes": _errors,
    "codes of verify": _verify_codes,
    "collectors of mond": _collectors,
    "requests of confd": _confd_requests,
    "daemons": _daemons,
    "tools": _tools,
}
