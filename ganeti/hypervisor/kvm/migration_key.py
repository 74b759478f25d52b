"""The key by which both ends of a migration know each other, made for this one migration."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.kvm import uids
from ganeti.hypervisor.kvm.runtime import Runtime, Store

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Name of both ends; it has no meaning beside the key.
_USER = "ganeti"
#: The group ffdhe2048 (RFC 7919), which is not a secret: without it, QEMU 7 searches a group of its
#: own for each target, while all of its threads are stopped (0.2 to 2.4 s).
_DH_PARAMETERS = """\
-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
"""


def find(store: Store, runtime: Runtime) -> str:
    """The key of a move that was announced, or a new one."""
    with contextlib.suppress(FileNotFoundError, IndexError):
        return _file(store, runtime).read_text(encoding="ascii").split(":")[1].strip()
    key = secrets.token_hex(32)
    write(store, runtime, key)
    return key


def check_announced(store: Store, runtime: Runtime) -> None:
    """Refuse (HypervisorError) a move whose target has no key to know the sender by."""
    if not _file(store, runtime).exists():
        raise errors.HypervisorError(
            f"nobody awaits instance {runtime.instance.name}: it has to be announced to its target"
            " first"
        )


def write(store: Store, runtime: Runtime, key: str) -> None:
    """Put the key where QEMU of the guest may read it, and nobody else."""
    path = _file(store, runtime)
    files.ensure_dir(path.parent.parent)
    files.ensure_dir(path.parent, 0o700)
    group = path.parent / "dh-params.pem"
    files.write_atomic(path, f"{_USER}:{key}\n", mode=0o600, fsync=False)
    files.write_atomic(group, _DH_PARAMETERS, mode=0o600, fsync=False)
    if runtime.user:
        uid = uids.uid_of(runtime.user)
        for owned in (path.parent, path, group):
            os.chown(owned, uid, -1)


def drop(store: Store, runtime: Runtime) -> None:
    """Remove the key; idempotent."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(_file(store, runtime).parent)


def load(qmp: Qmp, store: Store, runtime: Runtime, end: str, name: str) -> None:
    """Make the key an object of QEMU with that name, for the ``client`` or the ``server`` end."""
    with contextlib.suppress(errors.HypervisorError):
        # That of an earlier attempt.
        qmp.command("object-del", {"id": name})
    directory = "/key" if runtime.params.use_chroot else str(_file(store, runtime).parent)
    arguments = {"qom-type": "tls-creds-psk", "id": name, "endpoint": end, "dir": directory}
    if end == "client":
        arguments["username"] = _USER
    qmp.command("object-add", arguments)


def _file(store: Store, runtime: Runtime) -> Path:
    name = runtime.instance.name
    directory = store.chroot(name) / "key" if runtime.params.use_chroot else store.key_dir(name)
    return directory / "keys.psk"
