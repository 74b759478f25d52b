"""Node calls about helper guests."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.images import HelperTask
from ganeti.rpc.objects import NodeInstance
from ganeti.rpc.timing import URGENT, call


class HelperGuestCalls(ABC):
    """Answered by :class:`ganeti.node.helper_guests.HelperGuests`."""

    @abstractmethod
    @call(timeout=URGENT)
    def helper_run(self, instance: NodeInstance, task: HelperTask) -> str:
        """Begin to run the helper guest of an instance whose disks are assembled.

        Refused without a ``run_epoch`` newer than all that the node knows of the instance. Returns
        the name of a copy for :meth:`ganeti.rpc.calls.copying.CopyCalls.copy_status`, which ends
        when the guest has done its work. ``instance_shutdown`` ends it earlier.
        """
