"""Claims of running jobs: names, addresses, DRBD minors, memory. They are not stored.

Claims are released with the job; by then they are in the configuration, or not needed.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.config import drbd
from ganeti.model import address_pool
from ganeti.model.config import Config
from ganeti.model.ids import InstanceUuid, NetworkUuid, NodeUuid
from ganeti.model.network import Network
from ganeti.model.params import VALUE_POOL


@dataclass(frozen=True)
class MemoryClaim:
    """Memory of a node that a job is about to use, or to record as reserved."""

    job_id: int
    #: uuid
    node: str
    #: uuid, or anything else that is the uuid of no instance
    instance: str
    mebibytes: int
    reserves: bool

    def is_counted_by(self, config: Config) -> bool:
        """Whether a reader of the configuration counts it already."""
        found = config.instances.get(InstanceUuid(self.instance))
        return found is not None and (self.reserves or bool(found.forthcoming))


class JobClaims:
    """Thread-safe; kinds are independent of each other."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._claims: dict[tuple[str, str], int] = {}
        self._memory: list[MemoryClaim] = []

    def claim(self, kind: str, value: str, job_id: int) -> None:
        """Claim a value for a job.

        Raises:
            ReservationError: another job has it; the text says which.
        """
        with self._mutex:
            self._claim(kind, value, job_id)

    def list_jobs(self, kind: str) -> set[int]:
        """Jobs that have claimed a value of a kind."""
        with self._mutex:
            return {owner for (held, _value), owner in self._claims.items() if held == kind}

    def _claim(self, kind: str, value: str, job_id: int) -> None:
        owner = self._claims.setdefault((kind, value), job_id)
        if owner != job_id:
            raise errors.ReservationError(f"{kind} {value} is being used by job {owner}")

    def release(self, job_id: int) -> None:
        """Release all claims of a job. Idempotent."""
        with self._mutex:
            for key in [key for key, owner in self._claims.items() if owner == job_id]:
                del self._claims[key]
            self._memory = [claim for claim in self._memory if claim.job_id != job_id]

    def claim_memory(self, claims: Iterable[MemoryClaim]) -> list[MemoryClaim]:
        """Note what one job takes of a node; returns what others have noted there.

        A guest that starts and a reservation of the same memory do not exclude each other by
        locks, as making disks may take hours. So both note first what they take, then ask the node
        what is free: of two at least the later one sees the other.
        """
        with self._mutex:
            added = list(claims)
            self._memory += added
            jobs, nodes = {each.job_id for each in added}, {each.node for each in added}
            return [each for each in self._memory if each.job_id not in jobs and each.node in nodes]

    def claim_mac(self, wanted: str, config: Config, prefix: str, job_id: int) -> str:
        """Claim a MAC address: a given one, or a new one for ``auto`` and ``generate``.

        Raises:
            ReservationError: the address is used in the cluster or claimed.
        """
        used = {nic.mac for instance in config.instances.values() for nic in instance.nics}
        with self._mutex:
            if wanted not in ("auto", "generate"):
                if wanted in used:
                    raise errors.ReservationError(f"MAC address {wanted} is used in the cluster")
                self._claim("MAC address", wanted, job_id)
                return wanted
            for _attempt in range(64):
                tail = secrets.token_bytes(3).hex(":")
                mac = f"{prefix}:{tail}"
                if mac not in used and ("MAC address", mac) not in self._claims:
                    self._claim("MAC address", mac, job_id)
                    return mac
        raise errors.ReservationError(f"no free MAC address with the prefix {prefix} was found")

    def claim_address(
        self,
        wanted: str,
        network: NetworkUuid,
        current: Callable[[], Config],
        job_id: int,
        *,
        external: bool = False,
    ) -> str:
        """Claim an IPv4 address of a network (uuid): a given one, for ``pool`` the lowest free.

        ``external`` allows one that is reserved for something else than NICs. ``current``
        is called as for :meth:`claim_minors`.

        Raises:
            AddressPoolError: it is not in the network, or none is left.
            ReservationError: it is used, reserved or claimed.
        """
        with self._mutex:
            config = current()
            found = config.networks[network]
            kind = f"in network {found.name} the address"
            if wanted == VALUE_POOL:
                besides = {value for name, value in self._claims if name == kind}
                wanted = _find_free_address(config, found, besides)
            elif not external and address_pool.is_external(found, wanted):
                raise errors.ReservationError(
                    f"IP address {wanted} of network {found.name} is reserved for something outside"
                    " the cluster (--no-conflicts-check takes it all the same)"
                )
            if address_pool.is_own(found, wanted):
                raise errors.ReservationError(
                    f"IP address {wanted} of network {found.name} is used by"
                    f" {_user(config, network, wanted)}"
                )
            self._claim(kind, wanted, job_id)
            return wanted

    def claim_minors(
        self, nodes: Sequence[NodeUuid], current: Callable[[], Config], job_id: int
    ) -> list[int]:
        """Claim the lowest free DRBD minor of each node (uuids; one may come twice).

        ``current`` returns the newest configuration. It is called while no job can
        release a claim: what a job puts into the configuration is seen there or still claimed.
        """
        found: list[int] = []
        with self._mutex:
            used = drbd.minor_map(current())
            for node in nodes:
                kind = f"DRBD minor of node {node}"
                claimed = {int(value) for name, value in self._claims if name == kind}
                minor = drbd.find_free_minor(claimed | set(used.get(node, ())))
                self._claim(kind, str(minor), job_id)
                found.append(minor)
        return found


def _find_free_address(config: Config, network: Network, besides: set[str]) -> str:
    """The lowest address that nothing has, whatever the map says; AddressPoolError if none."""
    for instance in config.instances.values():
        besides.update(nic.ip for nic in instance.nics if nic.network == network.uuid and nic.ip)
    found = address_pool.find_first_free(network, besides)
    if found is None:
        raise errors.AddressPoolError(
            f"network {network.name} ({network.network}) has no free address left"
        )
    return found


def _user(config: Config, network: NetworkUuid, address: str) -> str:
    for instance in config.instances.values():
        if (network, address) in address_pool.find_used_addresses(instance):
            return f"instance {instance.name}"
    return "an unknown instance; see gnt-cluster verify"
