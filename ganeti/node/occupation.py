"""Guests that run on this node, and how one is ended, for programs beside the node daemon."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ganeti import errors
from ganeti.hypervisor.interface import Hypervisor
from ganeti.model import ssconf_keys
from ganeti.model.enums import RunState
from ganeti.node.context import NodeContext

log = logging.getLogger(__name__)

#: Seconds for a guest that is asked to stop.
_ASKED = 60.0


def find_running(context: NodeContext) -> dict[str, str]:
    """Guests that run here, with their hypervisors."""
    return {name: hypervisor for hypervisor, name in _list_running(context)}


def _list_running(context: NodeContext) -> Iterator[tuple[str, str]]:
    for hypervisor in (context.ssconf(ssconf_keys.HYPERVISOR_LIST) or "").split():
        try:
            infos = context.hypervisor(hypervisor).info_all()
        except errors.HypervisorError as err:
            log.warning("guests of %s: %s", hypervisor, err)
            continue
        for name, info in infos.items():
            if info.state == RunState.RUNNING:
                yield hypervisor, name


def end_guest(driver: Hypervisor, name: str) -> None:
    """Ask a guest to stop, and end it when it does not; blocks for about a minute at most.

    Raises:
        HypervisorError: it cannot be asked or ended.
    """
    driver.stop(name, timeout=_ASKED)
    info = driver.info(name)
    if info is not None and info.state == RunState.RUNNING:
        driver.stop(name, force=True)
