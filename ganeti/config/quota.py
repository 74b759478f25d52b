"""How much somebody with a quota uses, and that no change goes beyond it. Pure.

The store asks with every change of such a job, so that jobs that run at the same time cannot go
beyond it together, whatever operation they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import errors
from ganeti.config.limits import Scope
from ganeti.model.config import Config
from ganeti.model.limits import Limits

#: Dimension -> unit for people.
_UNITS = {"instances": "", "memory": " MiB", "vcpus": "", "disk": " MiB"}


def usage(config: Config, limits: Limits) -> dict[str, int]:
    """The sums over all instances and disks in the limits, reservations included."""
    scope = Scope(config, limits)
    owned = [item for item in config.instances.values() if scope.has_instance(item)]
    backend = [config.beparams(item) for item in owned]
    return {
        "instances": len(owned),
        "memory": sum(values["maxmem"] for values in backend),
        "vcpus": sum(values["vcpus"] for values in backend),
        "disk": sum(disk.size for disk in config.disks.values() if scope.has_disk(disk)),
    }


def check_change(limits: Limits, before: Config, after: Config) -> None:
    """Refuse a change after which more is used than before and than the quota allows.

    Raises:
        OpPrereqError: with the dimension, what is used, wanted and allowed.
    """
    if limits.quota is not None:
        _check(limits, usage(before, limits), usage(after, limits))


def check_growth(limits: Limits | None, config: Config, disk: int) -> None:
    """Refuse more MiB of disk before anything is made larger; as :func:`check_change`."""
    if limits is not None and limits.quota is not None:
        used = usage(config, limits)
        _check(limits, used, {**used, "disk": used["disk"] + disk})


def _check(limits: Limits, used: Mapping[str, int], then: Mapping[str, int]) -> None:
    for name, unit in _UNITS.items():
        most = getattr(limits.quota, name)
        if most is not None and then[name] > max(most, used[name]):
            raise errors.make_resources_error(
                f"quota of {limits.name}: {name}: {used[name]}{unit} used,"
                f" {then[name] - used[name]}{unit} more wanted, the limit is {most}{unit}",
            )
