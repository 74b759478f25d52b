"""Nobody uses more than a quota, whatever the change is called and however many run at once."""

from __future__ import annotations

import pytest
from config_samples import disk, instance

from ganeti import errors
from ganeti.config import quota
from ganeti.config.changes import Author, Draft
from ganeti.config.store import Store
from ganeti.model import base
from ganeti.model.limits import Limits, Quota


@pytest.fixture(autouse=True)
def _backend(store: Store) -> None:
    default = {"maxmem": 128, "minmem": 128, "vcpus": 1}
    store.change(
        "backend", Author(), lambda draft: draft.update_cluster(beparams={"default": default})
    )


def author(**most: int) -> Author:
    return Author(limits=Limits(name="token:shop", tag="shop", quota=Quota(**most)))


def put(store: Store, who: Author, *objects: base.ConfigObject) -> None:
    def edit(draft: Draft) -> None:
        for obj in objects:
            draft.put(obj)

    store.change("test", who, edit)


def guest(number: int, **more: object) -> base.ConfigObject:
    return instance(number, tags=("shop",), **more)


@pytest.mark.parametrize(
    ("most", "objects", "text"),
    [
        ({"instances": 1}, [guest(2), guest(3)], "instances: 0 used, 2 more wanted, the limit"),
        (
            {"memory": 500},
            [guest(2, beparams={"maxmem": 501})],
            "memory: 0 MiB used, 501 MiB more wanted, the limit is 500 MiB",
        ),
        ({"vcpus": 3}, [guest(2, beparams={"vcpus": 4})], "vcpus: 0 used, 4 more wanted"),
        (
            {"disk": 500},
            [guest(2, disks=("d2",)), disk("d2", "web2")],
            "disk: 0 MiB used, 512 MiB more wanted, the limit is 500 MiB",
        ),
        ({"disk": 500}, [disk("d2", "", tags=("shop",))], "disk: 0 MiB used, 512 MiB"),
        ({"instances": 0}, [guest(2, forthcoming=True)], "instances: 0 used, 1 more wanted"),
    ],
)
def test_a_change_beyond_the_quota_is_not_made(
    store: Store, most: dict[str, int], objects: list[base.ConfigObject], text: str
) -> None:
    before = store.current
    with pytest.raises(errors.OpPrereqError, match=f"quota of token:shop: {text}"):
        put(store, author(**most), *objects)
    assert store.current is before
    put(store, Author(), *objects)  # without limits
    assert store.current is not before


def test_those_who_are_beyond_it_may_do_with_less(store: Store) -> None:
    who = author(disk=100)
    put(store, Author(), guest(2, disks=("d2",)), disk("d2", "web2"))
    put(store, who, disk("d2", "web2", size=400))
    with pytest.raises(errors.OpPrereqError, match="400 MiB used, 1 MiB more"):
        put(store, who, disk("d2", "web2", size=401))
    put(store, who, instance(3))  # of somebody else
    with pytest.raises(errors.OpPrereqError, match="400 MiB used, 1 MiB more"):
        quota.check_growth(who.limits, store.current, 1)
    quota.check_growth(None, store.current, 1)
