"""Which instances a command acts on, and asking before it acts on several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ganeti import errors
from ganeti.base.text import nearest, plural
from ganeti.cli import jobs, notices
from ganeti.cli.command import Call
from ganeti.luxi.client import Client


def instances(call: Call) -> list[str]:
    """Full names of the instances that arguments and selection options ask for.

    Raises:
        OpPrereqError: an unknown name, missing or superfluous arguments, nothing selected.
    """
    mode = call.opts.multi_mode or "instances"
    if mode == "cluster":
        return _all(call)
    if not call.args:
        raise errors.make_invalid_error(_MISSING[mode.partition("-")[0]])
    if mode == "instances":
        return find_instances(call.client, call.args)
    if mode == "instances-by-tags":
        found = _select_by_tags(call.client.query_instances([], ["name", "tags"]), call.args)
        return _require_names(found, f"No instance has one of the tags {', '.join(call.args)}")
    return _select_by_nodes(call.client, mode, call.args)


_MISSING = {
    "instances": "No instances were named; use --all for all of them",
    "nodes": "No nodes or tags of nodes were named",
}


def _all(call: Call) -> list[str]:
    if call.args:
        raise errors.make_invalid_error("Give either --all or names, not both")
    names = [str(row[0]) for row in call.client.query_instances([], ["name"])]
    return _require_names(names, "The cluster has no instances")


def _require_names(names: list[str], otherwise: str) -> list[str]:
    if not names:
        raise errors.make_invalid_error(otherwise)
    return names


def _select_by_tags(rows: Sequence[Sequence[object]], tags: Collection[str]) -> list[str]:
    wanted = set(tags)
    return [str(name) for name, own in rows if isinstance(own, list) and wanted.intersection(own)]


def _select_by_nodes(client: Client, mode: str, args: Sequence[str]) -> list[str]:
    names = list(args)
    if mode.endswith("-by-tags"):
        names = _require_names(
            _select_by_tags(client.query_nodes([], ["name", "tags"]), args),
            f"No node has one of the tags {', '.join(args)}",
        )
        mode = mode.removesuffix("-by-tags")
    rows = client.query_nodes(names, ["name", "uuid", "pinst_list", "sinst_list"])
    refuse_unknown(client, "node", names, [row[:2] for row in rows])
    found: dict[str, None] = {}
    for _name, _uuid, primary, secondary in rows:
        if mode in ("nodes", "nodes-pri"):
            found.update(dict.fromkeys(primary or ()))
        if mode in ("nodes", "nodes-sec"):
            found.update(dict.fromkeys(secondary or ()))
    return _require_names(list(found), f"There are no such instances on {', '.join(names)}")


def find_instances(client: Client, names: Sequence[str]) -> list[str]:
    """Full names of instances that must exist; OpPrereqError for one that does not."""
    rows = client.query_instances(names, ["name", "uuid"])
    refuse_unknown(client, "instance", names, [row[:2] for row in rows])
    return [str(row[0]) for row in rows]


def find_node(client: Client, name: str) -> str:
    """Full name of a node that must exist; OpPrereqError if it does not."""
    rows = client.query_nodes([name], ["name", "uuid"])
    refuse_unknown(client, "node", [name], rows)
    return str(rows[0][0])


def refuse_unknown(
    client: Client, what: str, names: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """OpPrereqError (unknown_entity) if a name has no row of full name and uuid."""
    for name in names:
        if not any(name in (full, uuid) or str(full).startswith(f"{name}.") for full, uuid in rows):
            known = [str(row[0]) for row in _queries(client)[what]([], ["name"])]
            raise errors.make_unknown_error(f"There is no {what} '{name}'{nearest(name, known)}")


def _queries(client: Client) -> dict[str, Callable[[list[str], list[str]], list[list[object]]]]:
    return {
        "image": client.query_images,
        "instance": client.query_instances,
        "network": client.query_networks,
        "node": client.query_nodes,
        "node group": client.query_groups,
    }


def confirm(names: Sequence[str], what: str, verb: str, *, option: str = "-f") -> bool:
    """Ask whether something is really to be done to these objects; ``option`` answers yes."""
    question = f"{verb} {plural(len(names), what)}. Continue?"
    return notices.confirm(question, names, option=option)


def act(
    call: Call,
    verb: str,
    make: Callable[[str], jobs.WireOp],
) -> int:
    """Run one job for each selected instance, after asking if there are several.

    The question is not asked with ``--force-multiple`` or ``-f``.
    """
    names = instances(call)
    several = len(names) > 1 or (call.opts.multi_mode or "instances") != "instances"
    forced = call.opts.force_multi or getattr(call.opts, "force", False)
    asks = several and not forced
    if asks and not confirm(names, "instance", verb, option="--force-multiple"):
        return 1
    outcomes = jobs.run_many(call, [(name, make(name)) for name in names], announce=len(names) > 1)
    return jobs.exit_code(outcomes)
