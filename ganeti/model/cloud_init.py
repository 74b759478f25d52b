"""The data that cloud-init gives a guest at its first start."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject
from ganeti.model.ids import InstanceUuid


class CloudInit(ConfigObject, frozen=True, kw_only=True):
    """Data for cloud-init; each start makes a small disk of it, from which the guest reads."""

    ssh_keys: Annotated[tuple[str, ...], doc("SSH keys that may log in as the image's user")] = ()
    network_config: Annotated[
        str | None, doc("Network configuration in place of that made of the NICs")
    ] = None
    generation: Annotated[
        int, doc("Each new one makes the guest apply the data as at its first start")
    ] = 1
    private: Annotated[
        dict[str, str], doc("What is never shown: user_data, vendor_data, password_hash")
    ] = {}

    def make_instance_id(self, uuid: InstanceUuid) -> str:
        """Make the ``instance-id``; when it is new, cloud-init acts as at a first start."""
        return uuid if self.generation == 1 else f"{uuid}-{self.generation}"
