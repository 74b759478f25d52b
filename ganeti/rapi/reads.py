"""Lists and single objects, read by LUXI queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from ganeti.base import jsonio
from ganeti.rapi import failures, schemas
from ganeti.rapi.answers import Change, Columns, format_list, repeat_under
from ganeti.rapi.route import ANYBODY, BULK, LOCK, Call, Ready, Route


@dataclass(frozen=True)
class Collection:
    """A resource with a list and single objects.

    ``method`` is the LUXI query, ``key`` what names an object in the list and ``identifier`` the
    field with that value. ``of_all`` stands for all objects in the query.
    """

    path: str
    noun: str
    method: str
    key: str
    fields: tuple[str, ...]
    identifier: str = "name"
    variable: str = "name"
    of_all: object = ()
    #: whether the query takes a last argument about locks
    locks: bool = True
    changes: dict[str, Change] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    #: a field without whose value htools load nothing at all; they get no such rows
    for_htools: str = ""

    def rows(self, call: Call, names: Sequence[object] | None, fields: Sequence[str]) -> bytes:
        """JSON text of the rows of the named objects, or of all."""
        wanted = self.of_all if names is None else list(names)
        more = [call.flag("lock")] if self.locks else []
        return call.luxi.fetch(self.method, wanted, list(fields), *more)

    def list_all(self, call: Call) -> object:
        """Names and paths, or with ``bulk=1`` all fields of everything."""
        if call.flag("bulk"):
            columns = Columns(self.fields, changes=self.changes)
            having = self.for_htools if _is_from_htools(call) else ""
            return Ready(
                format_list(columns.objects(self.rows(call, None, self.fields), having=having))
            )
        names = [row[0] for row in jsonio.loads(self.rows(call, None, [self.identifier]))]
        return [{self.key: name, "uri": f"{self.path}/{name}"} for name in sorted(names)]

    def read_one(self, call: Call) -> Ready:
        """All fields of one object, 404 when there is none."""
        columns = Columns(self.fields, changes=self.changes, aliases=self.aliases)
        data = self.rows(call, [call.name()], self.fields)
        found = columns.objects(data)
        if not found:
            raise failures.make_not_found(f"There is no {self.noun} '{call.name()}'")
        return Ready(found[0], self._version(data) if self._versioned else "")

    @property
    def _versioned(self) -> bool:
        return "serial_no" in self.fields

    def _version(self, data: bytes) -> str:
        """Read the version of the configuration of an object in its only row."""
        row = msgspec.json.decode(data, type=list[list[msgspec.Raw]])[0]
        uuid, serial = (
            bytes(row[self.fields.index(name)]).decode().strip('"')
            for name in ("uuid", "serial_no")
        )
        return f"{uuid[:8]}.{serial}"

    def current_version(self, call: Call) -> str | None:
        """Version of an object as it is now; None when it does not exist."""
        rows = jsonio.loads(self.rows(call, [call.name()], ["uuid", "serial_no"]))
        return f"{rows[0][0][:8]}.{rows[0][1]}" if rows else None

    def routes(self) -> list[Route]:
        """The list and the object."""
        item = schemas.record(self.fields)
        single = schemas.record(self.fields, tuple(self.aliases.values()))
        lock = (LOCK,) if self.locks else ()
        names = schemas.references("number" if self.identifier == "id" else self.key)
        return [
            Route(
                "GET",
                self.path,
                f"List {self.noun}s",
                self.list_all,
                access=ANYBODY,
                query=(BULK, *lock),
                answer=schemas.listing(names, item),
            ),
            Route(
                "GET",
                f"{self.path}/{{{self.variable}}}",
                f"Show one {self.noun}",
                self.read_one,
                access=ANYBODY,
                query=lock,
                answer=single,
                statuses=(404,),
                version=self.current_version if self._versioned else None,
            ),
        ]


def _is_from_htools(call: Call) -> bool:
    """Whether a request looks like that of htools: libcurl, with no name of its own."""
    given = call.environ
    return (
        not given.get("HTTP_USER_AGENT")
        and not given.get("HTTP_ACCEPT_ENCODING")
        and given.get("HTTP_ACCEPT") == "*/*"
    )


INSTANCES = Collection(
    "/2/instances", "instance", "QueryInstances", "id",
    (
        "name", "admin_state", "os", "pnode", "snodes", "disk_template", "nic.ips", "nic.macs",
        "nic.modes", "nic.uuids", "nic.names", "nic.links", "nic.networks", "nic.networks.names",
        "nic.bridges", "network_port", "disk.sizes", "disk.spindles", "disk_usage", "disk.uuids",
        "disk.names", "beparams", "hvparams", "oper_state", "oper_ram", "oper_vcpus", "status",
        "custom_hvparams", "custom_beparams", "custom_nicparams", "custom_osparams", "ctime",
        "mtime", "uuid", "serial_no", "tags",
    ),
    variable="instance_name",
    changes={"beparams": repeat_under("memory", "maxmem")},
    for_htools="pnode",
)  # fmt: skip
NODES = Collection(
    "/2/nodes", "node", "QueryNodes", "id",
    (
        "name", "offline", "master_candidate", "drained", "dtotal", "dfree", "sptotal", "spfree",
        "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt", "ctotal", "cnos", "cnodes",
        "csockets", "pip", "sip", "role", "pinst_list", "sinst_list", "master_capable",
        "vm_capable", "ndparams", "group.uuid", "ctime", "mtime", "uuid", "serial_no", "tags",
    ),
    variable="node_name",
    aliases={"sip": "secondary_ip"},
)  # fmt: skip
GROUPS = Collection(
    "/2/groups", "group", "QueryGroups", "name",
    (
        "alloc_policy", "name", "node_cnt", "node_list", "ipolicy", "custom_ipolicy",
        "diskparams", "custom_diskparams", "ndparams", "custom_ndparams", "ctime", "mtime",
        "uuid", "serial_no", "tags",
    ),
    variable="group_name",
)  # fmt: skip
NETWORKS = Collection(
    "/2/networks", "network", "QueryNetworks", "name",
    (
        "name", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count",
        "reserved_count", "map", "group_list", "inst_list", "external_reservations", "ctime",
        "mtime", "uuid", "serial_no", "tags",
    ),
    variable="network_name",
)  # fmt: skip
DISKS = Collection(
    "/2/disks", "disk", "QueryDisks", "uuid",
    (
        "uuid", "name", "size", "template", "nodes", "instance", "index", "mode", "spindles",
        "params", "logical_id", "path", "volumes", "minors", "forthcoming", "ctime", "mtime",
        "serial_no", "tags",
    ),
    identifier="uuid", variable="disk_name",
)  # fmt: skip
IMAGES = Collection(
    "/2/images", "image", "QueryImages", "name",
    (
        "name", "description", "status", "disk_size", "file_size", "sha256", "source",
        "source_format", "source_sha256", "nodes", "copies", "inst_list", "ctime", "mtime",
        "uuid", "serial_no", "tags",
    ),
    variable="image_name",
)  # fmt: skip
FILTERS = Collection(
    "/2/filters", "filter", "QueryFilters", "uuid",
    ("watermark", "priority", "predicates", "action", "reason_trail", "uuid"),
    identifier="uuid", variable="uuid", of_all=None, locks=False,
)  # fmt: skip

COLLECTIONS = (INSTANCES, NODES, GROUPS, NETWORKS, DISKS, IMAGES, FILTERS)

ROUTES = tuple(route for collection in COLLECTIONS for route in collection.routes())
