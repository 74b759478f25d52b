"""Instances of this node: whether they are as the configuration wants them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.xen import xl
from ganeti.mond.collector import Code, Collector, Kind, find_worst, status
from ganeti.mond.processor import has_xen

_XEN = ("xen-pvm", "xen-hvm")
#: Letters of ``xl list`` -> state; the first that a domain has.
_STATES = {
    "r": "running", "b": "blocked", "p": "paused", "s": "shutdown", "c": "crashed", "d": "dying",
}  # fmt: skip
_RUNS = ("running", "blocked", "paused")
_UPTIME = re.compile(r"(\S+)\s+\d+\s+(\S.*)")


class XenInstances(Collector):
    """State of each Xen instance that has this node as its primary node."""

    name = "inst-status-xen"
    category = "instance"
    kind = Kind.STATUS

    def is_useful(self) -> bool:
        return has_xen(self._node)

    def data(self) -> object:
        domains = {domain.name: domain for domain in xl.parse_list(xl.run(["list"]))}
        uptimes = dict(_UPTIME.findall(xl.run(["uptime"])))
        found = [
            self._instance(item, domains.get(str(item.get("name"))), uptimes)
            for item in self._node.facts.instances
            if item.get("hypervisor") in _XEN
        ]
        return {"status": find_worst(item["status"] for item in found), "instances": found}

    def _instance(
        self, item: Mapping[str, object], domain: xl.Domain | None, uptimes: Mapping[str, str]
    ) -> JsonObject:
        name, wanted = str(item.get("name")), str(item.get("admin_state"))
        letters = domain.state if domain is not None else frozenset("s")
        actual = next((text for key, text in _STATES.items() if key in letters), "blocked")
        well = (wanted == "up") == (actual in _RUNS)
        text = f"instance {name} is {actual}, and should be {wanted}"
        return {
            "name": name,
            "uuid": item.get("uuid"),
            "adminState": wanted,
            "actualState": actual,
            "uptime": uptimes.get(name),
            "mtime": item.get("mtime"),
            "stateReason": self._reason(name),
            "status": status(Code.OK) if well else status(Code.BAD, text),
        }

    def _reason(self, name: str) -> object:
        """Why its state was changed last, as the node daemon wrote it down."""
        try:
            return jsonio.loads(files.read_text(self._node.paths.instance_reason / name))
        except (OSError, ValueError, errors.ParseError):
            return []
