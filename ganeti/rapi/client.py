"""A client of the remote API, for programs outside of the cluster.

Names and arguments are those of the client that Ganeti has always had, so existing programs work
with it::

    client = GanetiRapiClient("cluster.example.com", username="anna", password=secret,
                              ca_file="/etc/ssl/rapi-ca.pem")
    job = client.StartupInstance("web1.example.com")
    client.Wait(job)
    for event in client.Events(kinds=["instance"]):
        print(event["object"], event["change"])

It needs no other package than the cluster itself. Without ``ca_file`` (and without a
``curl_config_fn`` that names one) the connection is encrypted but anybody may be at its other end,
as it always was.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi.client_disks import DisksClient
from ganeti.rapi.client_link import (
    CertificateError,
    Configure,
    Error,
    GanetiApiError,
    Link,
    Query,
    Settings,
)
from ganeti.rapi.client_objects import (
    INST_CREATE_REQV1,
    INST_REINSTALL_REQV1,
    NODE_EVAC_ALL,
    NODE_EVAC_PRI,
    NODE_EVAC_RES1,
    NODE_EVAC_SEC,
    NODE_MIGRATE_REQV1,
    NODE_ROLE_DRAINED,
    NODE_ROLE_MASTER,
    NODE_ROLE_MASTER_CANDIDATE,
    NODE_ROLE_OFFLINE,
    NODE_ROLE_REGULAR,
    ROOT,
    Names,
    Reason,
    dry,
    given,
)

__all__ = [
    "INST_CREATE_REQV1",
    "INST_REINSTALL_REQV1",
    "NODE_EVAC_ALL",
    "NODE_EVAC_PRI",
    "NODE_EVAC_RES1",
    "NODE_EVAC_SEC",
    "NODE_MIGRATE_REQV1",
    "NODE_ROLE_DRAINED",
    "NODE_ROLE_MASTER",
    "NODE_ROLE_MASTER_CANDIDATE",
    "NODE_ROLE_OFFLINE",
    "NODE_ROLE_REGULAR",
    "CertificateError",
    "Error",
    "EventsLost",
    "GanetiApiError",
    "GanetiRapiClient",
    "GenericCurlConfig",
]

GANETI_RAPI_PORT: Final = 5080
GANETI_RAPI_VERSION: Final = 2
REPLACE_DISK_PRI: Final = "replace_on_primary"
REPLACE_DISK_SECONDARY: Final = "replace_on_secondary"
REPLACE_DISK_CHG: Final = "replace_new_secondary"
REPLACE_DISK_AUTO: Final = "replace_auto"
JOB_STATUS_QUEUED: Final = "queued"
JOB_STATUS_WAITING: Final = "waiting"
JOB_STATUS_CANCELING: Final = "canceling"
JOB_STATUS_RUNNING: Final = "running"
JOB_STATUS_CANCELED: Final = "canceled"
JOB_STATUS_SUCCESS: Final = "success"
JOB_STATUS_ERROR: Final = "error"
JOB_STATUS_PENDING: Final = frozenset([JOB_STATUS_QUEUED, JOB_STATUS_WAITING, JOB_STATUS_CANCELING])
JOB_STATUS_FINALIZED: Final = frozenset([JOB_STATUS_CANCELED, JOB_STATUS_SUCCESS, JOB_STATUS_ERROR])
JOB_STATUS_ALL: Final = frozenset([JOB_STATUS_RUNNING]) | JOB_STATUS_PENDING | JOB_STATUS_FINALIZED

#: Seconds the server lets one request wait for the end of a job.
_LONGEST_WAIT = 60.0
#: Seconds without even a heartbeat after which a stream of events is taken for dead.
_SILENCE = 45.0
_CREATE_VERSION = 1


class EventsLost(GanetiApiError):
    """Events are missing: the client was away for too long, or the master was restarted."""


def GenericCurlConfig(
    verbose: bool = False,
    use_signal: bool = False,
    use_curl_cabundle: bool = False,
    cafile: str | None = None,
    capath: str | None = None,
    proxy: str | None = None,
    verify_hostname: bool = False,
    connect_timeout: float | None = None,
    timeout: float | None = None,
    _pycurl_version_fn: object = None,
) -> Configure:
    """A value for ``curl_config_fn``: what to trust, and time limits in seconds.

    Raises:
        Error: a directory of certificates or a proxy is wanted; this client has neither.
    """
    del verbose, use_signal, _pycurl_version_fn
    if capath or proxy:
        raise Error("This client knows no directories of certificates and no proxies")
    if cafile and use_curl_cabundle:
        raise Error("Can not use default CA bundle when CA file or path is set")

    def configure(settings: Settings) -> None:
        settings.ca_file = None if cafile is None else Path(cafile)
        settings.system = use_curl_cabundle
        settings.verify_hostname = verify_hostname
        settings.connect_timeout = connect_timeout or settings.connect_timeout
        settings.timeout = timeout or settings.timeout

    return configure


class GanetiRapiClient(DisksClient):
    """A remote API. May be used by many threads; :meth:`close` it, or use it in ``with``."""

    def __init__(
        self,
        host: str,
        port: int = GANETI_RAPI_PORT,
        username: str | None = None,
        password: str | None = None,
        logger: logging.Logger = logging.getLogger(__name__),  # noqa: B008 - as ever
        curl_config_fn: Configure | None = None,
        curl_factory: None = None,
        *,
        token: str | None = None,
        ca_file: str | Path | None = None,
        verify_hostname: bool = True,
        timeout: float = 120.0,
        clock: Clock = SYSTEM,
    ) -> None:
        """Connect with the first request.

        Args:
            curl_config_fn: from :func:`GenericCurlConfig`; no pycurl is used.
            curl_factory: must be None.
            token: instead of user and password.
            ca_file: certificates (PEM) one of which the server must prove to have.
            verify_hostname: whether, with ``ca_file``, the certificate must be for ``host``.
            timeout: seconds for one request.
            clock: for waiting.
        """
        if curl_factory is not None:
            raise Error("This client does not use pycurl, so curl_factory must be None")
        settings = Settings(timeout=timeout)
        if curl_config_fn is not None:
            curl_config_fn(settings)
        if ca_file is not None:
            settings.ca_file, settings.verify_hostname = Path(ca_file), verify_hostname
        super().__init__(
            Link(host, port, settings=settings, username=username, password=password, token=token)
        )
        self._logger = logger
        self._clock = clock
        self.username = username

    def close(self) -> None:
        """Close all connections."""
        self._link.close()

    def __enter__(self) -> GanetiRapiClient:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.close()

    # instances

    def GetInstances(self, bulk: bool = False) -> list[Any]:
        """Names of the instances, or with ``bulk`` everything about them."""
        return list(self._list("/instances", "id", bulk=bulk))

    def GetInstance(self, instance: str) -> dict[str, Any]:
        """Everything about an instance."""
        return dict(self._get(f"/instances/{instance}"))

    def GetInstanceInfo(self, instance: str, static: bool | None = None) -> int:
        """A job that collects information about an instance; ``static`` asks no node."""
        return int(self._get(f"/instances/{instance}/info", [("static", static)]))

    @staticmethod
    def InstanceAllocation(
        mode: str,
        name: str,
        disk_template: str,
        disks: Sequence[object],
        nics: Sequence[object],
        **kwargs: object,
    ) -> dict[str, Any]:
        """The body of a creation, for :meth:`InstancesMultiAlloc`."""
        for key in kwargs.keys() & {"instance_name", "os_type", "__version__"}:
            raise GanetiApiError(f"'{key}' cannot be given in this way")
        return {
            **kwargs,
            "mode": mode,
            "name": name,
            "disk_template": disk_template,
            "disks": disks,
            "nics": nics,
        }

    def InstancesMultiAlloc(
        self, instances: Sequence[dict[str, Any]], reason: Reason = None, **kwargs: Any
    ) -> int:
        """Create several instances at once."""
        query = dry(kwargs.pop("dry_run", False))
        body = {**kwargs, "instances": list(instances)}
        return int(self._change("POST", "/instances-multi-alloc", query, reason, body))

    def CreateInstance(
        self,
        mode: str,
        name: str,
        disk_template: str,
        disks: Sequence[Any],
        nics: Sequence[Any],
        reason: Reason = None,
        **kwargs: Any,
    ) -> int:
        """Create an instance; further arguments are those of OP_INSTANCE_CREATE."""
        query = dry(kwargs.pop("dry_run", False))
        body = self.InstanceAllocation(mode, name, disk_template, disks, nics, **kwargs)
        if INST_CREATE_REQV1 not in self.GetFeatures():
            raise GanetiApiError(
                "The server does not support new-style (version 1) instance creation requests"
            )
        body["__version__"] = _CREATE_VERSION
        return int(self._change("POST", "/instances", query, reason, body))

    def DeleteInstance(
        self, instance: str, dry_run: bool = False, reason: Reason = None, **kwargs: object
    ) -> int:
        """Remove an instance and its disks."""
        return int(
            self._change("DELETE", f"/instances/{instance}", dry(dry_run), reason, kwargs or None)
        )

    def ModifyInstance(self, instance: str, reason: Reason = None, **kwargs: object) -> int:
        """Change an instance; see OP_INSTANCE_SET_PARAMS."""
        return int(self._change("PUT", f"/instances/{instance}/modify", [], reason, kwargs))

    def ActivateInstanceDisks(
        self, instance: str, ignore_size: bool | None = None, reason: Reason = None
    ) -> int:
        """Make the disks of an instance available on its node."""
        query: Query = [("ignore_size", ignore_size)]
        return int(self._change("PUT", f"/instances/{instance}/activate-disks", query, reason))

    def DeactivateInstanceDisks(
        self, instance: str, reason: Reason = None, force: bool = False
    ) -> int:
        """Undo :meth:`ActivateInstanceDisks`."""
        query: Query = [("force", force)] if force else []
        return int(self._change("PUT", f"/instances/{instance}/deactivate-disks", query, reason))

    def RecreateInstanceDisks(
        self,
        instance: str,
        disks: Sequence[object] | None = None,
        nodes: Sequence[str] | None = None,
        reason: Reason = None,
        iallocator: str | None = None,
    ) -> int:
        """Recreate lost disks of an instance, empty."""
        body = given(disks=disks, nodes=nodes, iallocator=iallocator)
        return int(self._change("POST", f"/instances/{instance}/recreate-disks", [], reason, body))

    def GrowInstanceDisk(
        self,
        instance: str,
        disk: int,
        amount: int | str,
        wait_for_sync: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Grow a disk by an amount (MiB, or text with a unit)."""
        body = given(amount=amount, wait_for_sync=wait_for_sync)
        path = f"/instances/{instance}/disk/{disk}/grow"
        return int(self._change("POST", path, [], reason, body))

    def GetInstanceTags(self, instance: str) -> list[str]:
        """Tags of an instance."""
        return list(self._get(f"/instances/{instance}/tags"))

    def AddInstanceTags(
        self, instance: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Add tags to an instance."""
        return self._tags("PUT", f"/instances/{instance}", tags, dry_run, reason)

    def DeleteInstanceTags(
        self, instance: str, tags: Names, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Take tags from an instance."""
        return self._tags("DELETE", f"/instances/{instance}", tags, dry_run, reason)

    def RebootInstance(
        self,
        instance: str,
        reboot_type: str | None = None,
        ignore_secondaries: bool | None = None,
        dry_run: bool = False,
        reason: Reason = None,
        **kwargs: object,
    ) -> int:
        """Reboot an instance (``soft``, ``hard`` or ``full``)."""
        query: Query = [("type", reboot_type), ("ignore_secondaries", ignore_secondaries)]
        path = f"/instances/{instance}/reboot"
        return int(self._change("POST", path, [*query, *dry(dry_run)], reason, kwargs or None))

    def ShutdownInstance(
        self,
        instance: str,
        dry_run: bool = False,
        no_remember: bool = False,
        reason: Reason = None,
        **kwargs: object,
    ) -> int:
        """Stop an instance."""
        query = [*dry(dry_run), *_remember(no_remember)]
        path = f"/instances/{instance}/shutdown"
        return int(self._change("PUT", path, query, reason, kwargs or None))

    def StartupInstance(
        self,
        instance: str,
        dry_run: bool = False,
        no_remember: bool = False,
        reason: Reason = None,
    ) -> int:
        """Start an instance."""
        query = [*dry(dry_run), *_remember(no_remember)]
        return int(self._change("PUT", f"/instances/{instance}/startup", query, reason))

    def ReinstallInstance(
        self,
        instance: str,
        os: str | None = None,
        no_startup: bool = False,
        osparams: Mapping[str, object] | None = None,
        reason: Reason = None,
    ) -> int:
        """Reinstall an instance; everything on its first disk is lost."""
        body = given(start=not no_startup, os=os, osparams=osparams)
        return int(self._change("POST", f"/instances/{instance}/reinstall", [], reason, body))

    def ReplaceInstanceDisks(
        self,
        instance: str,
        disks: Sequence[int] | None = None,
        mode: str = REPLACE_DISK_AUTO,
        remote_node: str | None = None,
        iallocator: str | None = None,
        reason: Reason = None,
        early_release: bool | None = None,
    ) -> int:
        """Replace disks of a mirrored instance."""
        body = given(
            mode=mode,
            disks=None if disks is None else [int(disk) for disk in disks],
            remote_node=remote_node,
            iallocator=iallocator,
            early_release=early_release,
        )
        return int(self._change("POST", f"/instances/{instance}/replace-disks", [], reason, body))

    def PrepareExport(self, instance: str, mode: str, reason: Reason = None) -> int:
        """Get an export to another cluster ready."""
        path = f"/instances/{instance}/prepare-export"
        return int(self._change("PUT", path, [("mode", mode)], reason))

    def ExportInstance(
        self,
        instance: str,
        mode: str,
        destination: object,
        shutdown: bool | None = None,
        remove_instance: bool | None = None,
        x509_key_name: object = None,
        destination_x509_ca: str | None = None,
        compress: str | None = None,
        zero_free_space: bool | None = None,
        zeroing_timeout_fixed: int | None = None,
        zeroing_timeout_per_mib: float | None = None,
        reason: Reason = None,
    ) -> int:
        """Export an instance to a node, or to another cluster."""
        body = given(
            destination=destination,
            mode=mode,
            shutdown=shutdown,
            remove_instance=remove_instance,
            x509_key_name=x509_key_name,
            destination_x509_ca=destination_x509_ca,
            compress=compress,
            zero_free_space=zero_free_space,
            zeroing_timeout_fixed=zeroing_timeout_fixed,
            zeroing_timeout_per_mib=zeroing_timeout_per_mib,
        )
        return int(self._change("PUT", f"/instances/{instance}/export", [], reason, body))

    def MigrateInstance(
        self,
        instance: str,
        mode: str | None = None,
        cleanup: bool | None = None,
        target_node: str | None = None,
        reason: Reason = None,
    ) -> int:
        """Move an instance to another node while it runs."""
        body = given(mode=mode, cleanup=cleanup, target_node=target_node)
        return int(self._change("PUT", f"/instances/{instance}/migrate", [], reason, body))

    def FailoverInstance(
        self,
        instance: str,
        iallocator: str | None = None,
        ignore_consistency: bool | None = None,
        target_node: str | None = None,
        reason: Reason = None,
    ) -> int:
        """Stop an instance and start it on another node."""
        body = given(
            iallocator=iallocator, ignore_consistency=ignore_consistency, target_node=target_node
        )
        return int(self._change("PUT", f"/instances/{instance}/failover", [], reason, body))

    def RenameInstance(
        self,
        instance: str,
        new_name: str,
        ip_check: bool | None = None,
        name_check: bool | None = None,
        reason: Reason = None,
    ) -> int:
        """Rename an instance."""
        body = given(new_name=new_name, ip_check=ip_check, name_check=name_check)
        return int(self._change("PUT", f"/instances/{instance}/rename", [], reason, body))

    def GetInstanceConsole(self, instance: str) -> dict[str, Any]:
        """How to reach the console of a running instance."""
        return dict(self._get(f"/instances/{instance}/console"))

    # jobs

    def GetJobs(self, bulk: bool = False) -> list[Any]:
        """Ids of the jobs, or with ``bulk`` more about them."""
        found = self._list("/jobs", "id", bulk=bulk)
        return list(found) if bulk else [int(number) for number in found]

    def GetJobStatus(self, job_id: int | str) -> dict[str, Any]:
        """Everything about a job."""
        return dict(self._get(f"/jobs/{job_id}"))

    def WaitForJobCompletion(self, job_id: int | str, period: float = 5, retries: int = -1) -> bool:
        """Whether a job succeeds; waits up to ``retries`` times ``period`` seconds (-1: for ever).

        The server says when the job has ended. Only who may not wait there asks each ``period``.
        """
        until = None if retries == -1 else self._clock.monotonic() + max(0, retries) * period
        while True:
            left = _LONGEST_WAIT if until is None else until - self._clock.monotonic()
            seconds = max(0.0, min(left, _LONGEST_WAIT))
            status = self._wait_once(job_id, seconds, period)["status"]
            if status in JOB_STATUS_FINALIZED:
                return bool(status == JOB_STATUS_SUCCESS)
            if left <= 0:
                return False

    def Wait(self, job_id: int | str, timeout: float | None = None) -> dict[str, Any]:
        """Wait until a job has ended and return everything about it.

        After ``timeout`` seconds (None: never) it is returned as it is then.
        """
        until = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            left = _LONGEST_WAIT if until is None else max(0.0, until - self._clock.monotonic())
            job = self._wait_once(job_id, min(left, _LONGEST_WAIT))
            if job["status"] in JOB_STATUS_FINALIZED or left <= 0:
                return job

    def _wait_once(self, job_id: int | str, seconds: float, period: float = 5.0) -> dict[str, Any]:
        query: Query = [("timeout", f"{seconds:g}")]
        try:
            return dict(self._get(f"/jobs/{job_id}/wait", query))
        except GanetiApiError as err:
            if err.code != 403:
                raise
        job = self.GetJobStatus(job_id)
        if job["status"] not in JOB_STATUS_FINALIZED:
            self._clock.sleep(min(seconds, period))  # who may not write may not wait at the server
        return job

    def WaitForJobChange(
        self,
        job_id: int | str,
        fields: Sequence[str],
        prev_job_info: Sequence[object] | None,
        prev_log_serial: int | None,
    ) -> dict[str, Any] | None:
        """Wait some seconds for a change: ``{"job_info", "log_entries"}``."""
        body = {
            "fields": list(fields),
            "previous_job_info": prev_job_info,
            "previous_log_serial": prev_log_serial,
        }
        found: dict[str, Any] | None = self._link.request(
            "GET", f"{ROOT}/jobs/{job_id}/wait", None, body
        )
        return found

    def CancelJob(self, job_id: int | str, dry_run: bool = False) -> list[Any]:
        """Cancel a job that has not begun: ``[whether it worked, text]``."""
        return list(self._link.request("DELETE", f"{ROOT}/jobs/{job_id}", dry(dry_run)))

    # events

    def Events(
        self,
        kinds: Sequence[str] = (),
        objects: Sequence[str] = (),
        after: str | None = None,
        *,
        reconnect: bool = True,
    ) -> Iterator[dict[str, Any]]:
        """What happens in the cluster, as it happens; ends only with an error, or when closed.

        Each event has ``id``, ``time``, ``kind``, ``change``, ``object`` and ``data``; the first
        one has the kind ``start`` and says that nothing is missed from now on. ``after`` is the
        ``id`` of the last event that is known. A broken connection is taken up again where it
        broke, with ``reconnect`` once in a row.

        Raises:
            EventsLost: some events cannot be had any more; read the state and begin again.
        """
        query: Query = [("kind", kind) for kind in kinds] + [("object", name) for name in objects]
        failed = False
        while True:
            headers = {"Accept": "text/event-stream"}
            if after is not None:
                headers["Last-Event-ID"] = after
            try:
                for event in _parsed(self._link.lines(f"{ROOT}/events", query, headers, _SILENCE)):
                    failed, after = False, event["id"]
                    yield event
            except GanetiApiError as err:
                if isinstance(err, EventsLost) or err.code is not None or failed or not reconnect:
                    raise
                self._logger.info("events: %s; connecting again", err)
            failed = True


def _parsed(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Events of the lines of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, text = line.partition(":")
            fields[name] = text.removeprefix(" ")
            continue
        if "data" in fields:
            kind, number = fields.get("event", ""), fields.get("id", "")
            if kind == "lost":
                raise EventsLost(f"Events before {number} are missing")
            yield {"id": number, "kind": kind, **jsonio.loads(fields["data"])}
        fields.clear()


def _remember(no_remember: bool) -> Query:
    return [("no_remember", 1)] if no_remember else []
