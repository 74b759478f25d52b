"""Proves that a node is dead: performs the steps of :mod:`ganeti.recovery.ladder`."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ganeti import errors
from ganeti.model.node import Node
from ganeti.opcodes.enums import OobCommand
from ganeti.ops.operation import Context
from ganeti.ops.services import LeaseEnd
from ganeti.ops.steps.nodes import helper_answers
from ganeti.recovery.ladder import Failed, Ladder, Look, Rung, Try, Wait, list_devices
from ganeti.rpc.calls import NodeCalls

#: Seconds that a node gets to show that it lives.
_SIGN = 5.0


def is_alive(ctx: Context, node: Node) -> bool:
    """Whether a node answers, also one that is marked offline; blocks for some seconds."""
    online = msgspec.structs.replace(node, offline=False)
    try:
        ctx.rpc.limit_time(_SIGN).call_one(online, NodeCalls.version)
    except errors.GanetiError:
        return False
    return True


@dataclass(frozen=True)
class Device:
    """Device that switches a node off, and tells whether it is off; runs on the master node."""

    rung: Rung
    #: how messages call it
    name: str
    node: Node
    #: seconds for each run
    timeout: int

    def is_on(self, ctx: Context) -> bool:
        """Raises GanetiError when the device does not say."""
        if self.rung is Rung.AGENT:
            return self._run_agent(ctx, "status") == "on"
        text = self._run_helper(ctx, OobCommand.POWER_STATUS)
        return bool(helper_answers.read(OobCommand.POWER_STATUS, text)["powered"])

    def switch_off(self, ctx: Context) -> None:
        """Raises GanetiError when the device fails."""
        if self.rung is Rung.AGENT:
            self._run_agent(ctx, "off")
        else:
            helper_answers.read(OobCommand.POWER_OFF, self._run_helper(ctx, OobCommand.POWER_OFF))

    def _run_agent(self, ctx: Context, action: str) -> str:
        call = NodeCalls.run_fence_agent
        return ctx.rpc.call_one(
            ctx.config.master, call, self.name, action, self.node.name, self.timeout
        )

    def _run_helper(self, ctx: Context, what: OobCommand) -> str:
        call = NodeCalls.run_oob
        return ctx.rpc.call_one(
            ctx.config.master, call, self.name, str(what), self.node.name, self.timeout
        )


def find_devices(ctx: Context, node: Node, timeout: int) -> list[Device]:
    """Devices that can switch the node off, in the order in which they are tried."""
    devices = list_devices(ctx.config.ndparams(node))
    return [Device(rung, name, node, timeout) for rung, name in devices.items()]


def prove(
    ctx: Context, node: Node, devices: list[Device], lease: LeaseEnd, *, confirmed: bool
) -> str:
    """Prove that the node is dead, and return the proof; waits for the end of its lease.

    Raises:
        OpExecError: nothing does; the text says what each device said.
        JobCanceled: the job was canceled while it waited.
    """
    rungs = [Rung.PERSON] if confirmed else [device.rung for device in devices]
    ladder = Ladder(rungs, lease_over=lease.over, watchdog=lease.watchdog and not confirmed)
    by_rung = {device.rung: device for device in devices}
    while True:
        step = ladder.decide(ctx.clock.monotonic())
        if isinstance(step, Wait):
            _wait(ctx, node, step.until)
        elif isinstance(step, Try):
            ladder.note_result(_switch_off(ctx, by_rung[step.rung]))
        elif isinstance(step, Look):
            ladder.note_call(answers=is_alive(ctx, node))
        elif isinstance(step, Failed):
            raise errors.OpExecError(
                f"nothing is started elsewhere, as nothing proves that node {node.name} is dead:"
                f" {'; '.join(step.reasons)}; if you have seen that it is off, repeat with"
                " --confirm"
            )
        else:
            return _describe(step.rung, by_rung)


def _wait(ctx: Context, node: Node, until: float) -> None:
    left = until - ctx.clock.monotonic()
    ctx.log(f"The lease of node {node.name} ends in {left:.0f} s")
    if ctx.job.cancel_asked.wait(max(left, 0.0)):
        raise errors.JobCanceled("it waited for the end of a lease")


def _switch_off(ctx: Context, device: Device) -> str:
    """Why the device proves nothing; empty when it says that the node is off."""
    ctx.log(f"{device.name} is to switch node {device.node.name} off")
    try:
        device.switch_off(ctx)
        if device.is_on(ctx):
            return f"{device.name} was told to switch it off, and says that it is still on"
    except errors.GanetiError as err:
        return f"{device.name}: {errors.text(err)}"
    return ""


def _describe(rung: Rung, devices: dict[Rung, Device]) -> str:
    if rung is Rung.PERSON:
        return "an administrator has confirmed that it is switched off"
    if rung is Rung.LEASE:
        return "its lease is over, and its watchdog has reset it by then"
    return f"{devices[rung].name} has switched it off, and says that it is off"


def test(ctx: Context, node: Node, devices: list[Device], *, watchdog: bool) -> list[str]:
    """Lines about all that could prove the death of a node that is on; switches nothing.

    Raises:
        OpExecError: a device fails, or says that a node that answers is off.
    """
    alive, lines, wrong = is_alive(ctx, node), [], []
    for device in devices:
        try:
            on = device.is_on(ctx)
        except errors.GanetiError as err:
            wrong.append(f"{device.name}: {errors.text(err)}")
            continue
        lines.append(f"{device.rung.value} {device.name} says that it is {'on' if on else 'off'}")
        if alive and not on:
            wrong.append(f"{device.name} says that it is off, but it answers")
    lines.append(f"watchdog: {'on' if watchdog else 'none is on'}")
    lines.append(f"the node {'answers' if alive else 'does not answer'}")
    for line in lines:
        ctx.log(f"{node.name}: {line}")
    if not (devices or watchdog):
        wrong.append("it has no fence agent, no out-of-band helper and no watchdog that is on")
    if wrong:
        raise errors.OpExecError(f"fencing of node {node.name} would fail: {'; '.join(wrong)}")
    return lines
