"""Facts about disk templates for the placement model, from their traits.

The model sees no drivers, and text files name templates only. So ``tools/make-docs`` writes this as
the module ``placement/generated.py``.
"""

from __future__ import annotations

from ganeti.model.drivers import DiskTemplate
from ganeti.storage.registry import traits_of, volume_templates

_HEAD = '''\
"""Disk templates in the placement model. Made by tools/make-docs; do not edit.

Nodes with the data besides the primary one, whether disks take room on the node, and whether they
turn spindles (see ``ganeti.storage.placing``).
"""

TEMPLATES: dict[str, tuple[str, bool, bool]] = {
'''


def module() -> str:
    """The text of the module."""
    volumes = volume_templates()
    lines = []
    for name in DiskTemplate:
        mirror, local = _place(name)
        lines.append(f'    "{name}": ("{mirror}", {local}, {name in volumes}),\n')
    return "".join([_HEAD, *lines, "}\n"])


def _place(name: DiskTemplate) -> tuple[str, bool]:
    """Nodes with the data besides the primary one, and whether disks take room on nodes."""
    traits = traits_of(name)
    if traits.shared or not name.driver:
        return "every node", False
    return "secondary" if traits.mirrored else "none", True
