"""Tasks of the watcher: on each node, then on the master node, one after the other.

A task of the master gets a :class:`~ganeti.upkeep.round.Round`, asks the master over LUXI and
submits jobs. It may fail: the others are done all the same. To add one, write a function in a
module of its own and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ganeti.upkeep import instances
from ganeti.upkeep.round import Here, Round
from ganeti.watcher import (
    archive,
    backups,
    certificates,
    daemons,
    disks,
    hooks,
    offline_node,
    reservations,
    status,
    versions,
)

Task = Callable[[Round], None]
NodeTask = Callable[[Here], None]

#: Name, as in the log, and the function; in the order in which they are done on each node.
NODE_TASKS: Mapping[str, NodeTask] = {
    "versions": versions.run,
    "daemons": daemons.run,
    "hooks": hooks.run,
    "offline": offline_node.run,
}
#: The same for the master node.
TASKS: Mapping[str, Task] = {
    "archive": archive.run,
    "reservations": reservations.run,
    "status": status.run,
    "instances": instances.run,
    "disks": disks.run,
    "certificates": certificates.run,
    "backups": backups.run,
}
