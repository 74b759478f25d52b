"""The server as a node: users, files, certificates, daemons, timers, its clock."""

from __future__ import annotations

import ctypes
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files, process, services
from ganeti.base.clock import SYSTEM
from ganeti.doctor import users
from ganeti.doctor.facts import Certificate, File, Membership, Stage
from ganeti.luxi.absence import master_name
from ganeti.net import certs, expiry
from ganeti.paths import Paths

_PATIENCE = 20.0
_TIMER = "ganeti-watcher.timer"
_CRON = ("/etc/cron.d/ganeti", "/etc/crontab", "/var/spool/cron/crontabs/root")
#: ``TIME_ERROR`` of adjtimex(2): the clock follows nothing.
_FOLLOWS_NOTHING = 5
#: At least as large as ``struct timex`` of any machine.
_TIMEX_BYTES = 512


def read(where: Paths) -> Membership:
    """Asks systemd where it manages the daemons."""
    stage, missing = _stage(where)
    systemd = services.uses_systemd(where)
    member = stage in (Stage.NODE, Stage.MASTER)
    return Membership(
        stage=stage,
        missing=tuple(str(path) for path in missing),
        users=None if paths.is_rooted() else tuple(map(shlex.join, users.find_missing())),
        files=tuple(_files(where)),
        certificates=tuple(_certificates(where)),
        owner=os.geteuid() if paths.is_rooted() else 0,
        watcher=_starts_watcher(where, systemd=systemd)
        if member and not paths.is_rooted()
        else None,
        paused=_pause(where),
        systemd=systemd,
        disabled=tuple(_disabled(stage)) if systemd else (),
        stopped=tuple(_find_stopped(where, stage)) if member else (),
        optional=frozenset(each.name for each in services.ALL.values() if each.optional),
        synchronized=_synchronized(),
    )


def _stage(where: Paths) -> tuple[Stage, list[Path]]:
    """How far this server is a part of a cluster, and what is missing if it is one by half."""
    needed = [where.ca_cert, where.server_cert, where.client_cert, where.ssconf("cluster_name")]
    if where.init_mark.exists() and not where.config_file.exists():
        return Stage.PARTIAL, [where.config_file]
    missing = [path for path in needed if not _has_content(path)]
    if len(missing) == len(needed):
        return Stage.BARE, []
    if missing:
        return Stage.PARTIAL, missing
    is_master = master_name(where) == paths.hostname()
    return (Stage.MASTER if is_master else Stage.NODE), []


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _files(where: Paths) -> Iterator[File]:
    for directory in (where.data, where.queue, where.run, where.log, where.conf):
        yield from _file(directory, directory=True)
    for secret in (where.ca_key, where.server_cert, where.client_cert, where.rapi_cert):
        yield from _file(secret, directory=False)
    for secret in (where.hmac_key, where.domain_secret, where.config_file):
        yield from _file(secret, directory=False)
    for secret in (where.rapi_users, where.rapi_login):
        yield from _file(secret, directory=False)


def _file(path: Path, *, directory: bool) -> Iterator[File]:
    try:
        facts = path.stat()
    except OSError:
        return
    yield File(str(path), facts.st_mode, facts.st_uid, stat.S_ISDIR(facts.st_mode), directory)


def _certificates(where: Paths) -> Iterator[Certificate]:
    for path in (where.ca_cert, where.server_cert, where.client_cert, where.rapi_cert):
        if not path.exists():
            continue
        try:
            info = certs.inspect(path) if path == where.ca_cert else certs.inspect_pair(path)
            if path in (where.server_cert, where.client_cert):
                certs.inspect_pair(path, where.ca_cert.read_bytes())
        except OSError:
            continue  # without ca.pem, which is a finding of its own
        except errors.X509CertError as err:
            yield Certificate(str(path), "error", str(err.args[-1]))
            continue
        level, text = expiry.judge(info)
        yield Certificate(str(path), str(level), text)


def _starts_watcher(where: Paths, *, systemd: bool) -> bool:
    if systemd and _is_enabled(_TIMER):
        return True
    return any(runs_watcher(_read(where.under(path))) for path in _CRON)


def runs_watcher(table: str) -> bool:
    """Whether a table of cron starts the watcher. Pure."""
    lines = (line.strip() for line in table.splitlines())
    return any(constants.WATCHER in line for line in lines if not line.startswith("#"))


def _disabled(stage: Stage) -> list[str]:
    units = ["ganeti.target", services.ALL[constants.NODED].unit]
    return [unit for unit in units if stage is not Stage.BARE and not _is_enabled(unit)]


def _is_enabled(unit: str) -> bool:
    try:
        return process.run(["systemctl", "is-enabled", unit], timeout=_PATIENCE).ok
    except errors.CommandError:
        return False


def _find_stopped(where: Paths, stage: Stage) -> Iterator[str]:
    for service in services.ALL.values():
        if service.of_master and stage is not Stage.MASTER:
            continue
        try:
            if not services.is_wanted(service, where):
                continue
        except errors.ConfigurationError:
            continue  # /etc/default/ganeti is broken; the daemon says so when it is started
        if not services.is_running(service.name, where):
            yield service.name


def _pause(where: Paths) -> float | None:
    try:
        until = float(files.read_text(where.watcher_pause).strip())
    except (OSError, ValueError):
        return None
    return until if until > SYSTEM.now() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _synchronized() -> bool | None:
    """Whether the kernel says that its clock follows a source of time; asks, sets nothing."""
    call = getattr(ctypes.CDLL(None), "adjtimex", None)
    if call is None:
        return None
    state = call(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _FOLLOWS_NOTHING
