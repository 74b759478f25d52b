"""What the watcher does on the master node, one after the other.

A task gets a :class:`~ganeti.watcher.round.Round`, asks the master over LUXI and submits jobs; it
waits for none. It may fail: the others are done all the same. To add one, write a function in a
module of its own and a line in ``TASKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ganeti.watcher import archive, reservations
from ganeti.watcher.round import Round

Task = Callable[[Round], None]

#: Name, as in the log, and the function; in the order in which they are done.
TASKS: Mapping[str, Task] = {
    "archive": archive.run,
    "reservations": reservations.run,
}
