"""A hypervisor that runs nothing: for trying out and testing everything around it.

A running guest is a file ``<run>/fake-hypervisor/<instance>`` with three lines: id (0), memory in
MiB, number of virtual processors. Removing the file is how a guest crashes.

``<conf>/fake-hypervisor.json`` makes the driver misbehave. It is read for every call, so a test can
change it while daemons run::

    {"start": {"web1": {"fail": "no more memory"}, "*": {"delay": 0.2}},
     "stop":  {"web2": {"lie": true}},
     "info":  {"web3": {"lie": {"state": 1}}, "web4": {"lie": null}}}

The file is that of the node: each node of a cluster in a directory has its own root, so its own
script. Replace it by a rename (write beside it, then move), so that no call reads half of it.

The first key is a method, the second an instance or ``*`` for all others (methods without an
instance know only ``*``). ``delay`` waits so many seconds first (at most 60), ``fail`` raises a
HypervisorError with that text, ``lie`` changes the answer without doing anything:

- start, stop, reboot, cleanup, check_params: any value means "say it is done, do nothing"
- info: an object replaces single values, null says that it does not run; also seen in info_all
- list_names: a list of names; node_info: an object replaces single values; verify: a text
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.hypervisor import host
from ganeti.hypervisor.interface import (
    AttachedDisk,
    HvParams,
    Hypervisor,
    NodeInfo,
    Traits,
)
from ganeti.model.names import RunState
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance

T = TypeVar("T")

_METHODS = Literal[
    "start",
    "stop",
    "reboot",
    "cleanup",
    "list_names",
    "info",
    "info_all",
    "node_info",
    "verify",
    "check_params",
    "console",
]
_ANY = "*"


class FakeParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The only parameter, for code that asks every hypervisor how it migrates."""

    migration_mode: Annotated[
        Literal["live", "non-live"], Meta(description="How guests are moved by default")
    ] = "live"


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one method does for one instance instead of its work."""

    delay: Annotated[float, Meta(ge=0, le=60, description="Seconds to wait first")] = 0
    fail: str | UnsetType = UNSET
    lie: Any | UnsetType = UNSET


_Script = dict[_METHODS, dict[str, Rule]]


class FakeHypervisor(Hypervisor):
    """Guests are files; never blocks but for a scripted delay."""

    traits: ClassVar[Traits] = Traits(
        has_console=False, global_params=frozenset({"migration_mode"})
    )
    params: ClassVar[type[msgspec.Struct]] = FakeParams

    @property
    def script_file(self) -> Path:
        return self.paths.conf / "fake-hypervisor.json"

    # the twelve methods

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        self._params(instance.hvparams)
        if self._ruled("start", instance.name):
            return
        path = self._path(instance.name)
        memory = instance.beparams.get("maxmem", 128)
        vcpus = instance.beparams.get("vcpus", 1)
        files.ensure_dir(path.parent)
        if not _create(path, f"0\n{memory}\n{vcpus}\n"):
            raise errors.HypervisorError(f"instance {instance.name} already runs on this node")

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        if not self._ruled("stop", name):
            files.remove(self._path(name))

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        if self._ruled("reboot", instance.name):
            return
        if not self._path(instance.name).exists():
            raise errors.HypervisorError(
                f"instance {instance.name} does not run on this node, so it cannot be rebooted"
            )

    def cleanup(self, name: str) -> None:
        self._path(name)
        self._ruled("cleanup", name)

    def list_names(self) -> list[str]:
        rule = self._rule("list_names")
        if rule is not None and rule.lie is not UNSET:
            return self._believable("list_names", rule.lie, list[str])
        return self._names()

    def info(self, name: str) -> InstanceInfo | None:
        rule = self._rule("info", name)
        real = self._read(name)
        return real if rule is None or rule.lie is UNSET else self._bent(real, rule.lie)

    def info_all(self) -> dict[str, InstanceInfo]:
        self._rule("info_all")
        # A lie may speak of a guest that nobody ever started.
        names = {*self._names(), *self._script().get("info", {})} - {_ANY}
        found = {name: self.info(name) for name in sorted(names)}
        return {name: info for name, info in found.items() if info is not None}

    def node_info(self, params: HvParams) -> NodeInfo:
        rule = self._rule("node_info")
        memory = host.memory()
        processors = host.processors()
        guests = sum(info.memory for info in map(self._read, self._names()) if info)
        facts: dict[str, Any] = {
            "memory_total": memory.total,
            "memory_free": max(0, memory.available - guests),
            "memory_dom0": memory.total - memory.available,
            "cpu_total": processors.cpus,
            "cpu_nodes": processors.nodes,
            "cpu_sockets": processors.sockets,
        }
        if rule is not None and isinstance(rule.lie, dict):
            facts.update(rule.lie)
        try:
            return NodeInfo(**facts)
        except TypeError as err:
            raise errors.HypervisorError(f"{self.script_file}: node_info: {err}") from err

    def verify(self, params: HvParams) -> str | None:
        rule = self._rule("verify")
        if rule is not None and rule.lie is not UNSET:
            return None if rule.lie is None else str(rule.lie)
        return None

    def check_params(self, params: HvParams) -> None:
        if not self._ruled("check_params", _ANY):
            self._params(params)

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        self._rule("console", instance.name)
        return Console(
            instance=instance.name,
            kind="msg",
            message=f"instance {instance.name} is run by the fake hypervisor: it has no console",
        )

    # guests

    def _path(self, name: str) -> Path:
        host.check_instance_name(name)
        return self.paths.fake_hypervisor / name

    def _names(self) -> list[str]:
        try:
            return sorted(
                name for name in os.listdir(self.paths.fake_hypervisor) if name[0] != "."
            )
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> InstanceInfo | None:
        path = self._path(name)
        try:
            text = files.read_text(path)
        except FileNotFoundError:
            return None
        lines = text.split()
        try:
            return InstanceInfo(memory=int(lines[1]), vcpus=int(lines[2]), state=RunState.RUNNING)
        except (IndexError, ValueError) as err:
            raise errors.HypervisorError(
                f"{path} must hold three numbers, a line each (0, MiB, processors);"
                " remove it to end that guest"
            ) from err

    @staticmethod
    def _params(params: HvParams) -> None:
        try:
            msgspec.convert(params, FakeParams)
        except msgspec.ValidationError as err:
            raise errors.HypervisorError(f"parameter of the fake hypervisor: {err}") from err

    # the script

    def _ruled(self, method: _METHODS, name: str) -> bool:
        """Apply a rule; True when it says that nothing shall be done."""
        rule = self._rule(method, name)
        return rule is not None and rule.lie is not UNSET

    def _rule(self, method: _METHODS, name: str = _ANY) -> Rule | None:
        """The rule for this call, after its delay; raises HypervisorError when it says fail."""
        rules = self._script().get(method)
        if not rules:
            return None
        rule = rules.get(name) or rules.get(_ANY)
        if rule is None:
            return None
        if rule.delay:
            time.sleep(rule.delay)  # what the script asks for: a slow hypervisor
        if rule.fail is not UNSET:
            raise errors.HypervisorError(str(rule.fail))
        return rule

    def _bent(self, real: InstanceInfo | None, lie: Any) -> InstanceInfo | None:
        if lie is None:
            return None
        facts: dict[str, Any] = {"memory": 0, "vcpus": 0, "state": RunState.RUNNING, "time": 0.0}
        if real is not None:
            facts = msgspec.structs.asdict(real)
        changes = self._believable("info", lie, dict[str, Any])
        for key in changes.keys() - facts.keys():
            raise errors.HypervisorError(f"{self.script_file}: info has no '{key}' to lie about")
        return self._believable("info", {**facts, **changes}, InstanceInfo)

    def _believable(self, method: str, lie: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(lie, kind)
        except msgspec.ValidationError as err:
            raise errors.HypervisorError(
                f"{self.script_file}: the lie of {method} cannot be used: {err}"
            ) from err

    def _script(self) -> Mapping[_METHODS, Mapping[str, Rule]]:
        try:
            text = files.read_text(self.script_file)
        except FileNotFoundError:
            return {}
        except OSError as err:
            raise errors.HypervisorError(f"{self.script_file}: {err.strerror}") from err
        try:
            return msgspec.convert(jsonio.loads(text), _Script)
        except (errors.ParseError, msgspec.ValidationError) as err:
            raise errors.HypervisorError(
                f"{self.script_file} cannot be used: {err};"
                ' expected {"method": {"instance or *": {"delay": s, "fail": text, "lie": value}}}'
            ) from err


def _create(path: Path, text: str) -> bool:
    """Make a complete file in one step; False when there is one already."""
    fd, tmp = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as stream:
            stream.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(tmp, path)
            return True
        return False
    finally:
        os.unlink(tmp)
