"""Records of the death of a node, and of its instances that were started elsewhere."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject
from ganeti.model.ids import NodeUuid


class Fencing(ConfigObject, frozen=True, kw_only=True):
    """The last death of a node that was proven."""

    time: Annotated[float, doc("When it was proven, in seconds since 1970")]
    proof: Annotated[str, doc("What proved it")]
    job: Annotated[int, doc("Id of the job that marked it; jobs that start instances are later")]
    over: Annotated[
        float | None,
        doc("When the proof lost its value, as the node came back; unset while it is offline"),
    ] = None


class Attempt(ConfigObject, frozen=True, kw_only=True):
    """The last attempt to start an instance elsewhere, as its node was dead."""

    time: Annotated[float, doc("When the job was submitted, in seconds since 1970")]
    source: Annotated[NodeUuid, doc("UUID of the dead node")]
    target: Annotated[NodeUuid | None, doc("UUID of the new node; unset: the job chooses it")] = (
        None
    )
    job: Annotated[int, doc("Id of the job that fails the instance over")]
    number: Annotated[int, doc("How often it was tried since the node died")] = 1
