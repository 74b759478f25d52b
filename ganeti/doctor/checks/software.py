"""Python, its libraries, packages of Debian and programs. Needs no library of others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ganeti import constants
from ganeti.doctor.facts import Library, Software, Stage, Wish
from ganeti.doctor.findings import Finding, fail, ok, warn

#: Oldest Python that works.
OLDEST_PYTHON = (3, 11)
#: Packages of the Ganeti that Debian has; ours is called ganeti, too, but needs none of these.
_DEBIAN = re.compile(r"ganeti-(?:haskell-)?[23]\.\d+|python3-ganeti(?:-\S+)?")
#: Programs by the package that has them, and why they are wanted.
_ALWAYS = {"ip": "iproute2", "ssh": "openssh-client"}
_TEMPLATES = {
    "plain": {"lvs": "lvm2"},
    "drbd": {"lvs": "lvm2", "drbdsetup": "drbd-utils", "drbdmeta": "drbd-utils"},
    "rbd": {"rbd": "ceph-common"},
}
_HYPERVISORS = {
    "kvm": {"qemu-img": "qemu-utils", "socat": "socat"},
    "lxc": {"lxc-start": "lxc"},
    "xen-pvm": {"xl": "xen-tools"},
    "xen-hvm": {"xl": "xen-tools"},
}


def check(facts: Software, wish: Wish, stage: Stage) -> Iterator[Finding]:
    yield from basics(facts)
    yield from check_other_ganeti(facts, stage)
    yield from _programs(facts, wish)
    if facts.release is not None and facts.release != constants.RELEASE_VERSION:
        yield warn(
            "version",
            f"version {constants.RELEASE_VERSION} is here, the cluster runs {facts.release}",
            "install the same version on all nodes",
        )


def basics(facts: Software) -> Iterator[Finding]:
    """Checks that must pass before all others."""
    shown = ".".join(map(str, facts.python))
    if facts.python[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield fail(
            "python", f"{facts.executable} is Python {shown}", f"install Python {oldest} or later"
        )
    else:
        yield ok("python", f"Python {shown}")
    broken = [(each, reason) for each in facts.libraries if (reason := _flaw(each))]
    for each, reason in broken:
        yield fail("libraries", f"{each.name} {reason}", _reinstall(facts))
    if facts.libraries and not broken:
        yield ok("libraries", f"{len(facts.libraries)} libraries of Python")
    yield from _packages(facts)


def _flaw(library: Library) -> str:
    """The problem of a library, empty without one."""
    if library.version is None:
        return "is not installed"
    if library.problem:
        return f"{library.version} cannot be imported ({library.problem})"
    if library.lowest and numbers(library.version) < numbers(library.lowest):
        return f"{library.version} is older than {library.lowest}"
    return ""


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at the end."""
    parts = [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version, maxsplit=1)[0])]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _reinstall(facts: Software) -> str:
    if any(package.name == "ganeti" for package in facts.packages):
        return "apt-get install --reinstall ganeti, with the package for this release of Debian"
    return "run make install again"


def _packages(facts: Software) -> Iterator[Finding]:
    for package in facts.packages:
        # The second letter is the state: i installed, c only its configuration is left, n nothing.
        if package.status[1:2] not in ("i", "c", "n", "t", "W"):
            yield fail(
                "packages",
                f"{package.name} {package.version} is installed by half ({package.status.strip()})",
                "dpkg --configure -a; then apt-get --fix-broken install",
            )


def check_other_ganeti(facts: Software, stage: Stage) -> Iterator[Finding]:
    """Debian's Ganeti beside this one, or the data of another version."""
    names = [
        package.name
        for package in facts.packages
        if _DEBIAN.fullmatch(package.name) and package.status[1:2] not in ("c", "n")
    ]
    if names:
        yield fail(
            "ganeti",
            f"Debian's Ganeti is installed ({', '.join(names)})",
            f"apt-get remove {' '.join(names)}",
        )
    found = facts.configuration
    if found is not None and found != constants.CONFIG_VERSION:
        yield fail(
            "ganeti",
            f"/var/lib/ganeti holds the configuration of version {_version(found)}, not"
            f" {_version(constants.CONFIG_VERSION)}",
            "ganeti-cfgupgrade --dry-run shows whether it can be upgraded; for another cluster"
            " move the directory away",
        )
    elif not names:
        what = "no other Ganeti" if stage is Stage.BARE else f"version {constants.RELEASE_VERSION}"
        yield ok("ganeti", what)


def _version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 10_000 % 100}"


def _programs(facts: Software, wish: Wish) -> Iterator[Finding]:
    wanted = dict(_ALWAYS)
    for name in wish.hypervisors or ():
        wanted |= _HYPERVISORS.get(name, {})
    for name in wish.templates or ():
        wanted |= _TEMPLATES.get(name, {})
    missing = [program for program in wanted if program not in facts.programs]
    if missing:
        packages = dict.fromkeys(wanted[program] for program in missing)
        yield fail(
            "programs",
            f"missing: {', '.join(missing)}",
            f"apt-get install {' '.join(packages)}",
        )
    else:
        yield ok("programs", ", ".join(wanted))
