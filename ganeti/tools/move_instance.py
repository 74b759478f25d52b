"""move-instance: move instances to another cluster, over the remote APIs of both."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ganeti import constants, errors
from ganeti.base import files, units
from ganeti.base.clock import SYSTEM
from ganeti.base.interruption import stop_requests
from ganeti.base.json_types import JsonObject
from ganeti.cli import values
from ganeti.rapi.client import (
    GANETI_RAPI_PORT,
    Error,
    GanetiApiError,
    GanetiRapiClient,
    GenericCurlConfig,
)
from ganeti.tools import entry
from ganeti.tools.move_request import Wish, check_wish
from ganeti.tools.one_move import OneMove, Way

PROGRAM = "move-instance"
_SIDES = (("src", "source"), ("dest", "target"))
T = TypeVar("T")


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all instances were moved; 1 when one was not."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _run(options))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Move instances to another cluster, over the remote APIs of both clusters,"
        " which need the same domain secret. An instance is stopped while its disks are sent. It"
        " is removed from the source cluster when it is complete in the target cluster; after a"
        " failure it runs again where it was. After SIGTERM or Ctrl-C running moves finish, and "
        "no others begin.",
        epilog="Exit codes: 0 all instances were moved; 1 one was not; 2 wrong options.",
    )
    add = made.add_argument
    add("source", metavar="SOURCE", help="name or address of the remote API of the source cluster")
    add("target", metavar="TARGET", help="name or address of the remote API of the target cluster")
    add("instances", nargs="+", metavar="INSTANCE", help="instances of the source cluster")
    for side, name in _SIDES:
        same = " (default: that of the source cluster)" if side == "dest" else ""
        port = f"(default: {GANETI_RAPI_PORT})"
        add(f"--{side}-rapi-port", type=int, metavar="PORT", help=f"port of the {name} {port}")
        add(
            f"--{side}-ca-file",
            metavar="FILE",
            help=f"certificates (PEM) to trust for the {name} (default: those of this system)",
        )
        add(f"--{side}-username", metavar="USER", help=f"user of the {name}{same}")
        add(
            f"--{side}-password-file",
            metavar="FILE",
            help=f"file with the password for the {name} in its first line{same}",
        )
    _add_target_options(made)
    return made


def _add_target_options(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("--dest-instance-name", metavar="NAME", help="new name, with one instance")
    add("--dest-primary-node", metavar="NODE", help="node for the instances")
    add("--dest-secondary-node", metavar="NODE", help="second node, for mirrored disks")
    add("--dest-disk-template", metavar="NAME", help="disk template (default: as it is)")
    add("-I", "--iallocator", metavar="NAME", help="allocator that chooses the nodes")
    add(
        "-H",
        "--hypervisor-parameters",
        metavar="HYPERVISOR:KEY=VALUE,...",
        help="hypervisor and its parameters (default: as they are)",
    )
    add(
        "-B",
        "--backend-parameters",
        metavar="KEY=VALUE,...",
        help="backend parameters to change",
    )
    add("-O", "--os-parameters", metavar="KEY=VALUE,...", help="OS parameters to change")
    add(
        "--net",
        action="append",
        default=[],
        metavar="NUMBER:KEY=VALUE,...",
        help="what to change of a NIC, such as 0:network=lan; may be repeated",
    )
    add("--compress", default="none", metavar="TOOL", help="how disks are sent (%(default)s)")
    add("--keep-source-instance", action="store_true", help="keep the source instance, stopped")
    add("-p", "--parallel", type=int, default=1, metavar="N", help="moves at a time (%(default)s)")
    add(
        "--opportunistic-tries",
        type=int,
        default=0,
        metavar="N",
        help="number of tries of the allocator without nodes that other jobs use",
    )
    add(
        "--opportunistic-delay",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="seconds between these tries (%(default)s)",
    )
    for flags in (("-d", "--debug"), ("-v", "--verbose")):
        add(*flags, action="store_true", help="accepted; each step is always shown")


def _run(options: argparse.Namespace) -> int:
    wish = _read_wish(options)
    check_wish(wish, options.instances)
    if options.parallel < 1:
        raise errors.ParameterError("--parallel must be at least 1")
    source, target = (_connect(options, side, name) for side, name in _SIDES)
    with source, target:
        for client, (_side, name) in zip((source, target), _SIDES, strict=True):
            _check_cluster(client, name)
        way = Way(
            source,
            target,
            wish,
            compress=options.compress,
            keep=options.keep_source_instance,
            tries=options.opportunistic_tries,
            delay=options.opportunistic_delay,
        )
        return _move_all(way, options.instances, options.parallel)


def _read_wish(options: argparse.Namespace) -> Wish:
    hypervisor, hvparams = None, {}
    if options.hypervisor_parameters is not None:
        hypervisor, given = values.identkeyval(options.hypervisor_parameters, prefixes=False)
        hvparams = given if isinstance(given, dict) else {}
    return Wish(
        name=options.dest_instance_name,
        primary=options.dest_primary_node,
        secondary=options.dest_secondary_node,
        iallocator=options.iallocator,
        template=options.dest_disk_template,
        hypervisor=hypervisor,
        hvparams=hvparams,
        beparams=_read_backend(options.backend_parameters or ""),
        osparams=values.keyval(options.os_parameters or ""),
        nics=dict(_read_nic(text) for text in options.net),
        opportunistic=options.opportunistic_tries > 0,
    )


def _read_backend(text: str) -> JsonObject:
    """Backend parameters; ``memory`` stands for minimum and maximum."""
    given: JsonObject = values.keyval(text)
    if "memory" in given:
        memory = given.pop("memory")
        given = {"minmem": memory, "maxmem": memory, **given}
    sizes = {key: given[key] for key in ("minmem", "maxmem") if isinstance(given.get(key), str)}
    return {**given, **{key: units.parse_size(size) for key, size in sizes.items()}}


def _read_nic(text: str) -> tuple[int, JsonObject]:
    number, given = values.identkeyval(text, prefixes=False)
    if not (number.isascii() and number.isdigit()) or not isinstance(given, dict):
        raise errors.ParameterError(
            f"--net {text}: begin with the number of a NIC, as in 0:link=br1"
        )
    return int(number), given


def _connect(options: argparse.Namespace, side: str, name: str) -> GanetiRapiClient:
    """A client of one cluster; nothing is sent yet."""

    def read(what: str) -> Any:
        own = getattr(options, f"{side}_{what}")
        return own if own is not None else getattr(options, f"src_{what}")

    user, password_file = read("username"), read("password_file")
    if (user is None) != (password_file is None):
        raise errors.ParameterError(
            f"{name} cluster: --{side}-username and --{side}-password-file belong together"
        )
    password = None
    if password_file is not None:
        password = files.read_text(Path(password_file)).partition("\n")[0]
        if not password:
            raise errors.ParameterError(f"{password_file}: the first line has no password")
    ca_file = getattr(options, f"{side}_ca_file")
    return _translate(
        name,
        lambda: GanetiRapiClient(
            getattr(options, name),
            getattr(options, f"{side}_rapi_port") or GANETI_RAPI_PORT,
            user,
            password,
            curl_config_fn=None
            if ca_file
            else GenericCurlConfig(use_curl_cabundle=True, verify_hostname=True),
            ca_file=ca_file,
        ),
    )


def _check_cluster(client: GanetiRapiClient, name: str) -> None:
    """Refuse a cluster that does not answer; OpExecError."""
    _translate(name, client.GetInfo)


def _translate(name: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except Error as err:
        raise errors.OpExecError(f"{name} cluster: {errors.text(err)}") from err


def _move_all(way: Way, instances: Sequence[str], parallel: int) -> int:
    """Move all; the exit code."""

    def move(name: str) -> bool:
        def say(text: str) -> None:
            print(f"{name}: {text}", flush=True)

        if asked:
            say("not moved, as it was interrupted before")
            return False
        try:
            OneMove(way, name, say, SYSTEM.sleep).run()
        except (errors.GanetiError, GanetiApiError) as err:
            say(f"FAILED: {errors.text(err)}")
            return False
        return True

    def note() -> None:
        print("Ending the moves that have begun.", flush=True)

    with stop_requests(note) as asked, ThreadPoolExecutor(parallel) as pool:
        moved = list(pool.map(move, instances))
    print(f"{sum(moved)} of {len(moved)} instances were moved")
    return constants.EXIT_SUCCESS if all(moved) else constants.EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())
