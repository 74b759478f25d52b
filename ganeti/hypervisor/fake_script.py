"""How the fake hypervisor misbehaves: the file ``<conf>/fake-hypervisor.json``.

It is read for every call, so a test can change it while daemons run::

    {"start": {"web1": {"fail": "no more memory"}, "*": {"delay": 0.2}},
     "stop":  {"web2": {"lie": true}},
     "info":  {"web3": {"lie": {"state": 1}}, "web4": {"lie": null}}}

The file is that of the node: each node of a cluster in a directory has its own root, so its own
script. Replace it by a rename (write beside it, then move), so that no call reads half of it.

The first key is a method, the second an instance or ``*`` for all others (methods without an
instance know only ``*``). ``delay`` waits so many seconds first (at most 60), ``fail`` raises a
HypervisorError (HotplugError for devices) with that text, ``lie`` changes the answer without doing
anything:

- info: an object replaces single values, null says that it does not run; also seen in info_all
- list_names: a list of names; node_info: an object replaces single values; verify: a text
- migration_status, migration_info: an object replaces single values; disk_progress: a list
- accept: the address that is said to wait
- all others: any value means "say it is done, do nothing"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ganeti import errors
from ganeti.base import files, jsonio, typed
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject

T = TypeVar("T")

#: Stands for every instance without a rule of its own.
ANY = "*"

Method = Literal[
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
    "console_lines",
    "balloon",
    "hold",
    "release",
    "check_hotplug",
    "plugged_disks",
    "plug_disk",
    "unplug_disk",
    "plug_nic",
    "unplug_nic",
    "change_nic",
    "resize_disk",
    "limit_disk",
    "change_media",
    "set_vcpus",
    "check_migratable",
    "migration_info",
    "accept",
    "migrate",
    "migration_status",
    "check_arrived",
    "receive_disks",
    "send_disks",
    "disk_progress",
    "finish_source",
    "finish_target",
    "convert_disks",
    "settle_disks",
    "list_conversions",
]


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The behaviour of one method for one instance in place of its work."""

    delay: Annotated[float, Meta(ge=0, le=60, description="Seconds to wait first")] = 0
    fail: str | UnsetType = UNSET
    lie: Any | UnsetType = UNSET

    @property
    def lies(self) -> bool:
        return self.lie is not UNSET


Rules = dict[Method, dict[str, Rule]]


@dataclass(frozen=True)
class Script:
    """Reads the file; HypervisorError when it cannot be used."""

    file: Path

    def apply_rule(self, method: Method, name: str) -> bool:
        """Apply a rule; True when it says that nothing shall be done."""
        rule = self.rule(method, name)
        return rule is not None and rule.lies

    def rule(
        self,
        method: Method,
        name: str = ANY,
        error: type[errors.HypervisorError] = errors.HypervisorError,
    ) -> Rule | None:
        """The rule for this call, after its delay; raises ``error`` when it says fail."""
        rules = self.rules().get(method)
        if not rules:
            return None
        rule = rules.get(name) or rules.get(ANY)
        if rule is None:
            return None
        if rule.delay:
            SYSTEM.sleep(rule.delay)  # what the script asks for: a slow hypervisor
        if rule.fail is not UNSET:
            raise error(str(rule.fail))
        return rule

    def parse_lie(self, method: str, lie: object, kind: type[T]) -> T:
        """A lie as the type that callers expect."""
        try:
            return typed.convert(lie, kind)
        except msgspec.ValidationError as err:
            raise errors.HypervisorError(
                f"{self.file}: the lie of {method} cannot be used: {err}"
            ) from err

    def apply_lie(self, method: str, facts: Mapping[str, object], lie: object) -> JsonObject:
        """Facts with the values that a lie replaces."""
        changes = self.parse_lie(method, lie, JsonObject)
        for key in changes.keys() - facts.keys():
            raise errors.HypervisorError(f"{self.file}: {method} has no '{key}' to lie about")
        return {**facts, **changes}

    def rules(self) -> Mapping[Method, Mapping[str, Rule]]:
        """The whole file."""
        try:
            text = files.read_text(self.file)
        except FileNotFoundError:
            return {}
        except OSError as err:
            raise errors.HypervisorError(f"{self.file}: {err.strerror}") from err
        try:
            return typed.convert(jsonio.loads(text), Rules)
        except (errors.ParseError, msgspec.ValidationError) as err:
            raise errors.HypervisorError(
                f"{self.file} cannot be used: {err};"
                ' expected {"method": {"instance or *": {"delay": s, "fail": text, "lie": value}}}'
            ) from err
