"""The needs of a cluster on its servers, by its configuration."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti import errors
from ganeti.config import parameters, store
from ganeti.doctor.facts import Wish
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.enums import NicMode
from ganeti.paths import Paths
from ganeti.storage.registry import volume_templates


def derive(config: Config) -> Wish:
    """The needs of each node that runs instances. Pure."""
    cluster = config.cluster
    templates = tuple(cluster.enabled_disk_templates)
    return Wish(
        hypervisors={name: cluster.hvparams.get(name, {}) for name in cluster.enabled_hypervisors},
        templates=templates,
        volume_group=cluster.volume_group_name if volume_templates() & set(templates) else None,
        helper=cluster.drbd_usermode_helper,
        bridges=tuple(sorted(set(_bridges(config)))),
        device=cluster.master_netdev,
    )


def _bridges(config: Config) -> Iterator[str]:
    """Bridges of NICs without parameters of their own, and of networks."""
    names = config.cluster.enabled_hypervisors
    if not any(HYPERVISORS.get(name).traits.joins_bridges for name in names):
        return
    sets = [config.cluster.nicparams.get("default", {})]
    sets += [params for group in config.groups.values() for params in group.networks.values()]
    for params in sets:
        if params.get("mode") == NicMode.BRIDGED and params.get("link"):
            yield str(params["link"])


def here(where: Paths) -> Wish | None:
    """The needs of the cluster of this node; None where its configuration is missing."""
    try:
        return derive(store.read_config(where, edited=True))
    except (errors.GanetiError, OSError):
        return None


def default_parameters(hypervisor: str) -> dict[str, object]:
    """Parameters of a hypervisor as a new cluster has them."""
    return dict(parameters.hypervisor(hypervisor, {}, {}))
