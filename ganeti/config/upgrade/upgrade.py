"""From a configuration of any version since 2.7 to ours."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from ganeti import constants
from ganeti.config import verify
from ganeti.config.upgrade import (
    disks,
    identity,
    keys,
    parameters,
    policies,
    settings,
    shape,
    versions,
)
from ganeti.config.upgrade.report import Report
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.config import Config, ConfigData


@dataclass(frozen=True)
class Upgraded:
    """A configuration of our version, and how it came about."""

    #: version that it had
    version: int
    config: Config
    report: Report


def upgrade(raw: Any, *, newer: bool = False) -> Upgraded:
    """The configuration that the content of a ``config.data`` means; ``raw`` stays as it is.

    A configuration that is ours already comes out as it went in, without changes in the report.
    With ``newer`` it may be of the version after ours: what only that one knows is left out, and
    named among the unknown keys of the report.

    Raises:
        ConfigurationError: no configuration, one of a version that has no way to ours, or damaged;
            the text names the path of what is wrong.
    """
    version = versions.find_version(raw, newer=newer)
    report = Report()
    result = copy.deepcopy(raw)
    shape.check(result, report)
    identity.upgrade(result, report)
    disks.upgrade(result, report)
    policies.upgrade(result, report)
    parameters.upgrade(result, report)
    settings.upgrade(result, report)
    keys.upgrade(result, report)
    if version != constants.CONFIG_VERSION:
        result["version"] = constants.CONFIG_VERSION
        old, new = versions.text(version), versions.text(constants.CONFIG_VERSION)
        report.note_change("version", f"{old} becomes {new}")
    data = base.from_wire(ConfigData, result, "the configuration")
    return Upgraded(version, Config(data), report)


def problems(config: Config) -> list[str]:
    """The problems of an upgraded configuration, a sentence each.

    Certificates of master candidates are not checked: until 2.10 there were none, and nodes get
    ours when they are taken into the cluster again.
    """
    cluster = config.cluster
    certs = {node.uuid: "" for node in config.candidates()} | cluster.candidate_certs
    found = verify.problems(
        Config(base.replace(config.data, cluster=base.replace(cluster, candidate_certs=certs)))
    )
    found += [
        f"hypervisor {name} is enabled, but this software has no driver for it"
        for name in cluster.enabled_hypervisors
        if name not in HYPERVISORS
    ]
    return found
