"""Which data for cloud-init an instance gets: checks, and changes. Pure."""

from __future__ import annotations

import re

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.cloud_init import CloudInit
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.cloud_init import PASSWORD_HASH, USER_DATA, VENDOR_DATA

Request = OpInstanceCreate | OpInstanceSetParams
#: Bytes of all data of an instance: it is in the configuration, and travels at each start.
LARGEST = 256 * 1024
#: How user data and vendor data begin; cloud-init ignores anything else.
_BEGINNINGS = (
    "#cloud-config", "#!", "#include", "#cloud-boothook", "#part-handler", "## template: jinja",
    "Content-Type:", "MIME-Version:",
)  # fmt: skip
_KEY = re.compile(
    r"(ssh-[a-z0-9-]+|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9@.-]+|[a-z0-9-]+-cert-v01@openssh\.com)"
    r" [A-Za-z0-9+/]{16,}={0,3}( [^\n]*)?"
)
_HASH = re.compile(r"\$[0-9a-z]{1,8}\$[^\s:]{10,200}")


def is_asked_for(op: Request) -> bool:
    """Whether a request has any data for cloud-init."""
    given = (op.ssh_keys, op.password_hash, op.user_data, op.vendor_data, op.network_config)
    return any(value is not None for value in given)


def make(op: OpInstanceCreate, hypervisor: str) -> CloudInit | None:
    """The data of a new instance; one from an image has some in any case.

    Raises:
        OpPrereqError: what cloud-init would not take, or no way to give it to the guest.
    """
    can = HYPERVISORS.get(hypervisor).traits.seeds
    if not is_asked_for(op):
        return CloudInit() if op.image and can else None
    check_hypervisor(hypervisor)
    return _merge(CloudInit(), op)


def change(op: OpInstanceSetParams, old: CloudInit | None, hypervisor: str) -> CloudInit:
    """The data after a change, which the guest takes as new at its next start; OpPrereqError."""
    check_hypervisor(hypervisor)
    if old is None:
        return _merge(CloudInit(), op)
    changed = _merge(old, op)
    return base.replace(changed, generation=old.generation + 1)


def check_hypervisor(hypervisor: str) -> None:
    """OpPrereqError for a hypervisor whose guests get no data for cloud-init."""
    if not HYPERVISORS.get(hypervisor).traits.seeds:
        able = [name for name in HYPERVISORS.names() if HYPERVISORS.get(name).traits.seeds]
        raise errors.make_invalid_error(
            f"guests of hypervisor {hypervisor} get no data for cloud-init; only those of"
            f" {join_names(able)} do"
        )


def _merge(old: CloudInit, op: Request) -> CloudInit:
    """Merge settings; an empty value removes one."""
    values: JsonObject = {}
    if op.ssh_keys is not None:
        values["ssh_keys"] = tuple(_check_key(key) for key in op.ssh_keys)
    if op.network_config is not None:
        values["network_config"] = op.network_config or None
    private = dict(old.private)
    given = {
        USER_DATA: op.user_data,
        VENDOR_DATA: op.vendor_data,
        PASSWORD_HASH: op.password_hash,
    }
    for name, hidden in given.items():
        if hidden is None:
            continue
        text = hidden.reveal()
        if not isinstance(text, str):
            raise errors.make_invalid_error(f"{name} must be a text")
        private.pop(name, None)
        if text:
            private[name] = _check(name, text)
    found = base.replace(old, private=private, **values)
    size = sum(map(len, private.values())) + len(found.network_config or "")
    if size > LARGEST:
        raise errors.make_invalid_error(
            f"the data for cloud-init has {size} bytes; {LARGEST} are allowed. Let it fetch the"
            " rest (#include)"
        )
    return found


def _check(name: str, text: str) -> str:
    if name == PASSWORD_HASH:
        if not _HASH.fullmatch(text):
            raise errors.make_invalid_error(
                "the password must come as a hash of crypt(3), such as openssl passwd -6 makes"
            )
        return text
    if not text.startswith(_BEGINNINGS):
        raise errors.make_invalid_error(
            f"{name.replace('_', ' ')} must begin with {', '.join(_BEGINNINGS[:-1])} or"
            f" {_BEGINNINGS[-1]}; cloud-init ignores anything else"
        )
    return text


def _check_key(key: str) -> str:
    key = key.strip()
    if "PRIVATE KEY" in key:
        raise errors.make_invalid_error("that is a private SSH key; give the public one (.pub)")
    if not _KEY.fullmatch(key):
        raise errors.make_invalid_error(
            f"'{key[:40]}' is not a public SSH key; it has the form 'ssh-ed25519 AAAA... comment'"
        )
    return key
