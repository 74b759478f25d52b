"""shadow: show a ``config.data`` of any version as this software reads it, without changing it.

Reads one file and writes nothing; needs no daemon, no network and no cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from ganeti import constants
from ganeti.base.text import nearest, plural
from ganeti.cli import listing, notices, output
from ganeti.cli import options as o
from ganeti.cli import program as runner
from ganeti.cli.cluster import show as cluster_show
from ganeti.cli.command import Call, Program, Run, take_many
from ganeti.cli.disk import show as disk_show
from ganeti.cli.group import show as group_show
from ganeti.cli.instance import show as instance_show
from ganeti.cli.network import show as network_show
from ganeti.cli.node import show as node_show
from ganeti.cli.option import switch
from ganeti.config.upgrade import versions
from ganeti.config.upgrade.upgrade import Upgraded, problems, upgrade
from ganeti.offline import data_directory
from ganeti.offline.shadow_client import ShadowClient, strip_live_fields
from ganeti.query.registry import KINDS

_NAME = "shadow"
_TITLE = (
    "Show the configuration of a cluster of any version since 2.7, as this software reads it.\n"
    "Reads only this file; changes nothing."
)
#: Usual columns of a list; those that a kind does not have are left out.
_COLUMNS: Final = {
    "instance": (
        "name",
        "hypervisor",
        "os",
        "pnode",
        "snodes",
        "admin_state",
        "be/maxmem",
        "be/vcpus",
        "disk_template",
        "disk.sizes",
    ),
    "node": ("name", "pip", "sip", "role", "group", "pinst_cnt", "sinst_cnt"),
    "group": ("name", "node_cnt", "pinst_cnt", "alloc_policy"),
    "filter": ("uuid", "watermark", "priority", "predicates", "action"),
}
_LISTS = ("tags", "disk.sizes", "snodes", "pinst_list", "sinst_list")
#: Kinds whose usual columns are all in the configuration; their list commands serve as they are.
_AS_THEY_ARE: Final[dict[str, Run]] = {
    "disk": disk_show.list_disks,
    "network": network_show.list_networks,
}
_SHOW: Final[dict[str, Run]] = {
    "cluster": cluster_show.show_info,
    "disk": disk_show.show_info,
    "group": group_show.show_info,
    "instance": instance_show.show_info,
    "network": network_show.show_info,
    "node": node_show.show_info,
}
_ALL_CHANGES = switch(
    "-v", "--verbose", dest="verbose", help="Also list what an upgrade would change"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these words (default: those of the process).

    Exit codes: 0; 1 for a problem that ``verify`` found or anything that went wrong; 2 for wrong
    options or a file that is not a configuration; 14 for an unknown field.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0].startswith("-"):
        return runner.main(commands(Path("config.data")), words)
    problem = _unknown_kind(words[1:])
    if problem:
        notices.say(problem)
        return constants.EXIT_FAILURE
    return runner.main(commands(Path(words[0])), words[1:])


def _unknown_kind(words: Sequence[str]) -> str:
    """Explain an unknown kind, the second word of a command; empty if the kind is known."""
    known = {"list": _kinds(), "list-fields": _kinds(), "info": sorted(_SHOW)}
    verb, kind = (*words, "", "")[:2]
    if verb not in known or kind.removesuffix("s") in known[verb]:
        return ""
    names = ", ".join(known[verb])
    if not kind:
        return f"Of what? Say '{verb}' and one of {names}"
    return f"Unknown kind '{kind}'{nearest(kind, known[verb])}; {verb} knows {names}"


def _kinds() -> list[str]:
    return [*_COLUMNS, *_AS_THEY_ARE]


class _File:
    """The configuration in a file, opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def upgrade_result(self) -> Upgraded:
        found = upgrade(data_directory.read(self._path))
        for where in found.report.unknown:
            notices.warn(f"no version knows {where}; it is left out")
        return found

    def serve(self, call: Call) -> Call:
        """The call, answered from the file."""
        call.client = ShadowClient(self.upgrade_result.config, self.upgrade_result.version)
        return call


def commands(path: Path) -> Program:
    """The commands, for one file."""
    program = Program(f"{_NAME} CONFIG", _TITLE, audited=False)
    file = _File(path)
    for kind in _kinds():
        _add_list(program, file, kind)
    for kind in sorted(_SHOW):
        _add_info(program, file, kind)
    _add_verify(program, file)
    return program


def _add_list(program: Program, file: _File, kind: str) -> None:
    def show_list(call: Call) -> int | None:
        if kind in _AS_THEY_ARE:
            return _AS_THEY_ARE[kind](file.serve(call))
        found = strip_live_fields(KINDS.get(kind))
        fields = [name for name in _COLUMNS[kind] if found.find(name)]
        texts = dict.fromkeys(_LISTS, output.join_items)
        name_field = found.name_field
        return listing.show_list(file.serve(call), kind, fields, texts=texts, name_field=name_field)

    def list_fields(call: Call) -> int:
        return listing.show_fields(file.serve(call), kind)

    # The documentation is the help of the commands.
    show_list.__doc__ = f"""List {kind}s.

        Names, patterns, filters, fields and options are those of the list commands of the gnt-*
        programs. Values that only a running cluster has are shown as no data.
        """
    list_fields.__doc__ = f"List the fields that 'list {kind}s' can show."
    program.command(
        f"list {kind}s", take_many("name"), options=o.LIST_OPTIONS, aliases=(f"list {kind}",)
    )(show_list)
    program.command(
        f"list-fields {kind}s",
        take_many("field"),
        options=o.LIST_FIELDS_OPTIONS,
        aliases=(f"list-fields {kind}",),
    )(list_fields)


def _add_info(program: Program, file: _File, kind: str) -> None:
    alone = kind == "cluster"

    def show_info(call: Call) -> int | None:
        call.opts.static, call.opts.show_all = True, not call.args
        return _SHOW[kind](file.serve(call))

    show_info.__doc__ = (
        "Show all settings of the cluster."
        if alone
        else f"Show everything about {kind}s; about all of them without names."
    )
    program.command(
        f"info {kind}",
        *(() if alone else (take_many(kind),)),
        options=(o.INFO_FORMAT,),
        aliases=() if alone else (f"info {kind}s",),
    )(show_info)


def _add_verify(program: Program, file: _File) -> None:
    @program.command("verify", options=(_ALL_CHANGES,))
    def verify(call: Call) -> int:
        """Check whether the configuration contradicts itself.

        These are the checks that an upgrade makes, too.
        """
        found = file.upgrade_result
        config = found.config
        defects = problems(config)
        for text in defects:
            print(f"ERROR: {text}")
        if call.opts.verbose:
            for change in found.report.changes:
                print(change)
        print(
            f"Cluster {config.cluster.cluster_name}, version {versions.text(found.version)}:"
            f" {plural(len(config.nodes), 'node')}, {plural(len(config.instances), 'instance')},"
            f" {plural(len(config.disks), 'disk')}; {plural(len(defects), 'problem')}."
        )
        return constants.EXIT_FAILURE if defects else constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
