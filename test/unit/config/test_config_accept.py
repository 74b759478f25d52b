"""A configuration that the next version has written: what this one does not know is left out."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest
from config_samples import config
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base.releases import OWN, Version
from ganeti.config.upgrade.accept import accept
from ganeti.model import base

Raw = dict[str, Any]
NEXT = Version(OWN.major, OWN.minor + 1)


#: With all parameters, as a master writes it.
WHOLE = accept(base.to_wire(config().data)).config


def written() -> Raw:
    return copy.deepcopy(WHOLE) | {"version": NEXT.config}


def objects(raw: Raw) -> dict[str, Raw]:
    """The objects in it by path."""
    found = {"": raw, "cluster": raw["cluster"]}
    for container in ("nodes", "nodegroups", "networks", "instances", "disks", "filters"):
        for key, value in raw[container].items():
            found[f"{container}/{value.get('name') or key}"] = value
    for value in raw["instances"].values():
        for index, nic in enumerate(value["nics"]):
            found[f"instances/{value['name']}/nics/{index}"] = nic
    return found


@given(
    chosen=st.sets(st.sampled_from(sorted(objects(written()))), min_size=1),
    value=st.one_of(st.none(), st.booleans(), st.text(), st.lists(st.integers()), st.just({})),
)
def test_unknown_members_are_left_out_and_named(chosen: set[str], value: object) -> None:
    raw = written()
    for path in chosen:
        objects(raw)[path]["future"] = value
    before = copy.deepcopy(raw)
    found = accept(raw)
    assert raw == before
    assert set(found.dropped) == {f"{path}/future".lstrip("/") for path in chosen}
    assert found.config == WHOLE
    assert found.problems == []


def test_a_value_that_only_the_next_version_knows_is_refused() -> None:
    raw = written()
    next(iter(raw["disks"].values()))["dev_type"] = "tape"
    with pytest.raises(errors.ConfigurationError, match="tape"):
        accept(raw)


def test_our_own_comes_out_as_it_went_in() -> None:
    found = accept(WHOLE)
    assert (found.config, found.changes, found.dropped) == (WHOLE, [], [])


def test_another_version_asks_by_standard_input() -> None:
    raw = written()
    raw["cluster"]["future"] = 1
    words = [sys.executable, "-m", "ganeti.config.upgrade.accept"]
    ran = subprocess.run(words, input=json.dumps(raw).encode(), capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["dropped"] == ["cluster/future"]
    ran = subprocess.run(words, input=b"{", capture_output=True, timeout=60)
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr
