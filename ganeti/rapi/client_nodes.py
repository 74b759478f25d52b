"""The client's methods about nodes."""

from __future__ import annotations

from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rapi.client_link import GanetiApiError, Query
from ganeti.rapi.client_objects import Names, ObjectsClient, Reason, drop_none, dry

NODE_ROLE_DRAINED = "drained"
NODE_ROLE_MASTER_CANDIDATE = "master-candidate"
NODE_ROLE_MASTER = "master"
NODE_ROLE_OFFLINE = "offline"
NODE_ROLE_REGULAR = "regular"
NODE_EVAC_PRI = "primary-only"
NODE_EVAC_SEC = "secondary-only"
NODE_EVAC_ALL = "all"
NODE_MIGRATE_REQV1 = "node-migrate-reqv1"
NODE_EVAC_RES1 = "node-evac-res1"


class NodesClient(ObjectsClient):
    """Requests about nodes; see :class:`ObjectsClient` for results and errors."""

    def GetNodes(self, bulk: bool = False) -> list[Any]:
        """Names of the nodes, or with ``bulk`` everything about them."""
        return list(self._list("/nodes", "id", bulk=bulk))

    def GetNode(self, node: str) -> JsonObject:
        """Everything about a node."""
        return dict(self._get(f"/nodes/{node}"))

    def EvacuateNode(
        self,
        node: str,
        iallocator: str | None = None,
        remote_node: str | None = None,
        dry_run: bool = False,
        early_release: bool | None = None,
        mode: str | None = None,
        accept_old: bool = False,
        reason: Reason = None,
    ) -> Any:
        """Move instances away from a node; ``accept_old`` is for servers before 2.6 only."""
        if iallocator and remote_node:
            raise GanetiApiError("Only one of iallocator or remote_node can be used")
        if NODE_EVAC_RES1 not in self.GetFeatures():
            raise GanetiApiError("Server is version 2.4 or earlier, cannot evacuate a node")
        body = drop_none(
            mode=mode or NODE_EVAC_ALL,
            iallocator=iallocator,
            remote_node=remote_node,
            early_release=early_release,
        )
        return self._change("POST", f"/nodes/{node}/evacuate", dry(dry_run), reason, body)

    def MigrateNode(
        self,
        node: str,
        mode: str | None = None,
        dry_run: bool = False,
        iallocator: str | None = None,
        target_node: str | None = None,
        reason: Reason = None,
    ) -> int:
        """Migrate the primary instances of a node."""
        body = drop_none(mode=mode, iallocator=iallocator, target_node=target_node)
        return int(self._change("POST", f"/nodes/{node}/migrate", dry(dry_run), reason, body))

    def GetNodeRole(self, node: str) -> str:
        """Role of a node."""
        return str(self._get(f"/nodes/{node}/role"))

    def SetNodeRole(
        self,
        node: str,
        role: str,
        force: bool = False,
        auto_promote: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Change the role of a node."""
        query: Query = [("force", force), ("auto-promote", auto_promote)]
        return int(self._change("PUT", f"/nodes/{node}/role", query, reason, role))

    def PowercycleNode(self, node: str, force: bool = False, reason: Reason = None) -> int:
        """Turn a node off and on again, without asking it."""
        return int(self._change("POST", f"/nodes/{node}/powercycle", [("force", force)], reason))

    def ModifyNode(self, node: str, reason: Reason = None, **kwargs: object) -> int:
        """Change settings of a node; see OP_NODE_SET_PARAMS."""
        return int(self._change("POST", f"/nodes/{node}/modify", [], reason, kwargs))

    def GetNodeStorageUnits(
        self, node: str, storage_type: str, output_fields: Names, reason: Reason = None
    ) -> int:
        """A job that lists the storage of a node."""
        fields = output_fields if isinstance(output_fields, str) else ",".join(output_fields)
        query: Query = [("storage_type", storage_type), ("output_fields", fields)]
        return int(self._change("GET", f"/nodes/{node}/storage", query, reason))

    def ModifyNodeStorageUnits(
        self,
        node: str,
        storage_type: str,
        name: str,
        allocatable: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Allow or forbid new disks on a storage unit."""
        query: Query = [("storage_type", storage_type), ("name", name)]
        query.append(("allocatable", allocatable))
        return int(self._change("PUT", f"/nodes/{node}/storage/modify", query, reason))

    def RepairNodeStorageUnits(
        self, node: str, storage_type: str, name: str, reason: Reason = None
    ) -> int:
        """Repair a storage unit."""
        query: Query = [("storage_type", storage_type), ("name", name)]
        return int(self._change("PUT", f"/nodes/{node}/storage/repair", query, reason))

    def GetNodeTags(self, node: str) -> list[str]:
        """Tags of a node."""
        return list(self._get(f"/nodes/{node}/tags"))

    def AddNodeTags(
        self, node: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to a node."""
        return self._tags("PUT", f"/nodes/{node}", tags, dry_run, reason)

    def DeleteNodeTags(
        self, node: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from a node."""
        return self._tags("DELETE", f"/nodes/{node}", tags, dry_run, reason)
