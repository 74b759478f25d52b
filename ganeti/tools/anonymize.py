"""A configuration in which nothing tells whose cluster it is. Pure.

The same name, address or text always gets the same replacement, so what belongs together still
does. UUIDs, sizes, states and times stay; so do parameters that are plain words, numbers or paths.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.config import redaction
from ganeti.opcodes.hidden import REDACTED

HIDDEN = "<hidden>"
_PARAMS = ("hvparams", "os_hvp", "beparams", "ndparams", "nicparams", "diskparams", "params")
_OS_PARAMS = ("osparams", "osparams_private", "osparams_private_cluster")
_OS_LISTS = ("hidden_os", "blacklisted_os")
_ADDRESSES = ("primary_ip", "secondary_ip", "master_ip", "ip", "gateway", "gateway6")
#: Members with remarks of people about why and for whom.
_REMARKS = ("reason", "owner", "comment", "rsahostkeypub", "dsahostkeypub")
_LINKS = ("link", "master_netdev", "bridge")
_NAMELESS = ("iv_name",)

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN = re.compile(r"[\w+-]*|/[\w/.+-]*")
_USUAL_LINK = re.compile(r"(xen-)?br\d*|eth\d+|lo|\d*|switch\d+|auto")
_ADDRESS = re.compile(
    r"(?<![\w.:])(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*)"
)
_OWN_TAGS = ("ganeti", "htools")


def anonymize(data: Mapping[str, object]) -> JsonObject:
    """A copy of the content of ``config.data`` that can be shown to a stranger."""
    found: JsonObject = _Disguise(data).value(redaction.redact(dict(data)), ())
    return found


class _Disguise:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._networks: list[tuple[Any, Any]] = []
        #: names of objects, which occur inside of paths and texts too
        self._names: dict[str, str] = {}
        self._name_objects(data)
        names = sorted(self._names, key=len, reverse=True)
        self._any_name = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        for network in (data.get("networks") or {}).values():
            for key, length in (("network", 32), ("network6", 128)):
                if network.get(key):
                    self._move_network(str(network[key]), length)

    def _name_objects(self, data: Mapping[str, Any]) -> None:
        cluster = str((data.get("cluster") or {}).get("cluster_name") or "")
        if cluster:
            self._names[cluster] = "cluster.example.com"
        for kind, key in (("node", "nodes"), ("instance", "instances"), ("network", "networks")):
            for item in (data.get(key) or {}).values():
                if item.get("name"):
                    self._names[str(item["name"])] = self._name(kind, str(item["name"]))

    def _name(self, kind: str, name: str) -> str:
        has_domain = kind in ("node", "instance") and "." in name
        return self._number(kind, name) + (".example.com" if has_domain else "")

    def _number(self, kind: str, text: str) -> str:
        """``disk3``: the third disk that was seen."""
        known = self._known
        if (kind, text) not in known:
            number = sum(1 for other, _text in known if other == kind) + 1
            known[kind, text] = f"{kind}{number}"
        return known[kind, text]

    # values ------------------------------------------------------------------------------

    def value(self, value: object, path: tuple[str, ...]) -> Any:
        """A value without what identifies anybody; ``path`` are the keys that lead to it."""
        if isinstance(value, dict):
            return {self._key(key, path): self.value(v, (*path, key)) for key, v in value.items()}
        if isinstance(value, list):
            return [self.value(item, path) for item in value]
        return self._text(value, path) if isinstance(value, str) and value else value

    def _key(self, key: str, path: tuple[str, ...]) -> str:
        if path and path[-1] in ("osparams", "osparams_private_cluster", "os_hvp"):
            return self._os(key) if path[:1] == ("cluster",) else key
        return key

    def _text(self, text: str, path: tuple[str, ...]) -> str:
        key = path[-1] if path else ""
        if text == REDACTED or _UUID.fullmatch(text):
            return text
        if any(part in _OS_PARAMS for part in path) or key in _REMARKS:
            return HIDDEN
        if key == "tags":
            return self._tag(text)
        if key == "os" or key in _OS_LISTS:
            return self._os(text)
        if key == "candidate_certs" or "candidate_certs" in path:
            return ":".join(["00"] * 20)
        if key in _ADDRESSES:
            return self._address(text)
        if key in ("network", "network6") and "networks" in path[:1]:
            return self._move_network(text, 128 if key == "network6" else 32)
        if key == "mac":
            return self._mac(text)
        if key in _LINKS:
            return text if _USUAL_LINK.fullmatch(text) else self._number("link", text)
        if key == "name" and key not in _NAMELESS:
            return self._names.get(text) or self._number(
                path[0].rstrip("s") if path else "name", text
            )
        if key == "logical_id":
            return self._place(text)
        if any(part in _PARAMS for part in path):
            known = self._replace_names(text)
            return known if _PLAIN.fullmatch(text) or known != text else HIDDEN
        return self._replace_names(text)

    def _replace_names(self, text: str) -> str:
        """A text with the names of objects and addresses in it replaced."""
        text = self._any_name.sub(lambda found: self._names[found[0]], text)
        return _ADDRESS.sub(lambda found: self._address(found[0]), text)

    def _tag(self, tag: str) -> str:
        """Tags of this software keep what they do."""
        first, *rest = tag.split(":")
        if first in _OWN_TAGS and rest:
            return ":".join([first, *rest[:-1], self._number("tag", rest[-1])])
        return self._number("tag", tag)

    def _os(self, name: str) -> str:
        base, plus, variant = name.partition("+")
        return self._number("os", base) + (plus and f"+{self._number('variant', variant)}")

    def _place(self, text: str) -> str:
        """A part of where a disk is: volumes that were made here are named by a UUID."""
        if _UUID.search(text) or re.fullmatch(r"[a-z]+", text):
            return self._replace_names(text)
        return (
            f"/dev/{self._number('device', text)}" if "/" in text else self._number("volume", text)
        )

    # addresses ---------------------------------------------------------------------------

    def _move_network(self, text: str, length: int) -> str:
        """Another network of the same size, for the addresses in it as well."""
        old = ipaddress.ip_network(text, strict=False)
        for known, moved in self._networks:
            if known == old:
                return str(moved)
        number = len(self._networks) + 1
        base = int(ipaddress.ip_address("10.0.0.0" if length == 32 else "fd00::"))
        block = max(old.num_addresses, 1 << (16 if length == 32 else 64))
        new = ipaddress.ip_network((base + number * block, old.prefixlen))
        self._networks.append((old, new))
        return str(new)

    def _address(self, text: str) -> str:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return HIDDEN if "." in text or ":" in text else text
        if address.is_loopback or address.is_unspecified:
            return text
        for old, new in self._networks:
            if address.version == old.version and address in old:
                return str(new[int(address) - int(old.network_address)])
        kind = f"v{address.version}"
        number = int(self._number(kind, text).removeprefix(kind))
        base = "10.255.0.0" if address.version == 4 else "fdff::"
        return str(ipaddress.ip_address(int(ipaddress.ip_address(base)) + number))

    def _mac(self, text: str) -> str:
        number = int(self._number("mac", text).removeprefix("mac"))
        return "aa:00:00:" + ":".join(f"{number:06x}"[i : i + 2] for i in (0, 2, 4))
