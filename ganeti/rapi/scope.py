"""Tokens for a part of the cluster: a LUXI client that knows only the objects of its scope.

Everything the remote API does goes over LUXI, so what is not allowed here cannot be done, whatever
a route forgets. Lists hold only what is in the scope, other objects do not exist, and what names
no object at all is refused. Jobs are those that the same token has submitted; what may be in them
is decided by the master daemon, which gets the limits with each job (``config/limits``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.luxi import calls
from ganeti.luxi.client import Client
from ganeti.model.limits import Limits
from ganeti.rapi.identity import Identity

#: Requests about nothing that belongs to somebody.
_OPEN = frozenset({"QueryClusterInfo", "QueryFields"})
#: Source of the reason trail's entry that names the user; a client cannot set it.
_SOURCE = "gnt:library:rlib2:"


def limit_client(client: Client, identity: Identity) -> Client:
    """The client as this identity may use it."""
    if identity.redacted:
        client = RedactedClient(client)
    if identity.limits is None:
        return client
    return LimitedClient(client, identity.name, identity.limits)


class RedactedClient(Client):
    """Lets the master hide sensitive parameters in whatever is read."""

    def __init__(self, client: Client) -> None:
        super().__init__(client._path)
        self._client = client

    def _read(self, decode: Callable[[bytes], object], name: str, args: Sequence[object]) -> object:
        method = calls.find(name)
        if calls.REDACTED in method.args:
            calls.bind(method, args)
            args = [*args[: len(method.args) - 1], True]
        return self._client._read(decode, name, args)


class LimitedClient(Client):
    """Passes requests on as far as they are about objects of the scope.

    Raises, besides what the client does, AccessError for all others.
    """

    def __init__(self, client: Client, name: str, limits: Limits) -> None:
        super().__init__(client._path)
        self._client = client
        self._name = name
        self._limits = limits

    def _read(self, decode: Callable[[bytes], object], name: str, args: Sequence[object]) -> object:
        change = None if name in _OPEN else getattr(self, f"_{name}", None)
        if change is None and name not in _OPEN:
            raise self._refusal("this")
        bound = calls.bind(calls.find(name), args)
        if change is not None:
            narrowed = change(bound)
            if narrowed is None:
                return decode(calls.encode_result([]))
            bound = narrowed
        return self._client._read(decode, name, list(bound.values()))

    def _refusal(self, what: str) -> errors.AccessError:
        return errors.AccessError(f"{self._limits} and may not do {what}")

    # what is in the scope

    def _instances(self) -> set[str]:
        """Names and uuids."""
        fields = ["name", "uuid", "pnode.group", "tags"]
        found: set[str] = set()
        for row in self._client.query("instance", fields).data:
            name, uuid, group, tags = (value for _status, value in row)
            if self._fits(group, tags or ()):
                found |= {name, uuid}
        return found

    def _fits(self, group: str | None, tags: Iterable[str]) -> bool:
        limits = self._limits
        return limits.group in (None, group) and (limits.tag is None or limits.tag in tags)

    def _nodes(self) -> set[str]:
        """Names and uuids; of a scope by tag none."""
        if self._limits.tag is not None:
            return set()
        rows = self._client.query("node", ["name", "uuid", "group"]).data
        return {
            row[index][1] for row in rows if row[2][1] == self._limits.group for index in (0, 1)
        }

    def _disks(self) -> set[str]:
        """Uuids: those of instances in the scope, and of detached disks that fit it.

        No names: two disks may have the same one, of which one is somebody else's.
        """
        instances, found = self._instances(), set()
        for row in self._client.query("disk", ["uuid", "instance", "groups", "tags"]).data:
            uuid, owner, groups, tags = (value for _status, value in row)
            group = groups[0] if groups and len(groups) == 1 else None
            if owner in instances if owner else self._fits(group, tags or ()):
                found.add(uuid)
        return found

    def _groups(self) -> set[str]:
        return set() if self._limits.group is None else {self._limits.group}

    def _is_mine(self, ops: object) -> bool:
        return isinstance(ops, list) and any(
            isinstance(entry, list)
            and len(entry) == 3
            and str(entry[0]).startswith(_SOURCE)
            and entry[1] == self._name
            for op in ops
            for entry in op.get("reason") or ()
        )

    # queries: bound arguments in, narrowed ones out, None for an empty answer

    @staticmethod
    def _limit_names(bound: JsonObject, known: set[str]) -> JsonObject | None:
        asked = bound["names"]
        names = sorted(known) if not asked else [name for name in asked if name in known]
        return {**bound, "names": names} if names else None

    def _QueryInstances(self, bound: JsonObject) -> JsonObject | None:  # noqa: N802
        return self._limit_names(bound, self._drop_uuids(self._instances()))

    def _QueryConsoles(self, bound: JsonObject) -> JsonObject:  # noqa: N802
        if bound["instance"] not in self._instances():
            raise self._refusal(f"anything with instance '{bound['instance']}'")
        return bound

    def _QueryNodes(self, bound: JsonObject) -> JsonObject | None:  # noqa: N802
        return self._limit_names(bound, self._drop_uuids(self._nodes()))

    def _QueryDisks(self, bound: JsonObject) -> JsonObject | None:  # noqa: N802
        return self._limit_names(bound, self._disks())

    def _QueryGroups(self, bound: JsonObject) -> JsonObject | None:  # noqa: N802
        return self._limit_names(bound, self._groups())

    @staticmethod
    def _drop_uuids(known: set[str]) -> set[str]:
        # Names have a dot or are not a UUID; asking for both would give an object twice.
        return {name for name in known if not _is_uuid(name)}

    def _QueryJobs(self, bound: JsonObject) -> JsonObject | None:  # noqa: N802
        asked = bound["ids"]
        rows = self._client.query_jobs(asked, ["id", "ops"])
        visible = [row[0] for row in rows if self._is_mine(row[1])]
        if asked and len(visible) < len(rows):
            raise self._refusal("anything with the jobs of others")
        return {**bound, "ids": visible} if visible else None

    def _QueryTags(self, bound: JsonObject) -> JsonObject:  # noqa: N802
        kind = bound["kind"]
        if kind != "cluster" and bound["name"] not in self._find_names(kind):
            raise self._refusal(f"anything with {kind} '{bound['name']}'")
        return bound

    def _Query(self, bound: JsonObject) -> JsonObject:  # noqa: N802
        what = str(bound["what"])
        if what == "os":
            return bound
        if what not in ("instance", "node", "group", "disk"):
            raise self._refusal(f"queries of kind {what}")
        known, field = self._drop_uuids(self._find_names(what)), "name"
        if what == "disk":
            known, field = self._disks(), "uuid"
        visible = ["|", *(["==", field, name] for name in sorted(known))] if known else _NOTHING
        asked = bound["qfilter"]
        return {**bound, "qfilter": visible if asked is None else ["&", visible, asked]}

    def _find_names(self, kind: str) -> set[str]:
        finders = {
            "instance": self._instances,
            "node": self._nodes,
            "disk": self._disks,
            "group": self._groups,
            "nodegroup": self._groups,
        }
        return finders[kind]() if kind in finders else set()

    # jobs

    def _CancelJob(self, bound: JsonObject) -> JsonObject:  # noqa: N802
        self._QueryJobs({"ids": [bound["job"]]})
        return bound

    def _WaitForJobChange(self, bound: JsonObject) -> JsonObject:  # noqa: N802
        return self._CancelJob(bound)

    def _SubmitJob(self, bound: Mapping[str, object]) -> JsonObject:  # noqa: N802
        """The master knows what parameters mean, so it decides, now and when the job runs."""
        given = {name: bound.get(name) for name in ("ops", "key", "user")}
        return {**given, "limits": msgspec.to_builtins(self._limits)}


#: A filter that no object passes.
_NOTHING = ["&", ["==", "name", ""], ["!=", "name", ""]]


def _is_uuid(word: str) -> bool:
    return len(word) == 36 and word.count("-") == 4 and "." not in word
