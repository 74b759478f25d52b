"""Reads what a node of the other software is like; changes nothing."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files, process, services
from ganeti.hypervisor.kvm import adoption, qemu_process
from ganeti.hypervisor.kvm.runtime import Store
from ganeti.offline import data_directory
from ganeti.offline.data_directory import DataDirectory
from ganeti.offline.takeover.facts import Facts, Guest, Job, Owner
from ganeti.paths import Paths

#: Daemons of the other software; the names of some are also those of ours.
OLD_DAEMONS = (
    "ganeti-noded",
    "ganeti-confd",
    "ganeti-wconfd",
    "ganeti-luxid",
    "ganeti-rapi",
    "ganeti-kvmd",
    "ganeti-mond",
    "ganeti-metad",
)
PACKAGES = (
    "ganeti",
    "ganeti-3.1",
    "ganeti-3.0",
    "ganeti-2.16",
    "ganeti-haskell-3.1",
    "ganeti-haskell-3.0",
    "ganeti-htools-3.1",
    "ganeti-htools-3.0",
)
#: A script that serves the NIC by which a guest asks for metadata, and no other. Here a script of
#: this name attaches all NICs of new guests, in place of the node daemon.
SCRIPTS = ("/etc/ganeti/kvm-ifup-os",)
#: Options of daemons that decide who may reach them.
_OPTIONS = ("NODED_ARGS", "RAPI_ARGS", "CONFD_ARGS", "MOND_ARGS")
_SHIPPED = ("", "-b 127.0.0.1 --require-authentication")
_RUNTIME = ".runtime"
#: Seconds for a look at sockets and packages.
_QUICK = 30.0
_LISTENER = re.compile(
    r"^LISTEN\s+\S+\s+\S+\s+\S*:(\d+)\s+\S+(?:\s+users:\(\(\"(.*?)\",pid=(\d+))?"
)


def read(where: Paths, data: Path | None = None) -> Facts:
    """Facts of this node; ``data`` is the old data directory where it was set aside.

    Raises:
        OSError: something cannot be read.
    """
    directory = where.data if data is None else data
    config, problem = _config(directory)
    ssconf = {
        key: _text(directory / f"ssconf_{key}").strip() for key in ("cluster_name", "master_node")
    }
    # Paths of jobs are those of the directory, wherever it is.
    jobs = DataDirectory(data_directory.CopiedPaths(directory), False)
    return Facts(
        host=paths.hostname(),
        cluster=ssconf["cluster_name"],
        master=ssconf["master_node"],
        config=config,
        config_error=problem,
        jobs=tuple(Job(id=number, ended=ended) for number, ended in jobs.jobs()),
        daemons=dict(_daemons(where)),
        own_daemons={
            name: pid
            for name in services.ALL
            if (pid := data_directory.daemon_pid(name, where.pid_file(name))) is not None
            and is_ours(pid)
        },
        listeners=read_listeners(process.run(["ss", "-Hltnp"], timeout=_QUICK).stdout),
        guests=tuple(read_guests(where)),
        interfaces=tuple(sorted(os.listdir("/sys/class/net"))),
        devices=tuple(_devices(where, config)),
        systems=tuple(sorted(_systems(where))),
        strangers=tuple(_strangers(directory)),
        mounted=directory.is_dir() and os.path.ismount(directory),
        exports=tuple(str(path) for path in (directory / "export",) if _has_entries(path)),
        scripts=tuple(name for name in SCRIPTS if where.under(name).exists()),
        options=dict(_options(where)),
        packages=dict(_packages(where)),
    )


def _config(directory: Path) -> tuple[object, str]:
    path = directory / "config.data"
    if not path.exists():
        return None, ""
    try:
        return data_directory.read(path), ""
    except errors.GanetiError as err:
        return None, errors.text(err)


def _daemons(where: Paths) -> Iterator[tuple[str, int]]:
    for name in OLD_DAEMONS:
        pid = data_directory.daemon_pid(name, where.pid_file(name))
        if pid is not None and not is_ours(pid):
            yield name, pid


def is_ours(pid: int) -> bool:
    """Whether a daemon is one of this software: it runs in the environment of this program."""
    words = qemu_process.command_line(pid)[:3]
    return any("venv/bin/python" in word or word.startswith("ganeti.") for word in words)


def read_listeners(text: str) -> dict[int, str]:
    """Output of ``ss -Hltnp``: port -> who listens."""
    found = {}
    for line in text.splitlines():
        match = _LISTENER.match(line)
        if match:
            who = f"{match[2]} (process {match[3]})" if match[2] else "somebody"
            found[int(match[1])] = who
    return found


def read_guests(where: Paths) -> Iterator[Guest]:
    store = Store(where.kvm)
    names = {path.name.removesuffix(_RUNTIME) for path in (where.kvm / "conf").glob(f"*{_RUNTIME}")}
    if (where.kvm / "pid").is_dir():
        names |= set(os.listdir(where.kvm / "pid"))
    for name in sorted(names):
        pid = store.pid(name)
        record = _text(store.runtime_file(name)) or None
        yield Guest(
            name=name,
            pid=pid,
            started=0.0 if pid is None else qemu_process.start_time(pid),
            argv=() if pid is None else qemu_process.command_line(pid),
            record=record,
            foreign=record is not None and is_foreign(record),
            taps=dict(_taps(store.nic_dir(name))),
            socket=store.socket(name, "qmp").exists(),
        )


def _taps(directory: Path) -> Iterator[tuple[int, str]]:
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            if path.name.isdigit():
                yield int(path.name), path.read_text(encoding="ascii").strip()


def _devices(where: Paths, config: object) -> Iterator[str]:
    """Paths that a configuration of any version speaks of, as far as they exist."""
    for path in sorted(set(_paths(config, where))):
        if os.path.exists(where.local(path) if path.startswith("/srv") else path):
            yield path
    for link in sorted(Path("/dev").glob("drbd[0-9]*")):
        yield str(link)


def _paths(config: object, where: Paths) -> Iterator[str]:
    """From all places of disks: ``[group, volume]`` and ``[driver, path]``."""
    if isinstance(config, dict):
        place = config.get("logical_id")
        if isinstance(place, list) and len(place) == 2:
            first, second = map(str, place)
            yield second if second.startswith("/") else f"/dev/{first}/{second}"
        for value in config.values():
            yield from _paths(value, where)
    elif isinstance(config, list):
        for value in config:
            yield from _paths(value, where)


def _systems(where: Paths) -> Iterator[str]:
    for directory in where.os_search_path:
        if directory.is_dir():
            yield from os.listdir(directory)


def _strangers(directory: Path) -> Iterator[Owner]:
    known = {entry.pw_uid for entry in pwd.getpwall()}
    if not directory.is_dir():
        return
    for path in (directory, *sorted(directory.glob("*"))):
        uid = path.lstat().st_uid
        if uid not in known:
            yield Owner(path=str(path), uid=uid)


def _options(where: Paths) -> Iterator[tuple[str, str]]:
    for name in _OPTIONS:
        try:
            words = services.read_words(name, where)
        except errors.ConfigurationError:
            continue
        text = " ".join(words or ())
        if text not in _SHIPPED:
            yield name, text


def _packages(where: Paths) -> Iterator[tuple[str, str]]:
    if where.root != Path("/") or not Path("/usr/bin/dpkg-query").exists():
        return
    words = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", *PACKAGES]
    for line in process.run(words, timeout=_QUICK).stdout.splitlines():
        name, version, status = line.split()
        if status == "installed":
            yield name, version


def _has_entries(path: Path) -> bool:
    return path.is_dir() and any(path.iterdir())


def _text(path: Path) -> str:
    try:
        return files.read_text(path)
    except FileNotFoundError:
        return ""


def foreign_records(where: Paths) -> dict[str, str]:
    """Runtime files of the other software, by the names of guests."""
    found = {}
    for guest in read_guests(where):
        if guest.record is not None and guest.foreign:
            found[guest.name] = guest.record
    return found


def is_foreign(record: str) -> bool:
    """Whether a runtime file is of the other software; a damaged one is nobody's."""
    try:
        adoption.read(record)
    except errors.ParseError:
        return False
    return True


def ports() -> dict[str, int]:
    """TCP ports of our daemons, by name."""
    return {name: constants.DEFAULT_PORTS[name] for name in (constants.NODED, constants.RAPI)}
