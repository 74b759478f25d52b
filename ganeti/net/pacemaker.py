"""Pacemaker as one of its nodes sees it: quorum, and whether its rules suit the role of the master.

Its own programs are asked: ``crm_node`` and ``cibadmin`` (Debian's packages ``pacemaker`` and
``pacemaker-cli-utils``). Source: *Pacemaker Explained* 2.1, "Cluster options" and "Resources".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ganeti import errors
from ganeti.base import process
from ganeti.paths import Paths

#: The resource agent that gives a node the role of the master.
AGENT: Final = "ganeti-master-role"
_PROVIDER: Final = "ganeti"
NO_FENCING: Final = (
    "Pacemaker does not fence lost nodes, so there can be two masters: set stonith-enabled=true"
)
#: Seconds for an answer to a check.
PATIENCE: Final = 5.0
_FALSE: Final = frozenset({"0", "false", "no", "n", "off"})


def has_quorum(seconds: float) -> bool:
    """Whether this node is in the part of the cluster that has quorum.

    Raises:
        RemoteError: Pacemaker does not run here, or does not answer in time.
    """
    answer = _ask(["crm_node", "--quorum"], seconds).strip()
    if answer not in ("0", "1"):
        raise errors.RemoteError(f"crm_node --quorum says {answer[:60]!r}, not 0 or 1")
    return answer == "1"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of Pacemaker that matter for the role of the master."""

    #: whether a node that is lost is fenced before its resources start elsewhere
    fences: bool = True
    #: fence devices, a watchdog among them
    devices: int = 0
    #: what a part of the cluster without quorum does with its resources
    without_quorum: str = "stop"
    #: resources of :data:`AGENT`
    roles: int = 0
    #: one of them may run on several nodes
    cloned: bool = False


def read_rules(seconds: float) -> Rules:
    """The rules as this node has them; RemoteError as of :func:`has_quorum`."""
    return parse_rules(_ask(["cibadmin", "--query", "--local"], seconds))


def parse_rules(text: str) -> Rules:
    """The rules from the configuration of Pacemaker (CIB). Pure.

    Raises:
        RemoteError: it is not XML.
    """
    try:
        cib = ElementTree.fromstring(text)
    except ElementTree.ParseError as err:
        raise errors.RemoteError(f"the configuration of Pacemaker cannot be read: {err}") from err
    pairs = cib.findall("./configuration/crm_config/cluster_property_set/nvpair")
    options = {pair.get("name"): pair.get("value", "") for pair in pairs}
    devices = len(cib.findall("./configuration/resources//primitive[@class='stonith']"))
    if re.search("[1-9]", options.get("stonith-watchdog-timeout", "")):
        devices += 1
    copied = [
        item
        for kind in ("clone", "master")
        for clone in cib.findall(f"./configuration/resources//{kind}")
        for item in _find_roles(clone, cib)
    ]
    return Rules(
        fences=options.get("stonith-enabled", "true").lower() not in _FALSE,
        devices=devices,
        without_quorum=options.get("no-quorum-policy", "stop"),
        roles=len(_find_roles(cib, cib)),
        cloned=bool(copied),
    )


def _find_roles(part: Element, cib: Element) -> list[Element]:
    """The resources of the agent in a part of the configuration; a template may name the agent."""
    wanted = f"[@provider='{_PROVIDER}'][@type='{AGENT}']"
    names = {item.get("id") for item in cib.findall(f"./configuration/resources/template{wanted}")}
    return [
        *part.findall(f".//primitive{wanted}"),
        *(item for item in part.findall(".//primitive") if item.get("template", "") in names),
    ]


# what is wrong -----------------------------------------------------------------------------------


def find_flaws(paths: Paths, name: str, master: str) -> list[str]:
    """Find what is wrong with Pacemaker on the node ``name``; ``master`` should have the role.

    Blocks for some seconds where it does not answer.
    """
    try:
        quorum, rules = has_quorum(PATIENCE), read_rules(PATIENCE)
    except errors.RemoteError as err:
        return [errors.text(err)]
    flaws = [] if quorum else ["Pacemaker has no quorum here"]
    flaws += judge(rules)
    has_role = paths.master_grant.exists()
    if name == master and not has_role:
        flaws.append(f"Pacemaker does not run {AGENT} here, where the master is")
    if name != master and has_role:
        flaws.append(f"Pacemaker runs {AGENT} here, although the master is {master}")
    return flaws


def judge(rules: Rules) -> list[str]:
    """Find what is wrong with the rules of Pacemaker. Pure."""
    flaws = []
    if not rules.fences:
        flaws.append(NO_FENCING)
    elif not rules.devices:
        flaws.append("Pacemaker has no fence device, so no node takes the place of a lost master")
    if rules.without_quorum == "ignore":
        flaws.append("Pacemaker ignores a loss of quorum: set no-quorum-policy=stop")
    if not rules.roles:
        flaws.append(f"Pacemaker has no resource of ocf:{_PROVIDER}:{AGENT}")
    elif rules.roles > 1:
        flaws.append(f"Pacemaker has {rules.roles} resources of ocf:{_PROVIDER}:{AGENT}, not one")
    if rules.cloned:
        flaws.append(f"the resource of ocf:{_PROVIDER}:{AGENT} is a clone, so it has several nodes")
    return flaws


def _ask(argv: list[str], seconds: float) -> str:
    """The output of a program of Pacemaker; RemoteError when it fails or takes too long."""
    try:
        done = process.run_checked(argv, timeout=seconds)
    except errors.CommandError as err:
        raise errors.RemoteError(f"Pacemaker does not answer: {errors.text(err)}") from err
    return done.stdout
