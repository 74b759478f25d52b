"""The requests of guests, and of the node on the socket of ``ganeti-metad``."""

from __future__ import annotations

import logging

import msgspec

from ganeti import errors
from ganeti.guest_os import metadata
from ganeti.luxi import calls
from ganeti.metad import answers
from ganeti.metad.answers import Answer
from ganeti.paths import Paths
from ganeti.rpc.objects import InstanceMetadata

log = logging.getLogger(__name__)


def respond(paths: Paths, guest: str, path: str) -> Answer:
    """The answer to the guest with this address; its request cannot name another guest."""
    try:
        found = metadata.find(paths, guest)
        if found is None:
            return answers.refuse(404, "this node keeps nothing for this guest")
        return answers.read(found, path)
    except (OSError, msgspec.MsgspecError) as err:
        log.error("Metadata for %s cannot be read: %s", guest, err)
        return answers.refuse(500, "the node cannot read what it keeps for this guest")


def control(paths: Paths, message: bytes) -> bytes:
    """The answer to a message in the form of LUXI: ``Echo`` and ``UpdateConfig``."""
    try:
        return calls.encode_result(_control(paths, *calls.decode_request(message)))
    except msgspec.MsgspecError as err:
        return calls.encode_error(errors.ParameterError(f"UpdateConfig: {err}"))
    except OSError as err:
        return calls.encode_error(errors.GenericError(str(err)))
    except errors.GanetiError as err:
        return calls.encode_error(err)


def _control(paths: Paths, method: str, args: object) -> object:
    match method, args:
        case "Echo", [str(text)]:
            return text
        case "UpdateConfig", [dict(given)]:
            metadata.store(paths, msgspec.convert(given, type=InstanceMetadata))
            return None
    raise errors.ParameterError(
        f"unknown request {method[:40]!r} or wrong arguments; there are Echo with a text and"
        " UpdateConfig with an instance"
    )
