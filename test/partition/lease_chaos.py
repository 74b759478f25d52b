"""Random schedules of faults on nodes that have leases, with guests that must not run twice."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count

import chaos
import guests
import power
from lease_cluster import GUESTS
from lease_plan import MASTER, Fault, Kind, Plan
from net_cluster import Direction, NetCluster, NetNode
from supervisor import Supervisor
from unaided import Pause, UnaidedSchedule

from ganeti import constants
from ganeti.config.store import read_config
from ganeti.model.config import Config
from ganeti.model.enums import AdminState

#: Seconds in which all guests must run once nothing is broken any more: a fence that failed is
#: tried again after 300 s, and an instance is started again after one minute or more.
LATEST = 600.0
#: Seconds between two runs of the watcher, between two commands that set nodes online, and between
#: two looks.
_WATCHER = 60.0
_ONLINE = 10.0
_LOOK = 1.0

_FROZEN = {Kind.FREEZE_MASTERD: (constants.MASTERD,), Kind.FREEZE_NODED: (constants.NODED,)}
_KILLED = {
    Kind.KILL_MASTERD: (constants.MASTERD,),
    Kind.KILL_NODED: (constants.NODED,),
    Kind.KILL_ALL: (constants.MASTERD, constants.NODED),
}
_Undo = Callable[[], None]


class LeaseSchedule(UnaidedSchedule):
    """One plan, played on a cluster that was made for it."""

    pace = 0.5

    def __init__(self, cluster: NetCluster, plan: Plan) -> None:
        super().__init__(cluster, plan.seed)
        self.plan = plan
        self.watch = guests.GuestWatch(cluster, self.note)
        self._mover = guests.GuestMover(cluster, list(GUESTS), plan.seed, self.note)
        self._supervisors = {
            number: Supervisor(node, self.note) for number, node in cluster.nodes.items()
        }
        #: the directions that the faults in progress cut
        self._cuts: list[set[Direction]] = []
        #: the node that stays without power, if there is one
        self._dark: NetNode | None = None
        self._watcher_at = self._online_at = 0.0

    def run(self) -> None:
        self.watch.start()
        for supervisor in self._supervisors.values():
            supervisor.start()
        if self.plan.moves:
            self._mover.start()
        try:
            super().run()
        finally:
            self._stop_moves()
            self.watch.stop()
            for supervisor in self._supervisors.values():
                supervisor.stop()

    def _stop_moves(self) -> None:
        if self.plan.moves:
            self._mover.stop()

    def _report(self, problem: str) -> str:
        began = time.time() - (time.monotonic() - self._began)
        lines = [
            f"{moment - began:6.2f} s  {short} {what}"
            for moment, short, what in power.read_log(self.cluster.directory)
        ]
        where = f"guests: {guests.find(self.cluster)}"
        return "\n".join(
            [super()._report(problem), where, "power and devices:", *lines, str(self.plan)]
        )

    # the course of events ------------------------------------------------------------------

    def _disturb(self) -> None:
        """Begin and end each fault when the plan says so."""
        number = count()
        todo: list[tuple[float, int, Fault | _Undo]] = [
            (fault.begin, next(number), fault) for fault in self.plan.faults
        ]
        began = time.monotonic()
        while todo:
            moment, _number, what = heappop(todo)
            time.sleep(max(0.0, began + moment - time.monotonic()))  # the schedule's own time
            if isinstance(what, Fault):
                undo = self._begin(what)
                heappush(todo, (what.end, next(number), undo))
            else:
                what()
            self._check_terms()
            self._check_guests()

    def _check_guests(self) -> None:
        assert not self.watch.problems, self.watch.problems

    def _begin(self, fault: Fault) -> _Undo:
        """Let a fault begin; what ends it."""
        node = self._find_node(fault.node)
        self.note(f"{node.short}: {fault.kind.value}, for {fault.lasts:.0f} s")
        if fault.kind in _FROZEN:
            return self._freeze_processes(node, self._list_pids(node, _FROZEN[fault.kind]))
        if fault.kind is Kind.FREEZE_ALL:
            return self._freeze_processes(node, power.list_processes(node.space.pid))
        if fault.kind in _KILLED:
            return self._kill_daemons(node, _KILLED[fault.kind], restarts=fault.restarts)
        if fault.kind is Kind.POWER_CUT:
            power.switch_off(self.cluster.directory, node.short)
            return lambda: self._give_power(node)
        if fault.kind is Kind.DEVICE_FAILS:
            return self._break_devices(node)
        if fault.kind is Kind.FAILOVER:
            self._run_beside(f"failover to {node.short}", lambda: chaos.failover(node))
            return lambda: None
        return self._add_cut(node, fault)

    def _find_node(self, number: int) -> NetNode:
        """The node of a fault; for the master the one with the newest term, if any runs."""
        if number != MASTER:
            return self.cluster.nodes[number]
        masters = self._masters() or list(self.cluster.nodes.values())
        return max(masters, key=lambda node: (node.reigns() or [0])[-1])

    def _add_cut(self, node: NetNode, fault: Fault) -> _Undo:
        own = node.number
        others = self._list_others(node)
        if fault.kind is not Kind.CUT_OFF:
            others = [number for number in fault.others if number != own]
            self.note(f"the others are {others}")
        ways: set[Direction] = set()
        if fault.kind is not Kind.CUT_HEARING:
            ways |= {(own, other) for other in others}
        if fault.kind is not Kind.CUT_SENDING:
            ways |= {(other, own) for other in others}
        self._cuts.append(ways)
        self._apply_cuts()

        def undo() -> None:
            self.note(f"a cut of {node.short} ends")
            self._cuts.remove(ways)
            self._apply_cuts()

        return undo

    def _apply_cuts(self) -> None:
        self.cluster.cut(set().union(*self._cuts))

    @staticmethod
    def _list_pids(node: NetNode, daemons: Iterable[str]) -> list[int]:
        return [pid for pid in map(node.pid, daemons) if pid is not None]

    def _freeze_processes(self, node: NetNode, pids: list[int]) -> _Undo:
        """Processes are named by descriptors, so that no later one is meant by mistake."""
        frozen: list[int] = []
        pause = None
        if node.pid(constants.MASTERD) in pids:
            pause = Pause(node.name, time.time())
            self._pauses.append(pause)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                frozen.append(os.pidfd_open(pid))
                signal.pidfd_send_signal(frozen[-1], signal.SIGSTOP)

        def undo() -> None:
            self.note(f"{len(frozen)} processes of {node.short} continue")
            for descriptor in frozen:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                os.close(descriptor)
            if pause is not None:
                pause.end = time.time()

        return undo

    def _kill_daemons(self, node: NetNode, daemons: Iterable[str], *, restarts: bool) -> _Undo:
        supervisor = self._supervisors[node.number]
        held = [] if restarts else list(daemons)
        for daemon in held:
            supervisor.hold(daemon)
        before = self._list_master_pids()
        for daemon in daemons:
            node.signal(daemon, signal.SIGKILL)
        self._note_deaths(before)

        def undo() -> None:
            for daemon in held:
                supervisor.release(daemon)

        return undo

    def _give_power(self, node: NetNode) -> None:
        if not node.has_power:
            self.note(f"{node.short} has power")
            power.switch_on(self.cluster.directory, node.short)

    def _break_devices(self, node: NetNode) -> _Undo:
        files = [
            power.mode_file(self.cluster.directory, kind, node.short) for kind in power.DEVICES
        ]
        before = [file.read_text() for file in files]
        for file in files:
            file.write_text("fails")

        def undo() -> None:
            for file, text in zip(files, before, strict=True):
                file.write_text(text)

        return undo

    # the end -------------------------------------------------------------------------------

    def _end_faults(self) -> None:
        """End all faults; the cluster finds a master, and all guests run that can."""
        self.note("all faults end")
        self._stop_moves()
        off = [node for node in self.cluster.nodes.values() if not node.has_power]
        if off and self.plan.dark:
            self._dark = off[0]
            self.note(f"{off[0].short} stays without power")
        for node in off:
            if node is not self._dark:
                self._give_power(node)
        for thread in self._commands:
            thread.join(150)
            assert not thread.is_alive(), f"{thread.name} did not end"
        began = time.monotonic()
        self.master = self._find_master()
        self.note(f"{self.master.short} is the master {time.monotonic() - began:.0f} s later")
        self._wait_for_guests(began)
        self.note(f"all guests run {time.monotonic() - began:.0f} s after the end of all faults")

    def _restart_masters(self) -> None:
        """Supervisors do it."""

    def _wait_for_guests(self, began: float) -> None:
        """Wait until all guests run that can; the administrator sets nodes online meanwhile."""
        missing = ["not looked yet"]
        while missing:
            late = time.monotonic() - began > LATEST
            assert not late, f"not within {LATEST:.0f} s: {'; '.join(missing)}"
            self._check_guests()
            if self.master.pid(constants.MASTERD) is None:
                self.master = self._find_master()
                self.note(f"now {self.master.short} is the master")
            for node in self.cluster.nodes.values():
                if node is not self._dark:
                    self._give_power(node)  # a device may have been too late
            config = read_config(self.master.paths)
            missing = [*self._set_online(config), *self._list_missing(config)]
            if missing:
                self._run_watcher()
                time.sleep(_LOOK)  # until something has changed, and no event tells

    def _set_online(self, config: Config) -> list[str]:
        """Set nodes online that run, some time after the last ones; those that were offline."""
        offline = [
            node.short
            for node in self.cluster.nodes.values()
            if node is not self._dark and config.node(node.name).offline
        ]
        if offline and time.monotonic() > self._online_at + _ONLINE:
            for short in offline:
                ran = self.master.gnt(f"node modify --offline=no {short}", timeout=90)
                self.note(f"{short} is set online: {_describe(ran.err or ran.out)}")
            self._online_at = time.monotonic()
        return [f"{short} is offline" for short in offline]

    def _run_watcher(self) -> None:
        """The watcher of the master, as its timer runs it, but more often."""
        if self._watcher_at and time.monotonic() > self._watcher_at + _WATCHER:
            ran = self.master.run(["ganeti-watcher"], timeout=120)
            self.note(f"watcher: {_describe(ran.err or ran.out)}")
            self._watcher_at = 0.0
        self._watcher_at = self._watcher_at or time.monotonic()

    def _list_missing(self, config: Config) -> list[str]:
        """Instances whose guests do not run where they should."""
        found = guests.find(self.cluster)
        missing = []
        for item in config.instances.values():
            if item.admin_state is not AdminState.UP:
                continue
            primary = config.nodes[item.primary_node].name
            short = primary.partition(".")[0]
            if self._dark is not None and primary == self._dark.name:
                if GUESTS[item.name] == "failover" and self._is_provable(self._dark):
                    missing.append(f"{item.name} stays on {short}, which is dead")
            elif found.get(item.name) != [short]:
                missing.append(f"{item.name} does not run on {short}")
        return missing

    def _is_provable(self, node: NetNode) -> bool:
        modes = [self.plan.modes[kind, node.number] for kind in self.plan.devices]
        return any(mode != "fails" for mode in modes)

    # what must hold ------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        self._check_guests()

    def _list_deaths(self) -> list[tuple[str, float]]:
        names = {node.short: node.name for node in self.cluster.nodes.values()}
        cuts = [
            (names[short], moment)
            for moment, short, what in power.read_log(self.cluster.directory)
            if what == power.OFF
        ]
        return [*super()._list_deaths(), *cuts]

    def _list_others_with_data(self) -> list[NetNode]:
        config = read_config(self.master.paths)
        return [
            node
            for node in super()._list_others_with_data()
            if node.has_power and config.node(node.name).master_candidate
        ]


def _describe(text: str) -> str:
    return (text.strip().splitlines() or ["done"])[-1][:200]
