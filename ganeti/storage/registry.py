"""Disk template -> driver, imported on first use; the lines are in ``model/drivers.py``.

Code that only needs to know about a template asks :func:`traits_of`, never for its name.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.base.registry import Registry
from ganeti.model.drivers import DiskTemplate
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.interface import Device, Environment, Traits

TEMPLATES: Registry[type[Device]] = Registry(
    "disk template", {str(name): name.driver for name in DiskTemplate if name.driver}
)
_WITHOUT_DRIVER = Traits(id_parts=())


def traits_of(template: str | None) -> Traits:
    """Return the traits of a template; traits without a driver for ``diskless`` and None.

    Raises:
        ParameterError: no such template.
    """
    if template is None or template == DiskTemplate.DISKLESS:
        return _WITHOUT_DRIVER
    return TEMPLATES.get(template).traits


def templates_with(test: Callable[[Traits], object]) -> frozenset[str]:
    """The templates whose traits pass a test."""
    return frozenset(name for name in TEMPLATES.names() if test(TEMPLATES.get(name).traits))


def volume_templates() -> frozenset[str]:
    """The templates whose disks lie in volume groups, themselves or by what they are built on."""
    return templates_with(lambda traits: traits.is_volume or traits_of(traits.built_on).is_volume)


def file_settings() -> list[str]:
    """The settings of the cluster with directories that file disks may be in."""
    used = templates_with(lambda traits: traits.file_based)
    return sorted({traits_of(name).directory for name in used})


def default_params() -> dict[str, JsonObject]:
    """Builtin parameters of the disks of every template."""
    return {
        str(name): msgspec.to_builtins(TEMPLATES.get(name).params()) if name.driver else {}
        for name in DiskTemplate
    }


def device(disk: NodeDisk, env: Environment) -> Device:
    """The driver object of a disk; ParameterError for a template without driver."""
    driver = TEMPLATES.get(disk.dev_type)
    if driver.traits.file_based and disk.logical_id:
        *first, path = disk.logical_id
        local = env.paths.local(str(path))
        disk = msgspec.structs.replace(disk, logical_id=(*first, local))
    return driver(disk, env)
