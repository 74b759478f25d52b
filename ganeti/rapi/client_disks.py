"""The client's methods about disks; ``disk`` is a uuid or a name that only one disk has."""

from __future__ import annotations

from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rapi.client_objects import Names, ObjectsClient, Reason, drop_none, dry


class DisksClient(ObjectsClient):
    """Requests about disks; see :class:`ObjectsClient` for results and errors."""

    def GetDisks(self, bulk: bool = False) -> list[Any]:
        """Uuids of the disks, or with ``bulk`` everything about them."""
        return list(self._list("/disks", "uuid", bulk=bulk))

    def GetDisk(self, disk: str) -> JsonObject:
        """Everything about a disk."""
        return dict(self._get(f"/disks/{disk}"))

    def CreateDisk(
        self,
        disk_template: str,
        size: int,
        nodes: Names | None = None,
        iallocator: str | None = None,
        tags: Names | None = None,
        dry_run: bool = False,
        reason: Reason = None,
        **kwargs: object,
    ) -> int:
        """Make a disk of ``size`` MiB without an instance; more keys of it as keywords."""
        body = drop_none(
            disk_template=disk_template,
            disk={"size": size, **kwargs},
            nodes=[nodes] if isinstance(nodes, str) else nodes,
            iallocator=iallocator,
            tags=tags,
        )
        return int(self._change("POST", "/disks", dry(dry_run), reason, body))

    def DeleteDisk(self, disk: str, dry_run: bool = False, reason: Reason = None) -> int:
        """Destroy a disk that belongs to no instance."""
        return int(self._change("DELETE", f"/disks/{disk}", dry(dry_run), reason))

    def ModifyDisk(self, disk: str, reason: Reason = None, **kwargs: object) -> int:
        """Change settings of a disk; see OP_DISK_SET_PARAMS."""
        return int(self._change("PUT", f"/disks/{disk}/modify", [], reason, kwargs))

    def RenameDisk(self, disk: str, new_name: str, reason: Reason = None) -> int:
        """Rename a disk."""
        return int(self._change("PUT", f"/disks/{disk}/rename", [], reason, {"new_name": new_name}))

    def GrowDisk(
        self, disk: str, amount: int, absolute: bool = False, reason: Reason = None
    ) -> int:
        """Add ``amount`` MiB to a disk, or with ``absolute`` make it that large."""
        body = {"amount": amount, "absolute": absolute}
        return int(self._change("POST", f"/disks/{disk}/grow", [], reason, body))

    def AttachDisk(
        self,
        disk: str,
        instance: str,
        index: int | None = None,
        hotplug: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Attach a detached disk to an instance."""
        body = drop_none(instance_name=instance, index=index, hotplug=hotplug)
        return int(self._change("PUT", f"/disks/{disk}/attach", [], reason, body))

    def DetachDisk(self, disk: str, hotplug: bool | None = None, reason: Reason = None) -> int:
        """Take a disk from its instance; its data stays."""
        body = drop_none(hotplug=hotplug)
        return int(self._change("PUT", f"/disks/{disk}/detach", [], reason, body))

    def GetDiskTags(self, disk: str) -> list[str]:
        """Tags of a disk."""
        return list(self._get(f"/disks/{disk}/tags"))

    def AddDiskTags(
        self, disk: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to a disk."""
        return self._tags("PUT", f"/disks/{disk}", tags, dry_run, reason)

    def DeleteDiskTags(
        self, disk: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from a disk."""
        return self._tags("DELETE", f"/disks/{disk}", tags, dry_run, reason)
