"""When the watcher continues with an upgrade, and when a node follows its cluster."""

from __future__ import annotations

import pytest

from ganeti.base.releases import Version
from ganeti.base.upgrade_intent import Intent
from ganeti.watcher.versions import Action, decide

OLD, NEW = Version(3, 2), Version(3, 3)


@pytest.mark.parametrize(
    ("intent", "action"),
    [
        (None, Action.NOTHING),
        (Intent("3.2", "3.3", 4711), Action.RESUME),
        (Intent("3.2", "3.3", 0), Action.NOTHING),
    ],
)
def test_the_master_goes_on_unless_the_upgrade_gave_up(
    intent: Intent | None, action: Action
) -> None:
    found = decide(master=True, intent=intent, cluster=NEW, active=OLD, installed=True)
    assert found is action


@pytest.mark.parametrize(
    ("cluster", "active", "installed", "action"),
    [
        (NEW, OLD, True, Action.FOLLOW),
        (NEW, OLD, False, Action.COMPLAIN),
        (NEW, NEW, True, Action.NOTHING),
        (OLD, NEW, True, Action.NOTHING),
        (None, OLD, True, Action.NOTHING),
        (NEW, None, False, Action.NOTHING),
    ],
)
def test_a_node_follows_up_and_never_down(
    cluster: Version | None, active: Version | None, installed: bool, action: Action
) -> None:
    found = decide(master=False, intent=None, cluster=cluster, active=active, installed=installed)
    assert found is action
