"""Which QEMU a node has, its version and machine types; asked once per installed file."""

from __future__ import annotations

import os
import re
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio, process, programs, typed
from ganeti.base.text import nearest
from ganeti.hypervisor.kvm.params import DEFAULT_KVM_PATH

#: Name of QEMU in distributions that have no program ``kvm``.
_OTHER_NAME = "qemu-system-x86_64"
_VERSION = re.compile(r"version (\d+)\.(\d+)(?:\.(\d+))?")
_ALIAS = re.compile(r"\(alias of ([^)\s]+)\)")
_TIMEOUT = 20.0
#: QEMU complains of the option when it was built without; the rest makes it end at once.
_SANDBOX_TEST = ("-sandbox", "on,obsolete=deny,resourcecontrol=deny", "-machine", "help")

_asking = threading.Lock()


class Binary(msgspec.Struct, frozen=True, kw_only=True):
    """An installed QEMU."""

    path: str
    #: changes when the file is replaced
    stamp: str
    version: tuple[int, ...]
    #: versioned name of the machine that QEMU takes by default, ``pc-i440fx-7.2``
    default_machine: str
    machines: tuple[str, ...]
    #: short name, as q35, -> versioned one
    aliases: dict[str, str]
    #: whether it can give up system calls that it does not need
    sandbox: bool


@dataclass(frozen=True)
class Finder:
    """Finds QEMU and remembers what it said in ``cache`` (a file below the run directory)."""

    cache: Path

    def find(self, kvm_path: str) -> Binary:
        """The QEMU of the parameter ``kvm_path``.

        Runs QEMU twice (0.1 s) when the file was not seen before, else reads two small files.
        Callers at the same time wait for one of them.

        Raises:
            HypervisorError: there is none, or it does not say what it is.
        """
        path = locate(kvm_path)
        stamp = _stamp(path)
        known = self._read_cache(path, stamp)
        if known is not None:
            return known
        with _asking:
            known = self._read_cache(path, stamp)
            if known is None:
                known = _ask(path, stamp)
                files.ensure_dir(self.cache.parent)
                text = jsonio.dumps(msgspec.to_builtins(known))
                files.write_atomic(self.cache, text, fsync=False)
        return known

    def _read_cache(self, path: str, stamp: str) -> Binary | None:
        try:
            found = typed.convert(jsonio.loads(files.read_text(self.cache)), Binary)
        except FileNotFoundError:
            return None
        except (OSError, errors.ParseError, msgspec.ValidationError):
            # Only a cache, perhaps of another version: it is written again.
            return None
        return found if (found.path, found.stamp) == (path, stamp) else None


def locate(kvm_path: str) -> str:
    """The program itself.

    Debian 12 has ``/usr/bin/kvm`` only with its package ``qemu-system-x86``'s link; so when the
    parameter has its default value and that file is missing, ``qemu-system-x86_64`` of the search
    path is taken. A path that somebody chose is never replaced.

    Raises:
        HypervisorError: there is none, or others than root could replace it.
    """
    why = programs.flaw(kvm_path)
    if why is None:
        return kvm_path
    if kvm_path == DEFAULT_KVM_PATH and not os.path.exists(kvm_path):
        found = shutil.which(_OTHER_NAME, path=process.SAFE_PATH)
        if found:
            return found
        raise errors.HypervisorError(
            f"QEMU is not installed on this node: neither {kvm_path} nor {_OTHER_NAME} is there;"
            " install the package qemu-system-x86 or set kvm_path"
        )
    raise errors.HypervisorError(
        f"the program of kvm_path {why}; install it on this node or set another path"
    )


def _stamp(path: str) -> str:
    try:
        stat = os.stat(path)
    except OSError as err:
        raise errors.HypervisorError(f"cannot inspect {path}: {err.strerror}") from err
    return f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"


def _ask(path: str, stamp: str) -> Binary:
    version = parse_version(_output([path, "--version"]))
    confined = _list_machines_confined(path)
    machines = parse_machines(confined or _output([path, "-machine", "help"]))
    return Binary(
        path=path,
        stamp=stamp,
        version=version,
        default_machine=machines.default,
        machines=machines.names,
        aliases=machines.aliases,
        sandbox=bool(confined),
    )


def _list_machines_confined(path: str) -> str:
    """QEMU's list of machines, printed in its sandbox.

    Empty when QEMU was built without that, or the kernel has not what it needs.
    """
    try:
        has_filters = "\nSeccomp:" in Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return ""
    if not has_filters:
        return ""
    found = process.run([path, *_SANDBOX_TEST], timeout=_TIMEOUT)
    return found.stdout if found.ok else ""


def _output(argv: list[str]) -> str:
    try:
        return process.run_checked(argv, timeout=_TIMEOUT).stdout
    except errors.CommandError as err:
        raise errors.HypervisorError(f"QEMU cannot be used: {err}") from err


def check_machine(qemu: Binary, wanted: str) -> None:
    """Refuse a machine type that this QEMU does not know; options may follow it after a comma.

    Raises:
        HypervisorError: unknown; the text names the nearest.
    """
    name = wanted.partition(",")[0]
    if name and name not in qemu.machines:
        version = ".".join(map(str, qemu.version))
        raise errors.HypervisorError(
            f"machine_version '{name}' is unknown to QEMU {version} on this node"
            f"{nearest(name, qemu.machines)}; see {qemu.path} -machine help"
        )


def parse_version(text: str) -> tuple[int, ...]:
    """``(7, 2, 22)`` of the output of ``qemu --version``."""
    match = _VERSION.search(text)
    if not match:
        raise errors.HypervisorError(f"cannot find a version in QEMU's output: {text[:80]!r}")
    return tuple(int(part) for part in match.groups(default="0"))


@dataclass(frozen=True)
class Machines:
    """Names of machine types, the default, and the versioned ones behind short names."""

    names: tuple[str, ...]
    default: str
    aliases: dict[str, str]


def parse_machines(text: str) -> Machines:
    """The output of ``qemu -machine help``; HypervisorError when no default is among them."""
    names = []
    default = ""
    aliases = {}
    for line in text.splitlines()[1:]:
        name = line.split(None, 1)[0] if line.strip() else ""
        if name:
            names.append(name)
        if "(default)" in line:
            default = name
        match = _ALIAS.search(line)
        if match:
            aliases[name] = match[1]
    if not default:
        raise errors.HypervisorError("QEMU names no default machine; set machine_version")
    return Machines(tuple(names), default, aliases)
