"""Modules of the kernel, DRBD and what drivers of hypervisors ask for."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from ganeti import errors
from ganeti.doctor.facts import Kernel, Module, Wish
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.paths import Paths
from ganeti.storage.drbd import dialect, proc
from ganeti.storage.drbd import host as drbd_host

#: Modules, and a path that is there when the module is in the kernel, loaded or built in.
_MODULES = {
    "dm_mod": "/sys/class/misc/device-mapper",
    "drbd": "/proc/drbd",
    "kvm": "/dev/kvm",
    "tun": "/sys/class/misc/tun",
    "vhost_net": "/dev/vhost-net",
}
_FLAGS = {"vmx", "svm"}


def read(where: Paths, wish: Wish) -> Kernel:
    """Reads /proc and /sys, and asks the drivers of the wanted hypervisors."""
    release = platform.release()
    version, problem, helper = _drbd(where)
    return Kernel(
        release=release,
        modules=modules(where, release),
        virtualization=bool(_FLAGS & _flags()),
        drbd=version,
        drbd_problem=problem,
        helper=helper,
        hypervisors=_hypervisors(where, wish.hypervisors or {}),
    )


def modules(where: Paths, release: str) -> dict[str, Module]:
    """State of each module that a cluster may need."""
    files = where.under(f"/lib/modules/{release}")
    known = read_module_names(_read(files / "modules.dep"), _read(files / "modules.builtin"))
    found = {}
    for name, sign in _MODULES.items():
        if os.path.exists(where.local(sign) if name == "drbd" else sign):
            found[name] = Module.LOADED
        else:
            found[name] = Module.AVAILABLE if name in known else Module.MISSING
    return found


def read_module_names(*texts: str) -> set[str]:
    """Names in the lists of modules below /lib/modules. Pure."""
    paths = (line.split(":", 1)[0] for text in texts for line in text.splitlines())
    names = (path.rpartition("/")[2].partition(".ko")[0] for path in paths)
    return {name.replace("-", "_") for name in names if name}


def _flags() -> set[str]:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _drbd(where: Paths) -> tuple[str | None, str, str | None]:
    """Version of the loaded module, why it is not handled, its helper."""
    try:
        found = dialect.version(where)
    except errors.BlockDeviceError:
        return None, "", None
    version, problem, helper = ".".join(map(str, found)), "", None
    try:
        proc.check_version(found)
        helper = drbd_host.helper(where)
    except errors.BlockDeviceError as err:
        problem = errors.text(err)
    return version, problem, helper


def _hypervisors(where: Paths, wanted: Mapping[str, Mapping[str, object]]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, params in wanted.items():
        try:
            found[name] = HYPERVISORS.get(name)(where).verify(params)
        except errors.GanetiError as err:
            found[name] = errors.text(err)
    return found
