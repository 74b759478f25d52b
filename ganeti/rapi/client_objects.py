"""The client's methods about the cluster, groups, networks and filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rapi.client_link import GanetiApiError, Link, Query

VERSION = 2
ROOT = f"/{VERSION}"

INST_CREATE_REQV1 = "instance-create-reqv1"
INST_REINSTALL_REQV1 = "instance-reinstall-reqv1"

Reason = str | None
Names = Sequence[str] | str


def drop_none(**values: object) -> JsonObject:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


class ObjectsClient:
    """Requests about objects; changes return the id of a job unless it says something else.

    Every method raises GanetiApiError when the server refuses or cannot be reached.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def _change(
        self, method: str, path: str, query: Query, reason: Reason, body: object = None
    ) -> Any:
        return self._link.request(method, ROOT + path, [*query, ("reason", reason)], body)

    def _list(self, path: str, key: str, *, bulk: bool) -> Any:
        found = self._link.request("GET", ROOT + path, [("bulk", 1)] if bulk else [])
        return found if bulk else [item[key] for item in found]

    def _get(self, path: str, query: Query | None = None) -> Any:
        return self._link.request("GET", ROOT + path, query)

    def _tags(
        self, method: str, path: str, tags: Iterable[str], dry_run: bool, reason: Reason
    ) -> int:
        query: Query = [("tag", tag) for tag in tags]
        found: int = self._change(method, f"{path}/tags", [*query, *dry(dry_run)], reason)
        return found

    # cluster

    def GetVersion(self) -> int:
        """Version of the remote API."""
        return int(self._link.request("GET", "/version"))

    def GetFeatures(self) -> list[str]:
        """List the optional features of the server; empty for very old ones."""
        try:
            return list(self._get("/features"))
        except GanetiApiError as err:
            if err.code == 404:
                return []
            raise

    def GetOperatingSystems(self) -> list[str]:
        """Names of the OS definitions, with variants."""
        return list(self._get("/os"))

    def GetInfo(self) -> JsonObject:
        """Facts about the cluster."""
        return dict(self._get("/info"))

    def RedistributeConfig(self, reason: Reason = None) -> int:
        """Send the configuration to all nodes."""
        return int(self._change("PUT", "/redistribute-config", [], reason))

    def ModifyCluster(self, reason: Reason = None, **kwargs: object) -> int:
        """Change settings of the cluster; see OP_CLUSTER_SET_PARAMS."""
        return int(self._change("PUT", "/modify", [], reason, kwargs))

    def GetClusterTags(self) -> list[str]:
        """Tags of the cluster."""
        return list(self._get("/tags"))

    def AddClusterTags(self, tags: Names, dry_run: bool = False, reason: Reason = None) -> int:
        """Add tags to the cluster."""
        return self._tags("PUT", "", tags, dry_run, reason)

    def DeleteClusterTags(self, tags: Names, dry_run: bool = False, reason: Reason = None) -> int:
        """Take tags from the cluster."""
        return self._tags("DELETE", "", tags, dry_run, reason)

    # queries

    def Query(self, what: str, fields: Sequence[str], qfilter: object = None) -> JsonObject:
        """Fields of objects of a kind that pass a filter: ``{"fields", "data"}``."""
        body = drop_none(fields=list(fields), qfilter=qfilter)
        return dict(self._link.request("PUT", f"{ROOT}/query/{what}", None, body))

    def QueryFields(self, what: str, fields: Sequence[str] | None = None) -> JsonObject:
        """Descriptions of the fields of a kind."""
        query: Query = [] if fields is None else [("fields", ",".join(fields))]
        return dict(self._get(f"/query/{what}/fields", query))

    # networks

    def GetNetworks(self, bulk: bool = False) -> list[Any]:
        """Names of the networks, or with ``bulk`` everything about them."""
        return list(self._list("/networks", "name", bulk=bulk))

    def GetNetwork(self, network: str) -> JsonObject:
        """Everything about a network."""
        return dict(self._get(f"/networks/{network}"))

    def CreateNetwork(
        self,
        network_name: str,
        network: str,
        gateway: str | None = None,
        network6: str | None = None,
        gateway6: str | None = None,
        mac_prefix: str | None = None,
        add_reserved_ips: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        dry_run: bool = False,
        reason: Reason = None,
    ) -> int:
        """Add a network."""
        body = drop_none(
            network_name=network_name,
            network=network,
            gateway=gateway,
            network6=network6,
            gateway6=gateway6,
            mac_prefix=mac_prefix,
            add_reserved_ips=add_reserved_ips,
            tags=tags,
        )
        return int(self._change("POST", "/networks", dry(dry_run), reason, body))

    def ConnectNetwork(
        self,
        network_name: str,
        group_name: str,
        mode: str,
        link: str,
        vlan: str = "",
        dry_run: bool = False,
        reason: Reason = None,
    ) -> int:
        """Let the instances of a group use a network."""
        body = {
            "group_name": group_name,
            "network_mode": mode,
            "network_link": link,
            "network_vlan": vlan,
        }
        path = f"/networks/{network_name}/connect"
        return int(self._change("PUT", path, dry(dry_run), reason, body))

    def DisconnectNetwork(
        self, network_name: str, group_name: str, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Undo :meth:`ConnectNetwork`."""
        path = f"/networks/{network_name}/disconnect"
        return int(self._change("PUT", path, dry(dry_run), reason, {"group_name": group_name}))

    def ModifyNetwork(self, network: str, reason: Reason = None, **kwargs: object) -> int:
        """Change a network; see OP_NETWORK_SET_PARAMS."""
        return int(self._change("PUT", f"/networks/{network}/modify", [], reason, kwargs))

    def DeleteNetwork(self, network: str, dry_run: bool = False, reason: Reason = None) -> int:
        """Remove a network."""
        return int(self._change("DELETE", f"/networks/{network}", dry(dry_run), reason))

    def RenameNetwork(self, network: str, new_name: str, reason: Reason = None) -> int:
        """Rename a network."""
        path = f"/networks/{network}/rename"
        return int(self._change("PUT", path, [], reason, {"new_name": new_name}))

    def GetNetworkTags(self, network: str) -> list[str]:
        """Tags of a network."""
        return list(self._get(f"/networks/{network}/tags"))

    def AddNetworkTags(
        self, network: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to a network."""
        return self._tags("PUT", f"/networks/{network}", tags, dry_run, reason)

    def DeleteNetworkTags(
        self, network: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from a network."""
        return self._tags("DELETE", f"/networks/{network}", tags, dry_run, reason)

    # groups

    def GetGroups(self, bulk: bool = False) -> list[Any]:
        """Names of the node groups, or with ``bulk`` everything about them."""
        return list(self._list("/groups", "name", bulk=bulk))

    def GetGroup(self, group: str) -> JsonObject:
        """Everything about a node group."""
        return dict(self._get(f"/groups/{group}"))

    def CreateGroup(
        self,
        name: str,
        alloc_policy: str | None = None,
        dry_run: bool = False,
        reason: Reason = None,
    ) -> int:
        """Add a node group."""
        body = drop_none(name=name, alloc_policy=alloc_policy)
        return int(self._change("POST", "/groups", dry(dry_run), reason, body))

    def ModifyGroup(self, group: str, reason: Reason = None, **kwargs: object) -> int:
        """Change a node group; see OP_GROUP_SET_PARAMS."""
        return int(self._change("PUT", f"/groups/{group}/modify", [], reason, kwargs))

    def DeleteGroup(self, group: str, dry_run: bool = False, reason: Reason = None) -> int:
        """Remove a node group."""
        return int(self._change("DELETE", f"/groups/{group}", dry(dry_run), reason))

    def RenameGroup(self, group: str, new_name: str, reason: Reason = None) -> int:
        """Rename a node group."""
        path = f"/groups/{group}/rename"
        return int(self._change("PUT", path, [], reason, {"new_name": new_name}))

    def AssignGroupNodes(
        self,
        group: str,
        nodes: Sequence[str],
        force: bool = False,
        dry_run: bool = False,
        reason: Reason = None,
    ) -> int:
        """Put nodes into a group."""
        query: Query = [("force", force), *dry(dry_run)]
        path = f"/groups/{group}/assign-nodes"
        return int(self._change("PUT", path, query, reason, {"nodes": list(nodes)}))

    def GetGroupTags(self, group: str) -> list[str]:
        """Tags of a node group."""
        return list(self._get(f"/groups/{group}/tags"))

    def AddGroupTags(
        self, group: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to a node group."""
        return self._tags("PUT", f"/groups/{group}", tags, dry_run, reason)

    def DeleteGroupTags(
        self, group: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from a node group."""
        return self._tags("DELETE", f"/groups/{group}", tags, dry_run, reason)

    # filters of jobs

    def GetFilters(self, bulk: bool = False) -> list[Any]:
        """Uuids of the filter rules, or with ``bulk`` everything about them."""
        return list(self._list("/filters", "uuid", bulk=bulk))

    def GetFilter(self, filter_uuid: str) -> JsonObject:
        """Everything about a filter rule."""
        return dict(self._get(f"/filters/{filter_uuid}"))

    def AddFilter(
        self,
        priority: int,
        predicates: Sequence[object],
        action: object,
        reason_trail: Sequence[object] | None = None,
    ) -> str:
        """Add a filter rule; its uuid."""
        body = _rule(priority, predicates, action, reason_trail)
        return str(self._link.request("POST", f"{ROOT}/filters", None, body))

    def ReplaceFilter(
        self,
        uuid: str,
        priority: int,
        predicates: Sequence[object],
        action: object,
        reason_trail: Sequence[object] | None = None,
    ) -> str:
        """Replace a filter rule or add one with this uuid; its uuid."""
        body = _rule(priority, predicates, action, reason_trail)
        return str(self._link.request("PUT", f"{ROOT}/filters/{uuid}", None, body))

    def DeleteFilter(self, uuid: str) -> None:
        """Remove a filter rule."""
        self._link.request("DELETE", f"{ROOT}/filters/{uuid}")


def dry(wanted: bool) -> Query:
    """The query argument for a dry run."""
    return [("dry-run", 1)] if wanted else []


def _rule(
    priority: int, predicates: Sequence[object], action: object, reason: Sequence[object] | None
) -> JsonObject:
    return {
        "priority": priority,
        "predicates": list(predicates),
        "action": action,
        "reason": list(reason or ()),
    }
