"""The load of instances from the monitoring daemons of their nodes, or from a file.

A report gives the processor time of a node, which is shared among its instances and the node
itself by their virtual processors; a report of Xen gives that of each instance. When the report
of a node is missing nothing is known: all instances keep the load they had.
"""

from __future__ import annotations

import dataclasses
import http.client
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.htools import program
from ganeti.htools.options import UsageError, Values
from ganeti.net import resolve
from ganeti.placement.facts import Cluster, Instance

#: Collectors: processor time of a node, and of each Xen domain.
_OF_NODE, _OF_DOMAINS = "cpu-avg-load", "xen-cpu-avg-load"
_PATH = "/1/report/default/{}"
#: Seconds for an answer.
_TIMEOUT = 10.0
#: Nodes that are asked at the same time.
_AT_ONCE = 32


class MonitorError(errors.GenericError):
    """Data of monitoring daemons is missing or makes no sense; the text says where."""


#: Reports of a node, by collector.
Reports = JsonObject


def add_loads(cluster: Cluster, values: Values, text: str | None) -> tuple[Instance, ...]:
    """The instances with their processor load; ``text`` is the content of ``--mond-data``."""
    collector = _OF_DOMAINS if "mond_xen" in values else _OF_NODE
    wanted = [node.name for node in cluster.nodes if not node.offline]
    known = (
        _ask(wanted, collector) if text is None else _read_recorded(text, values.get("mond_data"))
    )
    loads: dict[str, float] = {}
    missing = []
    for name in wanted:
        try:
            loads |= _loads(cluster, name, known.get(name, {}), collector)
        except MonitorError as err:
            missing.append(errors.text(err))
    if not missing:
        return tuple(_set_load(item, loads) for item in cluster.instances)
    problems = "; ".join(missing)
    if "exit_on_missing_mond_data" in values:
        raise MonitorError(problems)
    program.warn(f"The load of instances is taken for equal: {problems}")
    return cluster.instances


def check(values: Values) -> None:
    """Options that mean nothing without ``--mond`` are refused."""
    for key in ("mond_data", "exit_on_missing_mond_data", "mond_xen"):
        if key in values and not is_wanted(values):
            name = key.replace("_", "-")
            raise UsageError(f"option --{name} has no effect without --mond")


def is_wanted(values: Values) -> bool:
    return bool(values.get("mond", "no") == "yes")


def _set_load(item: Instance, loads: Mapping[str, float]) -> Instance:
    if item.name not in loads:
        return item
    return dataclasses.replace(item, load=dataclasses.replace(item.load, cpu=loads[item.name]))


def _loads(cluster: Cluster, node: str, reports: Reports, collector: str) -> dict[str, float]:
    """The processor load of the instances of a node."""
    if collector not in reports:
        raise MonitorError(f"node {node} has no report {collector}")
    data = reports[collector]
    here = [i for i in cluster.instances if i.primary == node and not i.forthcoming]
    if collector == _OF_DOMAINS:
        gone = [i.name for i in here if i.runs and not _is_load(_get(data, i.name))]
        if gone:
            raise MonitorError(f"the report of node {node} does not know {', '.join(gone)}")
        return {i.name: float(data[i.name]) if i.runs else 0.0 for i in here}
    total = _get(data, "cpu_total")
    if not _is_load(total):
        raise MonitorError(f"the report of node {node} has no load 'cpu_total'")
    own = next(n.node_cpus for n in cluster.nodes if n.name == node)
    share = total / max(1, own + sum(i.vcpus for i in here))
    return {i.name: share * i.vcpus for i in here}


def _get(data: object, key: str) -> Any:
    return data.get(key) if isinstance(data, dict) else None


def _is_load(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _read_recorded(text: str, name: str) -> dict[str, Reports]:
    """Reports by node from ``[{"node": ..., "reports": [...]}]``."""
    try:
        raw = jsonio.loads(text)
    except errors.ParseError as err:
        raise MonitorError(f"{name}: is not JSON: {errors.text(err)}") from err
    if not isinstance(raw, list):
        raise MonitorError(f"{name}: is not a list of nodes")
    found: dict[str, Reports] = {}
    for number, one in enumerate(raw):
        node, reports = _get(one, "node"), _get(one, "reports")
        if not isinstance(node, str) or not isinstance(reports, list):
            raise MonitorError(f"{name}, entry {number}: must have 'node' and a list 'reports'")
        found[node] = _index_by_collector(reports, f"{name}, node {node}")
    return found


def _index_by_collector(reports: Sequence[Any], where: str) -> Reports:
    for report in reports:
        if not isinstance(_get(report, "name"), str) or "data" not in report:
            raise MonitorError(f"{where}: a report has no 'name' or no 'data'")
    return {report["name"]: report["data"] for report in reports}


def _ask(nodes: Sequence[str], collector: str) -> dict[str, Reports]:
    """The answers of the monitoring daemons; those without one are left out."""
    if not nodes:
        return {}
    with ThreadPoolExecutor(min(_AT_ONCE, len(nodes))) as pool:
        answers = pool.map(lambda node: _ask_one(node, collector), nodes)
        return {node: found for node, found in zip(nodes, answers) if found is not None}


def _ask_one(node: str, collector: str) -> Reports | None:
    try:
        link = http.client.HTTPConnection(
            resolve.address(node), resolve.port(constants.MOND), timeout=_TIMEOUT
        )
        try:
            link.request("GET", _PATH.format(collector))
            answer = link.getresponse()
            body = answer.read()
        finally:
            link.close()
        if answer.status != http.client.OK:
            raise MonitorError(f"HTTP {answer.status}")
        return _index_by_collector([jsonio.loads(body)], f"node {node}")
    except (OSError, http.client.HTTPException, errors.GanetiError) as err:
        program.warn(f"The monitoring daemon of {node} does not answer: {err}")
        return None
