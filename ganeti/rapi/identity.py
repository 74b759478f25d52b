"""The user of a request, and the permissions of that user; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ganeti import errors
from ganeti.model.limits import Limits

READ = "read"
WRITE = "write"
#: Held by each user who has logged in; cannot be given or denied.
KNOWN = "known"
#: Family of single permissions by the first part of a path after ``/2/``; else ``cluster``.
_FAMILIES = {
    "instances": "instance",
    "instances-multi-alloc": "instance",
    "nodes": "node",
    "disks": "disk",
    "groups": "group",
    "networks": "network",
    "images": "image",
    "notifications": "notification",
    "backups": "backup",
    "jobs": "job",
    "filters": "filter",
    "query": "query",
    "events": "events",
    "os": "os",
}
_VERBS = {"GET": "read", "POST": "add", "DELETE": "remove", "PUT": "replace"}
_EXCEPTIONS = {("DELETE", "job"): "job.cancel", ("PUT", "query"): "query.read"}
#: Actions with the permission of another one.
_ALIASES = {"console-ticket": "console"}
#: GET of these last parts is more than reading the object.
_GET_ACTIONS = frozenset({"console", "wait", "why", "storage", "history"})


def permission_of(method: str, path: str) -> str:
    """Name of the single permission that a route needs: ``instance.startup``, ``node.read``.

    ``path`` is the route's template (``/2/instances/{instance_name}/startup``). The name is the
    family of the resource and either the action that ends the path or what the method does.
    """
    if path == "/metrics":
        return "metrics.read"
    parts = [part for part in path.split("/")[2:] if part]
    family = _FAMILIES.get(parts[0]) if parts else None
    words = [part for part in parts[family is not None :] if part[0] not in "{<"]
    family = family or "cluster"
    if words and (method != "GET" or words[-1] in _GET_ACTIONS):
        action = "-".join(words)
        return f"{family}.{_ALIASES.get(action, action)}"
    return _EXCEPTIONS.get((method, family)) or f"{family}.{_VERBS.get(method, method.lower())}"


def list_permissions(method: str, path: str, access: Iterable[str]) -> frozenset[str]:
    """Permissions for a route: its access list with its single permission; none if that is empty.

    ``access`` is the list of the interface (``read``, ``write``), of which one suffices.
    """
    names = frozenset(access)
    return names | {permission_of(method, path)} if names - {KNOWN} else names


@dataclass(frozen=True)
class Identity:
    """A user, a token or, with an empty name, somebody who did not say who it is.

    ``permissions`` are ``read``, ``write``, single ones (``instance.startup``), families
    (``instance.*``) and, with a minus before them, single ones and families that are denied
    whatever else is there. ``limits`` narrow all permissions to some objects of the cluster.
    """

    name: str
    permissions: frozenset[str]
    limits: Limits | None = None

    @property
    def anonymous(self) -> bool:
        return not self.name

    @property
    def limited(self) -> bool:
        """Whether only some objects of the cluster may be seen and changed."""
        return self.limits is not None

    @property
    def redacted(self) -> bool:
        """Whether parameters that may have a password in them are hidden.

        An identity that may set them for every instance sees them.
        """
        return self.limited or not self.has_any((WRITE, "instance.modify"))

    def has_any(self, wanted: Iterable[str]) -> bool:
        """Whether one of the wanted permissions is held; none wanted lets everybody in.

        ``write`` implies ``read``.
        """
        names = frozenset(wanted)
        if not names:
            return True
        if KNOWN in names:
            return not self.anonymous
        singles = [name for name in names if "." in name]
        if any(f"-{form}" in self.permissions for name in singles for form in _forms(name)):
            return False
        held = {form for name in names for form in _forms(name)}
        return bool(held & self.permissions) or (READ in names and WRITE in self.permissions)

    def require(self, wanted: Iterable[str]) -> None:
        """Let only those pass who hold one of the wanted permissions.

        Raises:
            AuthenticationError: the request names no user.
            AccessError: the user does not have the permission.
        """
        wanted = frozenset(wanted)
        if self.has_any(wanted):
            return
        if self.anonymous:
            raise errors.AuthenticationError("This resource needs a user name and a password")
        raise errors.AccessError(
            f"User '{self.name}' has none of the permissions: {', '.join(sorted(wanted))}"
        )


def _forms(name: str) -> tuple[str, ...]:
    """A permission and the family it belongs to."""
    family, dot, _ = name.partition(".")
    return (name, f"{family}.*") if dot else (name,)


ANONYMOUS = Identity("", frozenset())
