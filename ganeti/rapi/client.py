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
from pathlib import Path
from typing import Final

from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi.client_disks import DisksClient
from ganeti.rapi.client_instances import (
    REPLACE_DISK_AUTO,
    REPLACE_DISK_CHG,
    REPLACE_DISK_PRI,
    REPLACE_DISK_SECONDARY,
    InstancesClient,
)
from ganeti.rapi.client_jobs import (
    JOB_STATUS_ALL,
    JOB_STATUS_CANCELED,
    JOB_STATUS_CANCELING,
    JOB_STATUS_ERROR,
    JOB_STATUS_FINALIZED,
    JOB_STATUS_PENDING,
    JOB_STATUS_QUEUED,
    JOB_STATUS_RUNNING,
    JOB_STATUS_SUCCESS,
    JOB_STATUS_WAITING,
    EventsLost,
    JobsClient,
)
from ganeti.rapi.client_link import (
    CertificateError,
    Configure,
    Error,
    GanetiApiError,
    Link,
    Settings,
)
from ganeti.rapi.client_nodes import (
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
    NodesClient,
)
from ganeti.rapi.client_objects import INST_CREATE_REQV1, INST_REINSTALL_REQV1

__all__ = [
    "GANETI_RAPI_PORT",
    "GANETI_RAPI_VERSION",
    "INST_CREATE_REQV1",
    "INST_REINSTALL_REQV1",
    "JOB_STATUS_ALL",
    "JOB_STATUS_CANCELED",
    "JOB_STATUS_CANCELING",
    "JOB_STATUS_ERROR",
    "JOB_STATUS_FINALIZED",
    "JOB_STATUS_PENDING",
    "JOB_STATUS_QUEUED",
    "JOB_STATUS_RUNNING",
    "JOB_STATUS_SUCCESS",
    "JOB_STATUS_WAITING",
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
    "REPLACE_DISK_AUTO",
    "REPLACE_DISK_CHG",
    "REPLACE_DISK_PRI",
    "REPLACE_DISK_SECONDARY",
    "CertificateError",
    "Error",
    "EventsLost",
    "GanetiApiError",
    "GanetiRapiClient",
    "GenericCurlConfig",
]

GANETI_RAPI_PORT: Final = 5080
GANETI_RAPI_VERSION: Final = 2


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
        raise Error("This client supports neither a directory of certificates nor a proxy")
    if cafile and use_curl_cabundle:
        raise Error("Can not use default CA bundle when CA file or path is set")

    def configure(settings: Settings) -> None:
        settings.ca_file = None if cafile is None else Path(cafile)
        settings.system = use_curl_cabundle
        settings.verify_hostname = verify_hostname
        settings.connect_timeout = connect_timeout or settings.connect_timeout
        settings.timeout = timeout or settings.timeout

    return configure


class GanetiRapiClient(JobsClient, NodesClient, InstancesClient, DisksClient):
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
        link = Link(
            host, port, settings=settings, username=username, password=password, token=token
        )
        super().__init__(link, logger, clock)
        self.username = username

    def close(self) -> None:
        """Close all connections."""
        self._link.close()

    def __enter__(self) -> GanetiRapiClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
