"""How an operation finds a notification."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.model.config import Config
from ganeti.model.notification import Notification


def find(config: Config, name: str) -> Notification:
    """The notification of a name; OpPrereqError if there is none."""
    known = config.cluster.notifications
    if name not in known:
        raise errors.make_unknown_error(
            f"there is no notification '{name[:80]}'{nearest(name[:80], known)}"
        )
    return known[name]
