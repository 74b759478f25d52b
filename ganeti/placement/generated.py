"""Disk templates in the placement model. Made by tools/make-docs; do not edit.

Nodes with the data besides the primary one, whether disks take room on the node, and whether they
turn spindles (see ``ganeti.storage.placing``).
"""

TEMPLATES: dict[str, tuple[str, bool, bool]] = {
    "blockdev": ("every node", False, False),
    "diskless": ("every node", False, False),
    "drbd": ("secondary", True, True),
    "ext": ("every node", False, False),
    "file": ("none", True, False),
    "gluster": ("every node", False, False),
    "plain": ("none", True, True),
    "rbd": ("every node", False, False),
    "sharedfile": ("every node", False, False),
}
