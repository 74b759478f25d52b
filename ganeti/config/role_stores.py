"""The stores that can have the role of the master, by the setting ``master_vote``."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.config import etcd_role
from ganeti.config.etcd_role import EtcdRole
from ganeti.config.pacemaker_role import PacemakerRole
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.paths import Paths
from ganeti.recovery.role import RoleStore


def open_store(config: Config, paths: Paths) -> RoleStore | None:
    """Open the store that decides about the master; None where the nodes vote."""
    vote = config.cluster.master_vote
    if vote is MasterVote.ETCD:
        return EtcdRole(paths.etcd_settings, config.cluster.uuid)
    if vote is MasterVote.PACEMAKER:
        return PacemakerRole(paths)
    return None


def list_checks(config: Config) -> JsonObject:
    """Name the check of ``node_verify`` by which candidates say whether they can use the store."""
    vote = config.cluster.master_vote
    if vote is MasterVote.ETCD:
        return {"etcd": etcd_role.list_expected(config)}
    if vote is MasterVote.PACEMAKER:
        return {"pacemaker": config.master.name}
    return {}
