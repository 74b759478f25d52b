"""One instance on its way to another cluster, over the remote APIs of both.

The guest is stopped before its disks are sent, and runs in the target cluster only when all of them
have arrived. The source is removed only after that. So it never runs twice, and its disks are in
at least one of the clusters at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.rapi.client import (
    JOB_STATUS_FINALIZED,
    JOB_STATUS_SUCCESS,
    GanetiApiError,
    GanetiRapiClient,
)
from ganeti.tools.move_request import Wish, make_creation

_REASON = "move to another cluster"
_RUNNING = "up"
_TEMPORARY = errors.ErrorCode.TEMP_NORES


@dataclass(frozen=True)
class Way:
    """From where to where, and how."""

    source: GanetiRapiClient
    target: GanetiRapiClient
    wish: Wish
    compress: str = "none"
    #: whether the stopped instance stays in the source cluster
    keep: bool = False
    #: how often an allocator is asked while others hold the locks of nodes, and seconds between
    tries: int = 0
    delay: float = 0.0


class OneMove:
    """Moves one instance; call :meth:`run` once."""

    def __init__(
        self, way: Way, name: str, say: Callable[[str], None], sleep: Callable[[float], None]
    ) -> None:
        self._way = way
        self._name = name
        self._say = say
        self._sleep = sleep
        self._stopped = False

    def run(self) -> None:
        """Move it; blocks until both clusters are done.

        Raises:
            OpExecError: it is not moved, or not completely; the text says what is where.
            GanetiApiError: a cluster refuses or does not answer; nothing was changed.
        """
        source, name = self._way.source, self._name
        tags = source.GetInstanceTags(name)
        info = self._result(source, source.GetInstanceInfo(name, static=True))[name]
        running = info["config_state"] == _RUNNING
        request = make_creation(self._way.wish, info, tags, start=running)
        self._say("preparing the export")
        trust = self._result(source, source.PrepareExport(name, "remote", reason=_REASON))
        job, target = self._receive(request, trust)
        try:
            if running:
                self._say("stopping the instance")
                self._stopped = True
                self._result(source, source.ShutdownInstance(name, reason=_REASON))
            self._send(trust, target)
            self._say(f"waiting for job {job} of the target cluster")
            self._result(self._way.target, job)
        except (errors.GanetiError, GanetiApiError) as err:
            self._give_up(job, err)
        self._remove(request["name"])

    # the target

    def _receive(
        self, request: JsonObject, trust: Mapping[str, object]
    ) -> tuple[int, Mapping[str, Any]]:
        """The job that waits for the disks, and the destinations that it reports."""
        tries = self._way.tries
        while True:
            job = self._create({**request, "opportunistic_locking": tries > 0}, trust)
            self._say(f"job {job} of the target cluster creates {request['name']}")
            try:
                return job, self._wait_for_places(job)
            except errors.OpPrereqError as err:
                if tries <= 0 or _TEMPORARY not in err.args:
                    raise
            tries -= 1
            self._say(f"no place that is free now; asking again in {self._way.delay:g} s")
            self._sleep(self._way.delay)

    def _create(self, request: Mapping[str, Any], trust: Mapping[str, Any]) -> int:
        return self._way.target.CreateInstance(
            "remote-import",
            reason=_REASON,
            compress=self._way.compress,
            source_handshake=trust["handshake"],
            source_x509_ca=trust["x509_ca"],
            source_instance_name=self._name,
            **request,
        )

    def _wait_for_places(self, job: int) -> Mapping[str, Any]:
        info: list[Any] | None = None
        serial: int | None = None
        while True:
            found = self._way.target.WaitForJobChange(job, ["status"], info, serial)
            if found is None:
                continue
            info = found["job_info"]
            for number, _time, kind, entry in found["log_entries"] or ():
                serial = number
                if kind == "remote-import":
                    return dict(entry)
            if info and info[0] in JOB_STATUS_FINALIZED:
                self._result(self._way.target, job)
                raise errors.OpExecError(f"job {job} of the target cluster waited for no disks")

    # the source

    def _send(self, trust: Mapping[str, Any], target: Mapping[str, Any]) -> None:
        source = self._way.source
        self._say(f"sending {len(target['disks'])} disks")
        job = source.ExportInstance(
            self._name,
            "remote",
            target["disks"],
            shutdown=True,
            remove_instance=False,
            x509_key_name=trust["x509_key_name"],
            destination_x509_ca=target["x509_ca"],
            compress=self._way.compress,
            reason=_REASON,
        )
        self._result(source, job)

    def _remove(self, new_name: str) -> None:
        if self._way.keep:
            self._say(f"moved; {self._name} stays in the source cluster, stopped")
            return
        source = self._way.source
        try:
            self._result(source, source.DeleteInstance(self._name, reason=_REASON))
        except (errors.GanetiError, GanetiApiError) as err:
            raise errors.OpExecError(
                f"{new_name} is in the target cluster, but was not removed from the source cluster:"
                f" {errors.text(err)}; remove it there, and do not start it"
            ) from err
        self._say("moved")

    # failures

    def _give_up(self, job: int, reason: Exception) -> None:
        """End the import; the guest continues in the source cluster if it cannot run elsewhere."""
        text = errors.text(reason)
        try:
            status = self._end_import(job)
        except GanetiApiError as err:
            raise errors.OpExecError(
                f"{text}; what became of job {job} of the target cluster is not known"
                f" ({errors.text(err)}): look there before you start the instance"
            ) from reason
        if status == JOB_STATUS_SUCCESS:
            raise errors.OpExecError(
                f"{text}; nevertheless job {job} of the target cluster succeeded: check the"
                " instance there, and remove it in one of the clusters"
            ) from reason
        raise errors.OpExecError(f"{text}{self._start_again()}") from reason

    def _end_import(self, job: int) -> str:
        status = self._way.target.Wait(job, timeout=0)["status"]
        if status not in JOB_STATUS_FINALIZED:
            self._way.target.CancelJob(job)
            status = self._way.target.Wait(job)["status"]
        return str(status)

    def _start_again(self) -> str:
        """Start the instance again in the source cluster; returns a text about it."""
        if not self._stopped:
            return "; the instance stays where it is"
        source = self._way.source
        try:
            self._result(source, source.StartupInstance(self._name, reason=_REASON))
        except (errors.GanetiError, GanetiApiError) as err:
            return f"; the instance is stopped and was not started again: {errors.text(err)}"
        return "; the instance runs again where it was"

    @staticmethod
    def _result(client: GanetiRapiClient, job: int) -> Any:
        """Return the result of the last opcode of a job; blocks until the job has ended.

        Raises:
            GanetiError: the job failed, with its own error.
            OpExecError: it was canceled.
        """
        ended = client.Wait(job)
        if ended["status"] == JOB_STATUS_SUCCESS:
            return ended["opresult"][-1]
        found = [err for err in map(errors.decode, ended["opresult"]) if err is not None]
        if found:
            raise found[0]
        raise errors.OpExecError(f"job {job} was {ended['status']}")
