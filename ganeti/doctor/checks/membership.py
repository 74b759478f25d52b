"""The server as a node: users, files, certificates, daemons, timers, its clock."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator

from ganeti.doctor.facts import Certificate, File, Membership, Stage
from ganeti.doctor.findings import Finding, fail, ok, warn

_LEVELS = {"warning": warn, "error": fail}


def check(facts: Membership) -> Iterator[Finding]:
    yield from _stage(facts)
    yield from _users(facts)
    yield from _files(facts)
    yield from _certificates(facts)
    yield from _daemons(facts)
    yield from _watcher(facts)
    if facts.synchronized is False:
        yield warn(
            "time",
            "the clock of this server follows no source of time",
            "apt-get install chrony",
        )
    elif facts.synchronized:
        yield ok("time", "the clock follows a source of time")


def _stage(facts: Membership) -> Iterator[Finding]:
    if facts.stage is Stage.PARTIAL:
        yield fail(
            "cluster",
            f"files of a cluster are here, but {', '.join(facts.missing)} is missing; setting this"
            " server up was interrupted",
            "repeat gnt-cluster init here, or gnt-node add on the master;"
            " ganeti-node-cleanup --yes-do-it removes them",
        )
        return
    yield ok(
        "cluster",
        {
            Stage.BARE: "this server belongs to no cluster",
            Stage.NODE: "this server is a node",
            Stage.MASTER: "this server is the master",
        }[facts.stage],
    )


def _users(facts: Membership) -> Iterator[Finding]:
    if facts.users:
        level, text = warn, "users or groups are missing, so that all daemons run as root"
        if facts.systemd:
            level, text = (
                fail,
                "users or groups are missing, so that ganeti-rapi cannot start",
            )
        yield level("users", text, "ganeti-users-setup --yes-do-it")
    elif facts.users is not None:
        yield ok("users", "users and groups of the daemons")


def _files(facts: Membership) -> Iterator[Finding]:
    problems = [found for each in facts.files if (found := _flaw(each, facts.owner))]
    yield from problems
    if facts.files and not problems:
        yield ok("files", "owners and modes of directories and secrets")


def _flaw(file: File, owner: int) -> Finding | None:
    mode = stat.S_IMODE(file.mode)
    if file.directory != file.wanted_directory:
        kind = "directory" if file.wanted_directory else "file"
        return fail("files", f"{file.path} is not a {kind}", f"mv {file.path} {file.path}.old")
    if file.uid != owner:
        return fail(
            "files",
            f"{file.path} belongs to the user with the uid {file.uid}",
            f"chown {owner} {file.path}",
        )
    if mode & stat.S_IWOTH:
        text = f"everybody may write to {file.path} (mode {mode:04o})"
        return fail("files", text, f"chmod o-w {file.path}")
    if not file.wanted_directory and mode & (stat.S_IRWXO | stat.S_IWGRP):
        text = f"others may read the secret in {file.path} (mode {mode:04o})"
        return fail("files", text, f"chmod u=r,go= {file.path}")
    return None


def _certificates(facts: Membership) -> Iterator[Finding]:
    good = []
    for each in facts.certificates:
        if each.level in _LEVELS:
            yield _LEVELS[each.level](
                "certificates",
                f"{each.path} {each.text}",
                _renewal(each),
            )
        else:
            good.append(each)
    if good and len(good) == len(facts.certificates):
        yield ok("certificates", f"{len(good)} certificates are valid")


def _renewal(certificate: Certificate) -> str:
    """How to renew a certificate: by a node call as long as the node is still trusted."""
    if certificate.path.endswith("/rapi.pem"):
        return "on the master: gnt-cluster renew-crypto --new-rapi-certificate"
    if "spice" in certificate.path:
        return "on the master: gnt-cluster renew-crypto --new-spice-certificate"
    if certificate.level == "error" and "expired" in certificate.text:
        return (
            "on the master: gnt-node add --readd with the name of this server; if this is the"
            " master, or all nodes have such certificates, set the clocks back, then gnt-cluster"
            " renew-crypto"
        )
    if "valid only from" in certificate.text:
        return "correct the clock of this server"
    return "on the master: gnt-cluster renew-crypto --expiring"


def _daemons(facts: Membership) -> Iterator[Finding]:
    for name in facts.stopped:
        start = f"systemctl start {name}" if facts.systemd else f"ganeti-daemon-util start {name}"
        if name in facts.optional:
            yield warn("daemons", f"{name} does not run; the watcher will start it", start)
        else:
            yield fail("daemons", f"{name} does not run", start)
    if facts.disabled:
        yield warn(
            "daemons",
            f"{', '.join(facts.disabled)} will not start after a reboot",
            f"systemctl enable {' '.join(facts.disabled)}",
        )
    if facts.stage in (Stage.NODE, Stage.MASTER) and not facts.stopped:
        yield ok("daemons", "all that belong here run")


def _watcher(facts: Membership) -> Iterator[Finding]:
    if facts.watcher is None:
        return
    if not facts.watcher:
        yield warn(
            "watcher",
            "nothing starts ganeti-watcher, which brings back what died",
            "systemctl enable --now ganeti-watcher.timer"
            if facts.systemd
            else "echo '*/5 * * * * root ganeti-watcher' >> /etc/cron.d/ganeti",
        )
    elif facts.paused is not None:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(facts.paused))
        yield warn("watcher", f"it is paused until {until}", "gnt-cluster watcher continue")
    else:
        yield ok("watcher", "it is started every few minutes")
