"""Guests that another software of this family started: its record of one, read as ours. Pure.

Ganeti 2.16 to 3.1 writes ``conf/<name>.runtime`` too, with other content: a JSON list of QEMU's
arguments, NICs, hypervisor parameters and, from 2.1x on, disks. Process, control socket, serial
socket, pid file and taps have the same names as ours, so such a guest continues as it is. What it
cannot have before it is restarted: QEMU keeps no journal of it, and its devices have other names.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm.accel import Accelerator
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.runtime import Card, Runtime
from ganeti.rpc.objects import NodeInstance

_RENAMED = {("disk_discard", "default"): "ignore"}


class ForeignRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of the other software about a guest that it started."""

    #: with numbers where it was not careful; without disks and NICs
    argv: tuple[str | int, ...]
    #: as its configuration has them
    nics: tuple[JsonObject, ...] = ()
    hvparams: JsonObject = {}
    #: disk, path of the link to it, address that QEMU opens by itself
    disks: tuple[tuple[JsonObject, str, str | None], ...] = ()


def is_ours(value: object) -> bool:
    """Whether the content of a runtime file is of this software."""
    return isinstance(value, dict)


def read(text: str | bytes) -> ForeignRecord:
    """The record in a runtime file of the other software.

    Raises:
        ParseError: it is damaged, or of a form that no such version writes.
    """
    value = jsonio.loads(text)
    names = ("argv", "nics", "hvparams", "disks")
    if not isinstance(value, list) or not 3 <= len(value) <= len(names):
        raise errors.ParseError("it is not a list of arguments, NICs, parameters and disks")
    try:
        return typed.convert(dict(zip(names, value)), ForeignRecord)
    except msgspec.ValidationError as err:
        raise errors.ParseError(str(err)) from err


def adopt(
    record: ForeignRecord,
    argv: Sequence[str],
    instance: NodeInstance,
    taps: Mapping[int, str],
    *,
    started: float,
    blocks: Sequence[str] = (),
) -> Runtime:
    """Our record of a guest that runs.

    ``argv`` is the command line of its process, ``instance`` what the configuration says of it
    now, ``taps`` the network interfaces by the index of their NIC, ``started`` seconds since
    1970, ``blocks`` those paths of disks that are block devices.

    Raises:
        HypervisorError: the record does not fit the configuration; the text says what differs.
    """
    memory = _number(argv, "-m", instance.backend("maxmem", 128))
    vcpus = _number(argv, "-smp", instance.backend("vcpus", 1))
    known = {nic.uuid: nic for nic in instance.nics}
    cards, nics = [], []
    for index, values in enumerate(record.nics):
        uuid = str(values.get("uuid"))
        nic = known.get(uuid)
        if nic is None:
            raise errors.HypervisorError(
                f"NIC {index} of the running guest ({values.get('mac')}) is not in the"
                " configuration; restart the instance first"
            )
        params = {**nic.nicparams, **_texts(values.get("nicparams"))}
        nics.append(msgspec.structs.replace(nic, mac=str(values.get("mac")), nicparams=params))
        cards.append(
            Card(
                uuid=uuid,
                tap=taps.get(index),
                mode=str(params.get("mode", "")),
                link=str(params.get("link") or ""),
            )
        )
    backend = {**instance.beparams, "maxmem": memory, "vcpus": vcpus}
    hvparams = {**instance.hvparams, **translate(record.hvparams)}
    return Runtime(
        software="Ganeti",
        instance=msgspec.structs.replace(
            instance, hvparams=hvparams, beparams=backend, nics=tuple(nics), osparams={}
        ),
        argv=tuple(argv),
        accelerator=_accelerator(argv),
        cards=tuple(cards),
        started=started,
        memory=memory,
        drives=_drives(record, instance, blocks),
        user=value_of(argv, "-runas") or "",
    )


def translate(hvparams: Mapping[str, object]) -> JsonObject:
    """Parameters of the other software in our words; what we do not have is left out."""
    kinds = {field.name: field.type for field in typed.fields(KvmParams)}
    found = {}
    for name, value in hvparams.items():
        new = _RENAMED.get((name, value), value) if isinstance(value, str) else value
        if name not in kinds:
            continue
        try:
            found[name] = typed.convert(new, kinds[name])
        except msgspec.ValidationError:
            # It matters for the next start only, which takes that of the configuration.
            continue
    return found


def value_of(argv: Sequence[str], option: str) -> str | None:
    """The value of an option of QEMU; None without it."""
    return next((value for name, value in itertools.pairwise(argv) if name == option), None)


def _number(argv: Sequence[str], option: str, default: int) -> int:
    """The first number of a value, as in ``2,maxcpus=4`` or ``512``."""
    word = (value_of(argv, option) or "").partition(",")[0].removeprefix("size=")
    return int(word) if word.isdigit() else default


def _accelerator(argv: Sequence[str]) -> Accelerator:
    machine = value_of(argv, "-machine") or value_of(argv, "-M") or ""
    named = value_of(argv, "-accel") or ""
    is_kvm = "-enable-kvm" in argv or "accel=kvm" in machine or named.startswith("kvm")
    return "kvm" if is_kvm else "tcg"


def _drives(
    record: ForeignRecord, instance: NodeInstance, blocks: Sequence[str]
) -> tuple[Drive, ...]:
    known = {disk.uuid: disk for disk in instance.disks_info}
    found = []
    for index, (values, path, uri) in enumerate(record.disks):
        disk = known.get(values.get("uuid", ""))
        if disk is None:
            raise errors.HypervisorError(
                f"disk {index} of the running guest ({values.get('uuid')}) is not in the"
                " configuration; restart the instance first"
            )
        found.append(
            Drive(
                uuid=disk.uuid,
                template=disk.dev_type,
                mode=disk.mode,
                path="" if uri else path,
                block=path in blocks,
                uri=uri or None,
            )
        )
    return tuple(found)


def _texts(values: object) -> JsonObject:
    if not isinstance(values, dict):
        return {}
    return {key: value for key, value in values.items() if isinstance(value, str)}
