"""Hypervisor name -> driver, imported on first use; the lines are in ``model/drivers.py``."""

from __future__ import annotations

from ganeti.base.registry import Registry
from ganeti.hypervisor.interface import Hypervisor
from ganeti.model.drivers import HypervisorName

HYPERVISORS: Registry[type[Hypervisor]] = Registry(
    "hypervisor", {str(name): name.driver for name in HypervisorName}
)
