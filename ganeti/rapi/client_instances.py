"""The client's methods about instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ganeti.base.json_types import JsonObject
from ganeti.rapi.client_link import GanetiApiError, Query
from ganeti.rapi.client_objects import (
    INST_CREATE_REQV1,
    Names,
    ObjectsClient,
    Reason,
    drop_none,
    dry,
)

REPLACE_DISK_PRI: Final = "replace_on_primary"
REPLACE_DISK_SECONDARY: Final = "replace_on_secondary"
REPLACE_DISK_CHG: Final = "replace_new_secondary"
REPLACE_DISK_AUTO: Final = "replace_auto"

_CREATE_VERSION = 1


class InstancesClient(ObjectsClient):
    """Requests about instances; see :class:`ObjectsClient` for results and errors."""

    def GetInstances(self, bulk: bool = False) -> list[Any]:
        """Names of the instances, or with ``bulk`` everything about them."""
        return list(self._list("/instances", "id", bulk=bulk))

    def GetInstance(self, instance: str) -> JsonObject:
        """Everything about an instance."""
        return dict(self._get(f"/instances/{instance}"))

    def GetInstanceInfo(self, instance: str, static: bool | None = None) -> int:
        """A job that collects information about an instance; ``static`` asks no node."""
        return int(self._get(f"/instances/{instance}/info", [("static", static)]))

    @staticmethod
    def InstanceAllocation(
        mode: str,
        name: str,
        disk_template: str,
        disks: Sequence[object],
        nics: Sequence[object],
        **kwargs: object,
    ) -> JsonObject:
        """The body of a creation, for :meth:`InstancesMultiAlloc`."""
        for key in kwargs.keys() & {"instance_name", "os_type", "__version__"}:
            raise GanetiApiError(f"'{key}' cannot be given in this way")
        return {
            **kwargs,
            "mode": mode,
            "name": name,
            "disk_template": disk_template,
            "disks": disks,
            "nics": nics,
        }

    def InstancesMultiAlloc(
        self, instances: Sequence[JsonObject], reason: Reason = None, **kwargs: Any
    ) -> int:
        """Create several instances at once."""
        query = dry(kwargs.pop("dry_run", False))
        body = {**kwargs, "instances": list(instances)}
        return int(self._change("POST", "/instances-multi-alloc", query, reason, body))

    def CreateInstance(
        self,
        mode: str,
        name: str,
        disk_template: str,
        disks: Sequence[Any],
        nics: Sequence[Any],
        reason: Reason = None,
        **kwargs: Any,
    ) -> int:
        """Create an instance; further arguments are those of OP_INSTANCE_CREATE."""
        query = dry(kwargs.pop("dry_run", False))
        body = self.InstanceAllocation(mode, name, disk_template, disks, nics, **kwargs)
        if INST_CREATE_REQV1 not in self.GetFeatures():
            raise GanetiApiError(
                "The server does not support new-style (version 1) instance creation requests"
            )
        body["__version__"] = _CREATE_VERSION
        return int(self._change("POST", "/instances", query, reason, body))

    def DeleteInstance(
        self, instance: str, dry_run: bool = False, reason: Reason = None, **kwargs: object
    ) -> int:
        """Remove an instance and its disks."""
        return int(
            self._change("DELETE", f"/instances/{instance}", dry(dry_run), reason, kwargs or None)
        )

    def ModifyInstance(self, instance: str, reason: Reason = None, **kwargs: object) -> int:
        """Change an instance; see OP_INSTANCE_SET_PARAMS."""
        return int(self._change("PUT", f"/instances/{instance}/modify", [], reason, kwargs))

    def ActivateInstanceDisks(
        self, instance: str, ignore_size: bool | None = None, reason: Reason = None
    ) -> int:
        """Make the disks of an instance available on its node."""
        query: Query = [("ignore_size", ignore_size)]
        return int(self._change("PUT", f"/instances/{instance}/activate-disks", query, reason))

    def DeactivateInstanceDisks(
        self, instance: str, reason: Reason = None, force: bool = False
    ) -> int:
        """Undo :meth:`ActivateInstanceDisks`."""
        query: Query = [("force", force)] if force else []
        return int(self._change("PUT", f"/instances/{instance}/deactivate-disks", query, reason))

    def RecreateInstanceDisks(
        self,
        instance: str,
        disks: Sequence[object] | None = None,
        nodes: Sequence[str] | None = None,
        reason: Reason = None,
        iallocator: str | None = None,
    ) -> int:
        """Recreate lost disks of an instance, empty."""
        body = drop_none(disks=disks, nodes=nodes, iallocator=iallocator)
        return int(self._change("POST", f"/instances/{instance}/recreate-disks", [], reason, body))

    def GrowInstanceDisk(
        self,
        instance: str,
        disk: int,
        amount: int | str,
        wait_for_sync: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Grow a disk by an amount (MiB, or text with a unit)."""
        body = drop_none(amount=amount, wait_for_sync=wait_for_sync)
        path = f"/instances/{instance}/disk/{disk}/grow"
        return int(self._change("POST", path, [], reason, body))

    def GetInstanceTags(self, instance: str) -> list[str]:
        """Tags of an instance."""
        return list(self._get(f"/instances/{instance}/tags"))

    def AddInstanceTags(
        self, instance: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to an instance."""
        return self._tags("PUT", f"/instances/{instance}", tags, dry_run, reason)

    def DeleteInstanceTags(
        self, instance: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from an instance."""
        return self._tags("DELETE", f"/instances/{instance}", tags, dry_run, reason)

    def RebootInstance(
        self,
        instance: str,
        reboot_type: str | None = None,
        ignore_secondaries: bool | None = None,
        dry_run: bool = False,
        reason: Reason = None,
        **kwargs: object,
    ) -> int:
        """Reboot an instance (``soft``, ``hard`` or ``full``)."""
        query: Query = [("type", reboot_type), ("ignore_secondaries", ignore_secondaries)]
        path = f"/instances/{instance}/reboot"
        return int(self._change("POST", path, [*query, *dry(dry_run)], reason, kwargs or None))

    def ShutdownInstance(
        self,
        instance: str,
        dry_run: bool = False,
        no_remember: bool = False,
        reason: Reason = None,
        **kwargs: object,
    ) -> int:
        """Stop an instance."""
        query = [*dry(dry_run), *_remember(no_remember)]
        path = f"/instances/{instance}/shutdown"
        return int(self._change("PUT", path, query, reason, kwargs or None))

    def StartupInstance(
        self,
        instance: str,
        dry_run: bool = False,
        no_remember: bool = False,
        reason: Reason = None,
    ) -> int:
        """Start an instance."""
        query = [*dry(dry_run), *_remember(no_remember)]
        return int(self._change("PUT", f"/instances/{instance}/startup", query, reason))

    def ReinstallInstance(
        self,
        instance: str,
        os: str | None = None,
        no_startup: bool = False,
        osparams: Mapping[str, object] | None = None,
        reason: Reason = None,
    ) -> int:
        """Reinstall an instance; everything on its first disk is lost."""
        body = drop_none(start=not no_startup, os=os, osparams=osparams)
        return int(self._change("POST", f"/instances/{instance}/reinstall", [], reason, body))

    def ReplaceInstanceDisks(
        self,
        instance: str,
        disks: Sequence[int] | None = None,
        mode: str = REPLACE_DISK_AUTO,
        remote_node: str | None = None,
        iallocator: str | None = None,
        reason: Reason = None,
        early_release: bool | None = None,
    ) -> int:
        """Replace disks of a mirrored instance."""
        body = drop_none(
            mode=mode,
            disks=None if disks is None else [int(disk) for disk in disks],
            remote_node=remote_node,
            iallocator=iallocator,
            early_release=early_release,
        )
        return int(self._change("POST", f"/instances/{instance}/replace-disks", [], reason, body))

    def PrepareExport(self, instance: str, mode: str, reason: Reason = None) -> int:
        """Get an export to another cluster ready."""
        path = f"/instances/{instance}/prepare-export"
        return int(self._change("PUT", path, [("mode", mode)], reason))

    def ExportInstance(
        self,
        instance: str,
        mode: str,
        destination: object,
        shutdown: bool | None = None,
        remove_instance: bool | None = None,
        x509_key_name: object = None,
        destination_x509_ca: str | None = None,
        compress: str | None = None,
        zero_free_space: bool | None = None,
        zeroing_timeout_fixed: int | None = None,
        zeroing_timeout_per_mib: float | None = None,
        reason: Reason = None,
    ) -> int:
        """Export an instance to a node, or to another cluster."""
        body = drop_none(
            destination=destination,
            mode=mode,
            shutdown=shutdown,
            remove_instance=remove_instance,
            x509_key_name=x509_key_name,
            destination_x509_ca=destination_x509_ca,
            compress=compress,
            zero_free_space=zero_free_space,
            zeroing_timeout_fixed=zeroing_timeout_fixed,
            zeroing_timeout_per_mib=zeroing_timeout_per_mib,
        )
        return int(self._change("PUT", f"/instances/{instance}/export", [], reason, body))

    def MigrateInstance(
        self,
        instance: str,
        mode: str | None = None,
        cleanup: bool | None = None,
        target_node: str | None = None,
        reason: Reason = None,
    ) -> int:
        """Move an instance to another node while it runs."""
        body = drop_none(mode=mode, cleanup=cleanup, target_node=target_node)
        return int(self._change("PUT", f"/instances/{instance}/migrate", [], reason, body))

    def FailoverInstance(
        self,
        instance: str,
        iallocator: str | None = None,
        ignore_consistency: bool | None = None,
        target_node: str | None = None,
        reason: Reason = None,
    ) -> int:
        """Stop an instance and start it on another node."""
        body = drop_none(
            iallocator=iallocator, ignore_consistency=ignore_consistency, target_node=target_node
        )
        return int(self._change("PUT", f"/instances/{instance}/failover", [], reason, body))

    def RenameInstance(
        self,
        instance: str,
        new_name: str,
        ip_check: bool | None = None,
        name_check: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Rename an instance."""
        body = drop_none(new_name=new_name, ip_check=ip_check, name_check=name_check)
        return int(self._change("PUT", f"/instances/{instance}/rename", [], reason, body))

    def GetInstanceConsole(self, instance: str) -> JsonObject:
        """How to reach the console of a running instance."""
        return dict(self._get(f"/instances/{instance}/console"))


def _remember(no_remember: bool) -> Query:
    return [("no_remember", 1)] if no_remember else []
