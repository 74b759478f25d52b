"""gnt-instance: create instances, one or many."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.text import nearest, plural
from ganeti.cli import jobs, notices
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, take_one
from ganeti.cli.instance import creation, reserve
from ganeti.cli.programs import INSTANCE

#: Names of the remote API that are not those of the opcode.
_MISNAMED = {"name": " (did you mean instance_name?)", "os": " (did you mean os_type?)"}


@INSTANCE.command(
    "add",
    Args("host", least=0),
    op=creation.OP,
    without=creation.WITHOUT,
    names=reserve.NAMES,
    also=reserve.TERMS | creation.SIZE,
    new=True,
    options=(*creation.EXTRAS, *o.JOB_OPTIONS),
    usage="[<host>]",
)
def add(call: Call) -> None:
    """Create an instance and start it.

    As in: gnt-instance add -t plain -n node1 -o debian+default --disk 0:size=10G -B memory=2G web1
    With --forthcoming only capacity is reserved. All options may be omitted then, even the name,
    and the command prints the uuid of the reservation. With --commit the instance of a reservation
    is created; options set what the reservation leaves open.
    """
    opts = call.opts
    if opts.forthcoming and not opts.commit:
        _reserve(call)
        return
    if not call.args:
        raise errors.make_invalid_error(
            "The name of the instance is missing; only --forthcoming works without"
        )
    if opts.owner is not None or opts.expires is not None:
        raise errors.make_invalid_error("--owner and --expires need --forthcoming")
    jobs.run_op(call, creation.OP, **creation.parameters(call, call.args[0], again=opts.commit))


def _reserve(call: Call) -> None:
    """Reserve one place, and print by what it is called."""
    opts = call.opts
    item = reserve.body(call, call.args[0] if call.args else "")
    item["instance_communication"] = None
    if opts.owner is None and opts.expires is None:
        uuid = jobs.run_for_result(call, creation.OP, **item)
    else:
        uuid = reserve.add(call, [item])
        uuid = uuid[0] if uuid else None
    if uuid:
        print(uuid)


@INSTANCE.command(
    "batch-create",
    take_one("file"),
    op="OP_INSTANCE_MULTI_ALLOC",
    only=("iallocator",),
    options=o.JOB_OPTIONS,
    usage="<instances.json>",
)
def batch_create(call: Call) -> int:
    """Create several instances on nodes that an allocator chooses for all of them at once.

    The file is a JSON list of objects with the parameters of the opcode OP_INSTANCE_CREATE, such
    as instance_name, disk_template, disks, nics, os_type, beparams.
    """
    instances = _read(call.args[0])
    result = jobs.run(call, instances=instances)
    if call.opts.dry_run:
        return 0
    failed = result.get("failed", []) if isinstance(result, dict) else []
    for name in failed:
        notices.say(f"No nodes can be allocated for instance {name}")
    outcomes = jobs.wait_many(call, jobs.children(result), announce=True)
    bad = sum(not outcome.ok for outcome in outcomes) + len(failed)
    if bad:
        notices.say(f"{plural(bad, 'instance')} of {len(instances)} could not be created")
        return 1
    print("All instances were created")
    return 0


def _read(path: str) -> list[jobs.WireOp]:
    """Read a file of instances; return one checked opcode for each.

    Raises:
        OpPrereqError: it cannot be read, is not JSON, or is not a list of instances.
    """
    try:
        found = jsonio.loads(Path(path).read_bytes())
    except (OSError, errors.ParseError) as err:
        reason = err.strerror if isinstance(err, OSError) else errors.text(err)
        raise errors.make_invalid_error(f"Cannot read instances from '{path}': {reason}") from err
    if not isinstance(found, list) or not found:
        raise errors.make_invalid_error(
            f"'{path}' must hold a JSON list of objects, one for each instance"
        )
    return [_instance(path, number, raw) for number, raw in enumerate(found, 1)]


def _instance(path: str, number: int, raw: object) -> jobs.WireOp:
    from ganeti.opcodes import registry, wire

    where = f"'{path}', instance {number}"
    if not isinstance(raw, dict):
        raise errors.make_invalid_error(f"{where}: expected an object")
    opcode = registry.find(creation.OP)
    known = opcode.__struct_fields__
    for key in raw:
        if key not in known:
            raise errors.make_invalid_error(
                f"{where}: unknown parameter '{key}'{_MISNAMED.get(key) or nearest(key, known)}",
            )
    try:
        return wire.to_wire(wire.decode(opcode, {"mode": "create", **raw}))
    except errors.OpPrereqError as err:
        raise errors.make_invalid_error(f"{where}: {err.args[0]}") from None
