"""Runs inside a machine: calls the DRBD driver with the disk that both machines share.

``drbd_side.py SIDE``: each JSON list of [method, arguments, changes of the disk] that is written to
the named pipe ``/run/drbd.ask`` is answered over ``/run/drbd.answer`` by a JSON list of [result,
error text]. With ``DRBD_RECORD`` every command and its answer is appended to that file.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import process
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.rpc.wire import encode
from ganeti.storage.drbd import params
from ganeti.storage.interface import Environment
from ganeti.storage.registry import default_params, device

ASK, ANSWER = "/run/drbd.ask", "/run/drbd.answer"
ADDRESSES = ("10.123.9.1", "10.123.9.2")
MINORS = (0, 3)


def disk(
    side: int, size: int = 32, prefix: str = "", secret: str = "5e" * 20, **given: Any
) -> NodeDisk:
    children = tuple(
        NodeDisk(
            uuid=f"{prefix}{part}",
            dev_type=DiskTemplate.PLAIN,
            size=mib,
            logical_id=("xenvg", f"{prefix}i1.disk0_{part}"),
        )
        for part, mib in (("data", size), ("meta", 128))
    )
    return NodeDisk(
        uuid="d0",
        dev_type=DiskTemplate.DRBD,
        children=children,
        size=size,
        logical_id=("a", "b", 11000, *MINORS, secret),
        params=params.logical({**default_params()["drbd"], **given}),
        dynamic_params={
            "local-ip": ADDRESSES[side],
            "remote-ip": ADDRESSES[1 - side],
            "port": 11000,
            "local-minor": MINORS[side],
            "remote-minor": MINORS[1 - side],
        },
    )


def call(side: int, method: str, arguments: dict[str, Any], changes: dict[str, Any]) -> Any:
    env = Environment(Paths(Path("/")))
    found: Any = device(disk(side, **changes), env)
    parts = [device(child, env) for child in disk(side, **changes).children]
    if method == "create_volumes":
        return [part.create(part.disk.size) for part in parts]
    if method == "remove_volumes":
        return [part.remove() for part in parts]
    if method == "grow_volume":
        return parts[0].grow(**arguments)
    if method in ("attach_children", "detach_children"):
        return getattr(found, method)(disk(side, **arguments).children)
    if method == "create":
        return found.create(found.disk.size)
    return encode(getattr(found, method)(**arguments))


def record(file: str) -> None:
    plain = process.run

    def recording(argv: Any, **more: Any) -> process.Result:
        found = plain(argv, **more)
        entry = {
            "argv": list(argv),
            "code": found.code,
            "stdout": found.stdout,
            "stderr": found.stderr,
        }
        with open(file, "a") as out:
            out.write(json.dumps(entry) + "\n")
        return found

    process.run = recording


def answer(side: int, method: str, arguments: dict[str, Any], changes: dict[str, Any]) -> Any:
    try:
        return [call(side, method, arguments, changes), None]
    except errors.GanetiError as err:
        return [None, errors.text(err)]
    except Exception:
        # A fault of driver or scenario, which is told there; the pipe must not fall silent.
        return [None, traceback.format_exc()]


def main() -> None:
    if "DRBD_RECORD" in os.environ:
        record(os.environ["DRBD_RECORD"])
    for pipe in (ANSWER, ASK):
        os.mkfifo(pipe)
    while True:
        with open(ASK) as asked:
            steps = json.load(asked)
        answers = [answer(int(sys.argv[1]), *step) for step in steps]
        with open(ANSWER, "w") as out:
            json.dump(answers, out)


main()
