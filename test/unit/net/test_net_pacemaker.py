"""What is read from the configuration of Pacemaker, and what is wrong with it."""

from __future__ import annotations

import pytest
from stand_in_pacemaker import FENCE, ROLE, write_cib

from ganeti import errors
from ganeti.net.pacemaker import Rules, judge, parse_rules

GOOD = Rules(fences=True, devices=1, without_quorum="stop", roles=1, cloned=False)
TEMPLATE = '<template id="t" class="ocf" provider="ganeti" type="ganeti-master-role"/>'
BY_TEMPLATE = '<primitive id="role" template="t"/>'


def test_a_cluster_that_fences_and_has_the_resource_once_is_fine() -> None:
    assert parse_rules(write_cib()) == GOOD
    assert judge(GOOD) == []
    assert parse_rules(write_cib(resources=TEMPLATE + BY_TEMPLATE + FENCE)) == GOOD
    assert parse_rules(write_cib(resources=f"<group>{ROLE}</group>{FENCE}")) == GOOD


@pytest.mark.parametrize("value", ["false", "No", "0", "off"])
def test_stonith_that_is_off_is_found_however_it_is_written(value: str) -> None:
    rules = parse_rules(write_cib({"stonith-enabled": value}))
    assert not rules.fences
    assert judge(rules) == [
        "Pacemaker does not fence lost nodes, so there can be two masters: set stonith-enabled=true"
    ]


def test_a_watchdog_is_a_fence_device_when_its_time_is_set() -> None:
    for value, count in (("10s", 1), ("0", 0), ("", 0)):
        rules = parse_rules(write_cib({"stonith-watchdog-timeout": value}, ROLE))
        assert rules.devices == count
    assert judge(rules) == [
        "Pacemaker has no fence device, so no node takes the place of a lost master"
    ]


def test_a_loss_of_quorum_that_is_ignored_is_found() -> None:
    rules = parse_rules(write_cib({"no-quorum-policy": "ignore"}))
    assert judge(rules) == ["Pacemaker ignores a loss of quorum: set no-quorum-policy=stop"]
    assert judge(parse_rules(write_cib({"no-quorum-policy": "freeze"}))) == []


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ("", "Pacemaker has no resource of ocf:ganeti:ganeti-master-role"),
        (ROLE + ROLE, "Pacemaker has 2 resources of ocf:ganeti:ganeti-master-role, not one"),
        (
            f"<clone>{ROLE}</clone>",
            "the resource of ocf:ganeti:ganeti-master-role is a clone, so it has several nodes",
        ),
        (
            f"{TEMPLATE}<clone><group>{BY_TEMPLATE}</group></clone>",
            "the resource of ocf:ganeti:ganeti-master-role is a clone, so it has several nodes",
        ),
    ],
)
def test_the_resource_must_be_there_once(resources: str, text: str) -> None:
    assert text in judge(parse_rules(write_cib(resources=resources + FENCE)))


def test_what_is_not_xml_is_refused() -> None:
    with pytest.raises(errors.RemoteError, match="cannot be read"):
        parse_rules("Could not connect")
