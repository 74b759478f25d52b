"""burnin: add instances, do everything with them that they can stand, and remove them again."""

from __future__ import annotations

import argparse
import http.client
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ganeti import constants, errors, paths
from ganeti.base import daemon, units
from ganeti.base.clock import SYSTEM, Clock, nanoseconds
from ganeti.base.interruption import stop_requests
from ganeti.base.json_types import JsonObject
from ganeti.confd import client as confd
from ganeti.confd.messages import Kind, Status
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.luxi.client import Client, LogEntry
from ganeti.net import resolve
from ganeti.storage.registry import traits_of
from ganeti.tools import burnin_steps as steps
from ganeti.tools import entry
from ganeti.tools.burnin_steps import Ability, Place, Wish

PROGRAM = "burnin"
#: Options that leave a step out, and the step.
_WITHOUT = {
    "--no-replace1": "replace1",
    "--no-replace2": "replace2",
    "--no-failover": "failover",
    "--no-migrate": "migrate",
    "--no-move": "move",
    "--no-importexport": "importexport",
    "--no-startstop": "startstop",
    "--no-reinstall": "reinstall",
    "--no-reboot": "reboot",
    "--no-activate-disks": "activate-disks",
    "--no-add-disks": "add-disks",
    "--no-add-nics": "add-nics",
    "--no-confd": "confd",
}


def main(argv: Sequence[str] | None = None) -> int:
    """0 when everything worked; 1 when something did not."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: Burnin(options, Client()).run())


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Test a cluster: add the instances, do everything with them that their disks"
        " and their hypervisor allow, and remove them. Their disks are lost: never name an "
        "instance that is in use. At the end it prints a table with the time of each step."
        " After SIGTERM or Ctrl-C it takes no further step, and removes the instances.",
        epilog="Exit codes: 0 everything worked; 1 something did not; 2 wrong options.",
    )
    add = made.add_argument
    add("instances", nargs="+", metavar="INSTANCE", help="names of instances that do not exist yet")
    add("-o", "--os", required=True, metavar="OS", help="OS definition to install")
    add("-H", "--hypervisor", metavar="NAME", help="hypervisor (default: the first of the cluster)")
    add(
        "-t", "--disk-template", metavar="NAME", help="template (default: the first of the cluster)"
    )
    add("--disk-size", default="1024m", metavar="SIZE,...", help="sizes of disks (%(default)s)")
    add(
        "--disk-growth",
        default="128m",
        metavar="SIZE,...",
        help="how much disks grow (%(default)s)",
    )
    add("--mem-size", metavar="SIZE", help="memory, minimum and maximum (default: 256m)")
    add("--maxmem-size", default="256m", metavar="SIZE", help="maximum memory (%(default)s)")
    add("--minmem-size", default="256m", metavar="SIZE", help="minimum memory (%(default)s)")
    add("--vcpu-count", type=int, default=1, metavar="NUMBER", help="processors (%(default)s)")
    add("-n", "--nodes", default="", metavar="NODE,...", help="use these nodes only")
    add("-I", "--iallocator", default="", metavar="NAME", help="let an allocator choose the nodes")
    add("-p", "--parallel", action="store_true", help="run each step with all instances at once")
    add(
        "--early-release",
        action="store_true",
        help="remove replaced disks before the new ones are in sync",
    )
    add("--no-nics", action="store_true", help="instances without NICs")
    add("--reboot-types", default="soft,hard,full", metavar="TYPE,...", help="(%(default)s)")
    add("--rename", default="", metavar="NAME", help="rename each instance to this and back")
    add("-C", "--http-check", action="store_true", help="ask each guest for /hostname.txt")
    add("--net-timeout", type=float, default=15.0, metavar="SECONDS", help="for -C (%(default)s)")
    add("-K", "--keep-instances", action="store_true", help="do not remove the instances")
    add("--ignore-errors", action="store_true", help="continue with the next step after a failure")
    add("-v", "--verbose", action="store_true", help="show the log of each job")
    for flag, step in _WITHOUT.items():
        add(flag, action="append_const", const=step, dest="without", help=f"skip {step}")
    return made


@dataclass
class Result:
    """The result of a step."""

    name: str
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Burnin:
    """One test, from the first instance to the table."""

    def __init__(self, options: argparse.Namespace, client: Client, clock: Clock = SYSTEM) -> None:
        self._options = options
        self._client = client
        self._clock = clock
        self._results: list[Result] = []
        self._added: list[str] = []
        self._log = paths.current().log / "burnin.log"

    def run(self) -> int:
        options = self._options
        cluster = self._client.query_cluster_info()
        nodes = self._nodes()
        wish = _wish(options, cluster)
        can = _ability(wish)
        self._check(nodes, can)
        made = steps.plan(wish, can, nodes)
        self._say(
            f"{len(options.instances)} instances ({wish.hypervisor}, {wish.template}, {wish.os}) on"
            f" {len(nodes)} nodes"
        )
        self._leave_out(made.left_out)
        with stop_requests(lambda: self._say("Stopping after the jobs that run now.")) as asked:
            try:
                if self._create(wish, can, nodes):
                    for step in made.steps:
                        if asked:
                            self._results.append(Result(step.name, failures=["interrupted"]))
                            break
                        done = self._do(step.name, step.ops, alone=step.alone)
                        if not done and not options.ignore_errors:
                            break
                    else:
                        self._confd()
            finally:
                if not options.keep_instances:
                    self._remove()
        self._report()
        return constants.EXIT_FAILURE if any(r.failures for r in self._results) else 0

    # preparation

    def _nodes(self) -> list[str]:
        """Nodes that may have instances, or those that were named."""
        wanted = [name for name in self._options.nodes.split(",") if name]
        fields = ["name", "offline", "drained", "vm_capable"]
        rows = self._client.query_nodes(wanted, fields)
        good = [
            str(name) for name, offline, drained, able in rows if able and not offline | drained
        ]
        missing = [
            name for name in wanted if not any(n == name or n.startswith(f"{name}.") for n in good)
        ]
        if missing or not good:
            raise errors.make_state_error(
                f"{', '.join(missing) or 'no node'} can have instances: unknown, offline or drained"
                if missing
                else "no node can have instances"
            )
        return good

    def _check(self, nodes: Sequence[str], can: Ability) -> None:
        if can.mirrored and len(nodes) < 2:
            raise errors.make_state_error("mirrored disks need two nodes")
        names = set(self._options.instances)
        if len(names) != len(self._options.instances):
            raise errors.ParameterError("an instance is named twice")
        there = [row[0] for row in self._client.query_instances([], ["name"]) if row[0] in names]
        if there:
            raise errors.make_state_error(f"there are such instances already: {', '.join(there)}")

    def _leave_out(self, reasons: dict[str, str]) -> None:
        for name, reason in reasons.items():
            self._say(f"{name} is left out: {reason}")

    # steps

    def _create(self, wish: Wish, can: Ability, nodes: Sequence[str]) -> bool:
        places = [Place(n, "", index=i) for i, n in enumerate(self._options.instances)]
        self._added = [place.name for place in places]
        return self._do("create", lambda at: steps.create(wish, can, nodes, at), places=places)

    def _remove(self) -> None:
        rows = self._client.query_instances([], ["name"])
        there = {row[0] for row in rows}
        known = {*self._added, self._options.rename} - {""}
        places = [Place(name, "") for name in sorted(known & there)]
        if places:
            self._do("remove", steps.remove, places=places, check=False)

    def _places(self) -> list[Place]:
        """Ask for the places of the instances."""
        rows = self._client.query_instances(self._added, ["name", "pnode", "snodes"])
        found = {row[0]: row for row in rows}
        return [
            Place(name, found[name][1], next(iter(found[name][2]), ""), index)
            for index, name in enumerate(self._added)
            if name in found
        ]

    def _do(
        self,
        name: str,
        ops: Callable[[Place], list[JsonObject]],
        *,
        places: Sequence[Place] | None = None,
        alone: bool = False,
        check: bool = True,
    ) -> bool:
        """One step with all instances; whether it worked with each."""
        result = Result(name)
        self._results.append(result)
        todo = list(self._places() if places is None else places)
        size = len(todo) if self._options.parallel and not alone else 1
        for first in range(0, len(todo), max(size, 1)):
            batch = todo[first : first + size]
            jobs = [(at, self._client.submit_job(self._reasoned(name, ops(at)))) for at in batch]
            for at, job_id in jobs:
                self._wait(result, at, job_id)
            if check:
                self._check_states(result, batch)
            if check and self._options.http_check:
                for at in batch:
                    self._ask_guest(result, at.name)
            if result.failures and not self._options.ignore_errors and name != "remove":
                break
        self._say(_line(result))
        return not result.failures

    def _reasoned(self, name: str, ops: list[JsonObject]) -> list[JsonObject]:
        trail = ["gnt:tool:burnin", name, nanoseconds(self._clock.now())]
        return [{**op, "reason": [trail]} for op in ops]

    def _wait(self, result: Result, at: Place, job_id: int) -> None:
        status = self._client.wait_until_ended(job_id, lambda entry: self._show(at, entry))
        fields = ["start_ts", "end_ts", "opresult"]
        [(start, end, results)] = self._client.query_jobs([job_id], fields)
        if start and end:
            result.seconds.append(end[0] - start[0] + (end[1] - start[1]) / 1e6)
        if status != "success":
            reasons = [errors.text(e) for e in map(errors.decode, results) if e is not None]
            reason = reasons[0] if reasons else status
            result.failures.append(f"{at.name}: job {job_id}: {reason}")

    def _show(self, at: Place, log: LogEntry) -> None:
        if self._options.verbose and log[2] == "message":
            self._say(f"  {at.name}: {log[3]}")

    def _check_states(self, result: Result, places: Sequence[Place]) -> None:
        """Every instance whose job succeeded must run."""
        failed = {text.partition(":")[0] for text in result.failures}
        names = [at.name for at in places if at.name not in failed]
        rows = self._client.query_instances(names, ["name", "status"]) if names else []
        for name, status in rows:
            if status not in (None, "running"):
                result.failures.append(f"{name}: its status is {status}, not running")

    def _ask_guest(self, result: Result, name: str) -> None:
        """Wait until a guest answers with its own name."""
        end = self._clock.monotonic() + self._options.net_timeout
        reason = "no answer"
        while self._clock.monotonic() < end:
            try:
                if (answer := _hostname(name)) == name:
                    return
                reason = f"it says that it is {answer[:80]!r}"
            except (OSError, http.client.HTTPException) as err:
                reason = str(err)
            self._clock.sleep(1.0)
        result.failures.append(f"{name}: http://{name}/hostname.txt: {reason}")

    def _confd(self) -> None:
        """Ask ganeti-confd who the master is and where instances are, if it runs here."""
        where = paths.current()
        if "confd" in (self._options.without or ()):
            return
        if daemon.running_pid(where.pid_file(constants.CONFD)) is None:
            self._say("confd is left out: ganeti-confd does not run on this node")
            return
        result = Result("confd")
        self._results.append(result)
        key, port = where.hmac_key.read_bytes(), resolve.port(constants.CONFD)
        master = where.ssconf("master_ip").read_text().strip()
        for kind, query in ((Kind.PING, None), (Kind.CLUSTER_MASTER, None), (Kind.NODE_IPS, None)):
            begin = self._clock.monotonic()
            reply = confd.ask([master], port, key, kind, query)
            result.seconds.append(self._clock.monotonic() - begin)
            if reply.status != Status.OK:
                result.failures.append(f"request {kind.name}: {reply.answer}")
        self._say(_line(result))

    # reports

    def _report(self) -> None:
        self._say("")
        self._say(f"{'step':16}{'jobs':>6}{'failed':>8}{'least':>9}{'mean':>9}{'most':>9}  seconds")
        for result in self._results:
            took = result.seconds or [0.0]
            mean = sum(took) / len(took)
            self._say(
                f"{result.name:16}{len(result.seconds):6}{len(result.failures):8}"
                f"{min(took):9.1f}{mean:9.1f}{max(took):9.1f}"
            )
        failures = [text for result in self._results for text in result.failures]
        for text in failures:
            self._say(f"FAILED: {text}")
        self._say(f"{len(failures)} failures" if failures else "Everything worked")

    def _say(self, text: str) -> None:
        print(text, flush=True)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def _line(result: Result) -> str:
    if result.failures:
        return f"{result.name}: {len(result.failures)} FAILED: {result.failures[0]}"
    return f"{result.name}: done in {max(result.seconds, default=0.0):.1f} s"


def _hostname(name: str) -> str:
    link = http.client.HTTPConnection(name, timeout=5)
    try:
        link.request("GET", "/hostname.txt")
        return link.getresponse().read(4096).decode("utf-8", "replace").strip()
    finally:
        link.close()


def _wish(options: argparse.Namespace, cluster: JsonObject) -> Wish:
    """Make the wish from the options and the defaults of the cluster.

    Raises:
        ParameterError: a value cannot be used.
    """
    template = options.disk_template or cluster["enabled_disk_templates"][0]
    hypervisor = options.hypervisor or cluster["default_hypervisor"]
    for kind, name in (("disk_templates", template), ("hypervisors", hypervisor)):
        known = cluster[f"enabled_{kind}"]
        if name not in known:
            raise errors.ParameterError(f"{name} is not enabled; there are: {', '.join(known)}")
    sizes = _sizes(options.disk_size)
    growth = _sizes(options.disk_growth)
    if len(growth) not in (1, len(sizes)):
        raise errors.ParameterError("--disk-growth needs as many sizes as --disk-size, or one")
    return Wish(
        os=options.os,
        template=template,
        hypervisor=hypervisor,
        disk_sizes=sizes,
        disk_growth=growth * len(sizes) if len(growth) == 1 else growth,
        maxmem=units.parse_size(options.mem_size or options.maxmem_size),
        minmem=units.parse_size(options.mem_size or options.minmem_size),
        vcpus=options.vcpu_count,
        iallocator=options.iallocator,
        nics=not options.no_nics,
        reboot_types=tuple(word for word in options.reboot_types.split(",") if word),
        rename=options.rename,
        early_release=options.early_release,
        without=frozenset(options.without or ()),
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(units.parse_size(word) for word in text.split(","))


def _ability(wish: Wish) -> Ability:
    disks = traits_of(wish.template)
    diskless = wish.template == "diskless"
    return Ability(
        mirrored=disks.mirrored,
        shared=disks.shared,
        growable=disks.growable and not diskless,
        diskless=diskless,
        migratable=HYPERVISORS.get(wish.hypervisor).traits.can_migrate,
    )


if __name__ == "__main__":
    sys.exit(main())
