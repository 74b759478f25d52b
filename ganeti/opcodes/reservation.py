"""Opcodes for instances that are reserved before they exist."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.scalars import NonEmpty, Number, doc

_Owner = Annotated[NonEmpty | None, doc("For whom the capacity is reserved")]
_Expires = Annotated[
    Number | None, doc("Unix time in seconds when the reservation expires; unset: never")
]


class OpReservationAdd(OpCode, tag="OP_RESERVATION_ADD", kw_only=True):
    """Reserve capacity for several instances at once: for all of them, or none."""

    rest: ClassVar[tuple[str, ...]] = ("POST /2/reservations",)
    result_type: ClassVar[str] = "[nestr]"

    instances: Annotated[
        list[OpInstanceCreate],
        doc("What to reserve; the default allocator chooses nodes where none are named"),
    ]
    iallocator: p.IAllocator = None
    opportunistic_locking: p.OpportunisticLocking = False
    owner: _Owner = None
    expires: _Expires = None


class OpReservationSetParams(OpCode, tag="OP_RESERVATION_SET_PARAMS", kw_only=True):
    """Change for whom and how long capacity is reserved; what is not given stays."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/reservations/{instance_name}/modify",)
    result_type: ClassVar[str] = "[(nestr,any)]"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    owner: Annotated[str | None, doc("For whom the capacity is reserved; empty for nobody")] = None
    expires: _Expires = None
    never_expires: Annotated[bool, doc("Keep the reservation without a limit of time")] = False
    note: Annotated[str | None, doc("What the capacity is reserved for; empty for nothing")] = None


class OpReservationExpire(OpCode, tag="OP_RESERVATION_EXPIRE", kw_only=True):
    """Remove a reservation if its time is over and it has not become an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "bool"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
