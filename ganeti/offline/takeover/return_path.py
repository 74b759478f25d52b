"""The way back to the other software, and what stands in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ganeti.base import files, process, services
from ganeti.config import store
from ganeti.hypervisor.kvm.runtime import Store
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.offline.data_directory import DataDirectory
from ganeti.offline.takeover import look, old_software, work
from ganeti.offline.takeover.steps import Record, Step
from ganeti.paths import Paths

_OBJECTS = {
    "instances": "instance",
    "nodes": "node",
    "nodegroups": "node group",
    "networks": "network",
    "disks": "disk",
    "filters": "filter",
}
#: Members that change by themselves.
_STAMPS = frozenset(("serial_no", "mtime", "ctime"))
_TIMERS = ("ganeti-watcher.timer", "ganeti-cleaner.timer")


def differences(before: Config, after: Config) -> list[str]:
    """The changes of an administrator since the takeover, a line each. Pure."""
    old, new = base.to_wire(before.data), base.to_wire(after.data)
    found = []
    for container, kind in _OBJECTS.items():
        first: Mapping[str, Any] = old.get(container) or {}
        second: Mapping[str, Any] = new.get(container) or {}
        for uuid in sorted(first.keys() | second.keys()):
            name = _name(second.get(uuid) or first.get(uuid) or {}, uuid)
            if uuid not in second:
                found.append(f"{kind} {name} was removed since the takeover")
            elif uuid not in first:
                found.append(f"{kind} {name} was added since the takeover")
            else:
                keys = _compare(first[uuid], second[uuid])
                if keys:
                    found.append(f"{kind} {name} was changed since the takeover: {', '.join(keys)}")
    return found


def _name(values: Mapping[str, object], uuid: str) -> str:
    return str(values.get("name") or values.get("iv_name") or uuid)


def _compare(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    keys = (old.keys() | new.keys()) - _STAMPS
    return sorted(key for key in keys if old.get(key) != new.get(key))


def obstacles(where: Paths, record: Record, *, discard: bool) -> Iterator[str]:
    """Why the old software cannot have the node back now, a sentence each."""
    adopted = work.adopted(where)
    for guest in look.read_guests(where):
        if guest.pid is not None and not guest.foreign and guest.name not in adopted:
            yield (
                f"instance {guest.name} was started by this software (process {guest.pid}), and the"
                " old one cannot go on with it: shut it down with"
                f" gnt-instance shutdown {guest.name}"
            )
    if "place" not in record.done or record.back or not where.config_file.exists():
        return
    directory = DataDirectory(where, True)
    pending = [str(number) for number, ended in directory.jobs() if not ended]
    if pending:
        yield f"jobs have not ended: {', '.join(pending)}. Wait for them or cancel them"
    if discard:
        return
    yield from differences(work.converted(where), store.read_config(where))


def way_back(where: Paths, record: Record, say: Callable[[str], None]) -> Iterator[Step]:
    """The steps that undo the takeover as far as it was done."""
    yield Step("back-stop", "the daemons of this software stop", lambda: _stop_own(where))
    yield Step("back-records", "runtime files are put back", lambda: _put_records_back(where))
    if "data" in record.done or work.data(where).exists():
        yield Step("back-data", f"{where.data} is the old one again", lambda: _data(where))

    def put_back() -> None:
        old_software.move_back(where, work.MOVED, work.starters(where))

    yield Step("back-starters", "what starts the old software is put back", put_back)
    yield Step("back-start", "the old daemons start", lambda: _start_old(where, record, say))


def _stop_own(where: Paths) -> None:
    if services.uses_systemd(where):
        process.run(["systemctl", "stop", *_TIMERS], timeout=60.0)
        process.run_checked(["systemctl", "stop", "ganeti.target"], timeout=60.0)
    for name in reversed(list(services.ALL)):
        services.stop(name, where)


def _put_records_back(where: Paths) -> None:
    """Guests that run get the old record; those that have ended have none that only we read."""
    guests = Store(where.kvm)
    kept, adopted = work.load_records(where), work.adopted(where)
    for guest in look.read_guests(where):
        if guest.record is None or guest.foreign:
            continue
        if guest.name in kept and guest.name in adopted:
            path = guests.runtime_file(guest.name)
            files.write_atomic(path, kept[guest.name], mode=0o600)
        elif guest.pid is None:
            files.remove(guests.runtime_file(guest.name))


def _data(where: Paths) -> None:
    """Our data directory is kept beside the old one."""
    old, own = work.data(where), where.takeover / "own-data"
    if not old.exists():
        return
    if where.data.exists():
        number = 0
        while own.exists():
            number += 1
            own = where.takeover / f"own-data-{number}"
        os.rename(where.data, own)
    os.rename(old, where.data)
    files.fsync_dir(where.data.parent)
    files.fsync_dir(where.takeover)


def _start_old(where: Paths, record: Record, say: Callable[[str], None]) -> None:
    if old_software.start(where):
        return
    words = " ".join(f"{name}={version}" for name, version in sorted(record.packages.items()))
    if words:
        say("The old software is not installed. Install it, which also starts it:")
        say(f"  apt-get install --allow-downgrades {words}")
    else:
        say("The old software is not installed. Install it and start its daemons.")


def finish(where: Paths) -> None:
    """Forget that there was a takeover; what might still be of use is kept."""
    for name in ("runtime", "etc", "new", "kits"):
        path = where.takeover / name
        if path.exists():
            shutil.rmtree(path)
    for name in ("kit.json", "record.json"):
        files.remove(where.takeover / name)
