"""Permissions of routes and of those who ask."""

import pytest

from ganeti import errors
from ganeti.rapi.identity import ANONYMOUS, Identity, list_permissions, permission_of


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/", "cluster.read"),
        ("GET", "/2/info", "cluster.read"),
        ("PUT", "/2/modify", "cluster.modify"),
        ("POST", "/2/instances", "instance.add"),
        ("POST", "/2/instances-multi-alloc", "instance.add"),
        ("DELETE", "/2/instances/{instance_name}", "instance.remove"),
        ("GET", "/2/instances/{instance_name}/tags", "instance.read"),
        ("DELETE", "/2/instances/{instance_name}/tags", "instance.tags"),
        ("GET", "/2/instances/{instance_name}/console", "instance.console"),
        ("POST", "/2/instances/{instance_name}/disk/{disk}/grow", "instance.disk-grow"),
        ("PUT", "/2/nodes/{node_name}/storage/modify", "node.storage-modify"),
        ("DELETE", "/2/jobs/{job_id}", "job.cancel"),
        ("GET", "/2/jobs/{job_id}/wait", "job.wait"),
        ("PUT", "/2/query/{resource}", "query.read"),
        ("GET", "/2/events", "events.read"),
    ],
)
def test_each_route_has_a_permission_of_its_own(method: str, path: str, name: str) -> None:
    assert permission_of(method, path) == name


def test_a_route_without_access_list_is_open_to_all() -> None:
    assert list_permissions("GET", "/2/nodes", ()) == frozenset()
    assert list_permissions("PUT", "/2/modify", ["write"]) == {"write", "cluster.modify"}


def test_one_of_the_wanted_permissions_suffices_and_write_implies_read() -> None:
    writer = Identity("w", frozenset({"write"}))
    reader = Identity("r", frozenset({"read"}))
    assert writer.has_any({"read"})
    assert writer.has_any({"write", "node.add"})
    assert reader.has_any({"read", "write"})
    assert not reader.has_any({"write"})
    assert Identity("s", frozenset({"instance.startup"})).has_any({"write", "instance.startup"})
    assert ANONYMOUS.has_any(())


def test_a_refusal_tells_strangers_to_log_in_and_others_what_they_lack() -> None:
    with pytest.raises(errors.AuthenticationError):
        ANONYMOUS.require({"write"})
    with pytest.raises(errors.AccessError, match=r"'r' has none .* instance\.add, write") as info:
        Identity("r", frozenset({"read"})).require({"write", "instance.add"})
    assert info.value.http_status == 403
