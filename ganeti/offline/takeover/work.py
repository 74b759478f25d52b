"""The takeover of a node, and the way back: what is done, step by step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from ganeti import constants, errors
from ganeti.base import files, jsonio, process, services
from ganeti.bootstrap.init import make_directories, write_ssconf
from ganeti.config import store
from ganeti.config.upgrade import upgrade
from ganeti.hypervisor import systemd_scope
from ganeti.hypervisor.kvm import adoption
from ganeti.hypervisor.kvm.driver import KvmHypervisor
from ganeti.hypervisor.kvm.runtime import Runtime, Store
from ganeti.model.config import Config
from ganeti.offline import data_directory
from ganeti.offline.takeover import kit as kits
from ganeti.offline.takeover import look, old_software
from ganeti.offline.takeover.facts import Guest
from ganeti.offline.takeover.kit import Kit
from ganeti.offline.takeover.steps import Record, Step
from ganeti.paths import Paths
from ganeti.rpc.objects import RightState, RunRight
from ganeti.storage import file_paths
from ganeti.storage.registry import file_settings

#: Files of the old data directory that go on under their names: secrets that others know.
_KEPT = (
    "hmac.key",
    "cluster-domain-secret",
    "rapi.pem",
    "spice.pem",
    "spice-ca.pem",
    "known_hosts",
    "ganeti_pub_keys",
)
#: Older than every right that a master gives.
_FIRST_RIGHT = (0, 1)
#: Files that are set aside besides the data; the first ones would start daemons again.
MOVED = (*old_software.STARTERS, *look.SCRIPTS)
_RUNTIME = ".runtime"


def data(where: Paths) -> Path:
    """The old data directory, once it was set aside."""
    return where.takeover / "data"


def records(where: Paths) -> Path:
    """Runtime files as the other software wrote them."""
    return where.takeover / "runtime"


def starters(where: Paths) -> Path:
    return where.takeover / "etc"


def staged(where: Paths) -> Path:
    """The new data directory while it is made."""
    return where.takeover / "new"


def kit_file(where: Paths) -> Path:
    """The kit of this node, from the master."""
    return where.takeover / "kit.json"


def kit_of(where: Paths, name: str) -> Path:
    """On the master: the kit of another node."""
    return where.takeover / "kits" / f"{name}.json"


# prepare ---------------------------------------------------------------------------------------


def preparation(where: Paths) -> Iterator[Step]:
    """Stop the other software on this node and set its data aside."""

    def keep_records() -> None:
        files.ensure_dir(records(where), 0o700)
        for name, text in look.foreign_records(where).items():
            files.write_atomic(records(where) / f"{name}{_RUNTIME}", text, mode=0o600)

    def move(*names: str) -> Callable[[], None]:
        def do() -> None:
            old_software.move_away(where, names, starters(where))

        return do

    cron, *others = MOVED
    yield Step("records", "runtime files of guests are copied", keep_records)
    yield Step("cron", f"{cron} is set aside, so that no watcher starts anything", move(cron))
    yield Step("stop", "the daemons stop", lambda: _stop_old(where))
    yield Step("starters", f"{', '.join(others)} are set aside", move(*others))
    yield Step(
        "data", f"{where.data} becomes {data(where)}", lambda: _rename(where.data, data(where))
    )


def _stop_old(where: Paths) -> None:
    old_software.stop(where)
    directory = data_directory.DataDirectory(where, True)
    pending = [str(number) for number, ended in directory.jobs() if not ended]
    if pending and (where.config_file).exists():
        raise errors.make_state_error(
            f"jobs were submitted meanwhile and have not ended: {', '.join(pending)}."
            " ganeti-takeover back starts the old daemons again; begin again when they have ended",
        )


def _rename(old: Path, new: Path) -> None:
    """Rename a directory, unless that is done. An empty directory in the way is removed."""
    if not old.exists() and new.exists():
        return
    if new.exists():
        _remove_empty(new)
    os.rename(old, new)
    for parent in {old.parent, new.parent}:
        files.fsync_dir(parent)


def _remove_empty(directory: Path) -> None:
    """Remove directories without any file, as the package makes them."""
    found = [path for path in sorted(directory.rglob("*")) if not path.is_dir()]
    if found:
        raise errors.make_state_error(
            f"{directory} is not empty: {', '.join(map(str, found[:5]))}. Move it away",
        )
    shutil.rmtree(directory)


# run -------------------------------------------------------------------------------------------


def takeover(where: Paths, record: Record, say: Callable[[str], None]) -> Iterator[Step]:
    """Make the node one of ours and start our daemons. Each part reads what the last one wrote."""
    is_master = record.host == record.master
    if is_master:
        yield Step(
            "kits",
            "certificates are made, and the configuration is converted",
            lambda: _make_kits(where, record),
        )
    yield Step("stage", f"{staged(where)} is made", lambda: _stage(where))
    yield Step(
        "place",
        f"{staged(where)} becomes {where.data}",
        lambda: _rename(staged(where), where.data),
    )
    yield Step("adopt", "guests are adopted", lambda: _adopt(where, record, say))
    yield Step("start", "the daemons of this software start", lambda: _start(where, is_master, say))
    yield Step("confirm", "guests are checked", lambda: confirm(where))


def _make_kits(where: Paths, record: Record) -> None:
    """Convert the configuration and write a kit for each node, and what the master keeps."""
    raw = data_directory.read(data(where) / "config.data")
    config, made = kits.make(upgrade.upgrade(raw).config)
    files.ensure_dir(where.takeover / "kits", 0o700)
    target = data_directory.CopiedPaths(where.takeover / "kits")
    store.write_checkpoint(config, target)
    for name, kit in made.items():
        path = kit_file(where) if name == record.host else kit_of(where, name)
        files.write_atomic(path, kits.dump(kit), mode=0o600)


def read_kit(where: Paths, record: Record) -> Kit:
    """The kit of this node.

    Raises:
        OpPrereqError: it has not come yet, or is another node's.
    """
    path = kit_file(where)
    try:
        kit = kits.load(path.read_bytes())
    except FileNotFoundError as err:
        raise errors.make_state_error(
            f"{path} is missing: run ganeti-takeover run on {record.master} first, which is the"
            " master and sends it here",
        ) from err
    if (kit.node, kit.cluster) != (record.host, record.cluster):
        raise errors.make_state_error(
            f"{path} is for node {kit.node} of cluster {kit.cluster}, not for {record.host} of"
            f" {record.cluster}; take the one that was made for this node",
        )
    return kit


def _stage(where: Paths) -> None:
    old, new = data(where), staged(where)
    kit = kits.load(kit_file(where).read_bytes())
    if new.exists():
        shutil.rmtree(new)
    there = data_directory.CopiedPaths(new)
    files.ensure_dir(new, 0o755)
    for name in _KEPT:
        if (old / name).exists():
            _copy(old / name, new / name)
    for source in (old / "rapi/users", old / "rapi_users"):
        if source.is_file() and not there.rapi_users.exists():
            files.ensure_dir(there.rapi, 0o750)
            _copy(source, there.rapi_users)
    _link_tree(old / "queue", there.queue)
    version = there.queue / "version"
    if not version.exists():
        files.write_atomic(version, f"{constants.JOB_QUEUE_VERSION}\n")
    files.write_atomic(there.ca_cert, kit.ca_pem, mode=0o444)
    if kit.ca_key:
        files.write_atomic(there.ca_key, kit.ca_key, mode=0o400)
    files.write_atomic(there.server_cert, kit.server_pem, mode=0o400)
    files.write_atomic(there.client_cert, kit.client_pem, mode=0o400)
    files.ensure_dir(there.run_rights)
    for instance in kit.instances:
        right = RunRight(
            uuid=instance.uuid, name=instance.name, epoch=_FIRST_RIGHT, state=RightState.HERE
        )
        content = jsonio.dumps(msgspec.to_builtins(right))
        files.write_atomic(there.run_rights / instance.uuid, content)
    write_ssconf(there, kit.ssconf)
    made = where.takeover / "kits"
    for path in (made / "config.data", made / "config.data.sha256", made / "config.data.accepted"):
        if path.exists():
            _copy(path, new / path.name)


def _copy(source: Path, target: Path) -> None:
    """With mode and owner; durable at return."""
    state = source.stat()
    files.write_atomic(
        target,
        source.read_bytes(),
        mode=state.st_mode & 0o777,
        uid=state.st_uid,
        gid=state.st_gid,
    )


def _link_tree(source: Path, target: Path) -> None:
    """The job queue: its files are replaced, never written, so links to them are copies."""
    files.ensure_dir(target, 0o750)
    if not source.is_dir():
        return
    for path in sorted(source.rglob("*")):
        new = target / path.relative_to(source)
        if path.is_dir():
            files.ensure_dir(new, 0o750)
        elif path.is_file() and path.name not in ("lock", "serial", "drain"):
            os.link(path, new)
        elif path.name == "serial":
            _copy(path, new)


def _adopt(where: Paths, record: Record, say: Callable[[str], None]) -> None:
    """Write our records of the guests that run."""
    instances = {item.name: item for item in read_kit(where, record).instances}
    guests = Store(where.kvm)
    guests.prepare()
    for guest in look.read_guests(where):
        text = _foreign(where, guest)
        if guest.pid is None or text is None:
            _forget_dead(where, guest)
            continue
        instance = instances.get(guest.name)
        if instance is None:
            say(f"  process {guest.pid} is of {guest.name}, which does not belong here: left alone")
            continue
        made = adoption.adopt(
            adoption.read(text),
            guest.argv,
            instance,
            guest.taps,
            started=guest.started,
            blocks=_find_blocks(text),
        )
        guests.save(_name_software(made, record))
        command = systemd_scope.move_in(where, guest.name, guest.pid)
        if command:
            process.run_checked(command, timeout=30.0)
        say(f"  {guest.name}: process {guest.pid}")


def _name_software(runtime: Runtime, record: Record) -> Runtime:
    version = next((record.packages[name] for name in sorted(record.packages)), "")
    software = f"Ganeti {version.partition('-')[0]}".strip()
    return msgspec.structs.replace(runtime, software=software)


def _foreign(where: Paths, guest: Guest) -> str | None:
    """The other software's record: the file, or the copy once ours is in its place."""
    if guest.record is not None and guest.foreign:
        return guest.record
    try:
        return files.read_text(records(where) / f"{guest.name}{_RUNTIME}")
    except FileNotFoundError:
        return None


def _forget_dead(where: Paths, guest: Guest) -> None:
    """A record of a guest that has ended, of the other software: ours could not read it."""
    if guest.foreign:
        files.remove(Store(where.kvm).runtime_file(guest.name))


def _find_blocks(text: str) -> list[str]:
    paths = [path for _, path, _ in adoption.read(text).disks]
    return [path for path in paths if Path(path).is_block_device()]


def _start(where: Paths, is_master: bool, say: Callable[[str], None]) -> None:
    make_directories(where)
    settings = (files.read_text(path).strip() for path in map(where.ssconf, file_settings()))
    file_paths.write_default(where, settings)
    if services.uses_systemd(where):
        units = ["ganeti.target", "ganeti-watcher.timer", "ganeti-cleaner.timer"]
        process.run_checked(["systemctl", "daemon-reload"], timeout=120.0)
        process.run_checked(["systemctl", "reset-failed", "ganeti*"], timeout=30.0)
        process.run_checked(["systemctl", "start", "--no-block", *units], timeout=30.0)
    services.start(constants.NODED, where)
    if is_master and not nodes_to_come(where):
        for text in services.start_master(where):
            say(f"  {text}")


def adopted(where: Paths) -> dict[str, int]:
    """Guests that run and that the other software started -> their processes.

    Raises:
        HypervisorError: a record is damaged.
    """
    guests = Store(where.kvm)
    known = (guests.find(guest.name) for guest in look.read_guests(where) if not guest.foreign)
    return {
        guest.runtime.instance.name: guest.pid
        for guest in known
        if guest is not None and guest.pid is not None and guest.runtime.software
    }


def confirm(where: Paths) -> None:
    """Raises OpExecError when a guest runs whose record is not ours yet, or that is not seen."""
    seen = KvmHypervisor(where).info_all()
    lost = [
        f"{guest.name} (process {guest.pid})"
        for guest in look.read_guests(where)
        if guest.pid is not None and guest.name not in seen
    ]
    if lost:
        raise errors.OpExecError(f"guests run but are not seen: {', '.join(lost)}")


def nodes_to_come(where: Paths) -> list[str]:
    """On the master: nodes whose kits were made."""
    return sorted(path.stem for path in (where.takeover / "kits").glob("*.json"))


def converted(where: Paths) -> Config:
    """The configuration that the takeover made."""
    return store.read_config(data_directory.CopiedPaths(where.takeover / "kits"))


def load_records(where: Paths) -> Mapping[str, str]:
    return {
        path.name.removesuffix(_RUNTIME): files.read_text(path)
        for path in sorted(records(where).glob(f"*{_RUNTIME}"))
    }
