"""The role of the master in an etcd cluster: two keys, a lease, and compare-and-swap.

``/ganeti/<UUID of the cluster>/term`` has the highest term and who claimed it, and stays.
``/ganeti/<UUID of the cluster>/master`` has the same while that node has the role, and ends with
the lease. Both are texts such as ``7 node1.example.com``.

A renewal begins a new lease and moves the key to it. The keep-alive of etcd would not do: a leader
of etcd that was frozen and replaced still answers it, although the lease ends. What is written goes
through a majority of the members.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import Deadline
from ganeti.model.config import Config
from ganeti.net.etcd import Etcd, Item, LeaseGoneError
from ganeti.net.etcd_settings import read_settings
from ganeti.recovery.role import Claim, Record, read_claim

log = logging.getLogger(__name__)


def list_expected(config: Config) -> tuple[str, str]:
    """The key that says who is the master, and who that is."""
    return _name_key(config.cluster.uuid, "master"), config.master.name


def _name_key(cluster: str, what: str) -> str:
    return f"/ganeti/{cluster}/{what}"


class EtcdRole:
    """Implements :class:`~ganeti.recovery.role.RoleStore`. Thread-safe.

    The file with the settings is read again when it has changed.
    """

    def __init__(self, settings: Path, cluster: str) -> None:
        self._path = settings
        self._term = _name_key(cluster, "term")
        self._master = _name_key(cluster, "master")
        self._lock = threading.Lock()
        self._etcd: Etcd | None = None
        self._stamp: tuple[int, int, int] | None = None

    @property
    def name(self) -> str:
        return "etcd"

    def read(self, end: Deadline) -> Record:
        return self._make_record(self._connect().read([self._term, self._master], end))

    def claim(
        self, seen: Record, claim: Claim, seconds: int, end: Deadline, *, force: bool = False
    ) -> int | None:
        conditions = {self._term: _item(seen.last)}
        if not force:
            conditions[self._master] = _item(seen.holder)
        values = {self._term: str(claim), self._master: str(claim)}
        return self._write(conditions, values, seconds, end)

    def renew(self, claim: Claim, seconds: int, end: Deadline) -> int | None:
        text = str(claim)
        return self._write({self._master: Item(text)}, {self._master: text}, seconds, end)

    def release(self, claim: Claim, end: Deadline) -> None:
        found = self._connect().read([self._master], end)[self._master]
        if found.value == str(claim) and found.lease:
            self._connect().revoke(found.lease, end)

    def close(self) -> None:
        with self._lock:
            etcd, self._etcd, self._stamp = self._etcd, None, None
        if etcd is not None:
            etcd.close()

    def _make_record(self, items: dict[str, Item]) -> Record:
        found = {key: read_claim(item.value) for key, item in items.items()}
        for key, item in items.items():
            if item.value and found[key] is None:
                raise errors.RemoteError(
                    f"key {key} of etcd is {item.value[:60]!r}, not a term and a node name"
                )
        return Record(found[self._term], found[self._master])

    def _write(
        self, conditions: dict[str, Item], values: dict[str, str], seconds: int, end: Deadline
    ) -> int | None:
        """Set values with a new lease for the role; its length, None if something has changed."""
        etcd = self._connect()
        lease, granted = etcd.grant(seconds, end)
        try:
            done, now = etcd.change(
                conditions, values, end, lease={self._master: lease}, reads=[self._master]
            )
        except LeaseGoneError as err:
            raise errors.RemoteError(f"the new lease ended before it was used: {err}") from err
        # It may have been set by a request whose answer was lost.
        return granted if done or now[self._master].lease == lease else None

    def _connect(self) -> Etcd:
        """The client for the settings of this moment; the last good ones, if the new ones are bad.

        Raises:
            RemoteError: there are none that can be used.
        """
        with self._lock:
            stamp = files.find_stamp(self._path)
            if self._etcd is not None and stamp == self._stamp:
                return self._etcd
            self._stamp = stamp
            try:
                fresh = Etcd(read_settings(self._path))
            except (errors.ParameterError, errors.X509CertError) as err:
                if self._etcd is None:
                    raise errors.RemoteError(errors.text(err)) from err
                log.error("etcd is reached as before: %s", errors.text(err))
                return self._etcd
            old, self._etcd = self._etcd, fresh
        if old is not None:
            old.close()
        return fresh


def _item(claim: Claim | None) -> Item:
    return Item() if claim is None else Item(str(claim))
