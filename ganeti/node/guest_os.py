"""Node calls about OS definitions: what is installed here, and running its scripts."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.guest_os import definition, scripts
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.calls.guest_os import GuestOsCalls
from ganeti.rpc.objects import NodeInstance, OsInfo


class GuestOs(GuestOsCalls):
    """Runs the scripts of OS definitions; one at a time for each instance."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def os_diagnose(self) -> list[OsInfo]:
        """All definitions on the search path, valid or not."""
        return definition.diagnose(self._context.paths.os_search_path)

    def os_validate(
        self,
        required: bool,
        name: str,
        checks: list[str],
        params: JsonObject,
        force_variant: bool,
        hypervisor: str,
    ) -> bool:
        """Whether an OS can be used with these parameters; False: absent and not required.

        Raises:
            OpPrereqError: it cannot be used, or its verify script refused.
        """
        return scripts.validate(
            name,
            params,
            self._context.paths,
            required=required,
            checks=checks,
            force_variant=force_variant,
            hypervisor=hypervisor,
        )

    def instance_os_add(self, instance: NodeInstance, reinstall: bool, debug: int) -> None:
        """Run the create script on assembled disks; blocks up to a day.

        Raises:
            BlockDeviceError: a disk is not there or not assembled.
            OpPrereqError: the OS cannot be used.
            OpExecError: the script failed; the text names its log.
        """
        with self._context.instance(instance.name, "OS installation"):
            scripts.create(
                instance,
                self._disks.all_attached(instance),
                self._context.paths,
                reinstall=reinstall,
                debug=debug,
                clock=self._context.clock,
            )

    def instance_run_rename(self, instance: NodeInstance, old_name: str, debug: int) -> None:
        """Run the rename script; the instance has its new name already. Raises as
        :meth:`instance_os_add`."""
        with self._context.instance(instance.name, "rename"):
            scripts.rename(
                instance,
                self._disks.all_attached(instance),
                old_name,
                self._context.paths,
                debug=debug,
                clock=self._context.clock,
            )
