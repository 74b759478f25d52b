"""The list of notifications."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.rapi import schemas
from ganeti.rapi.route import Call, Route


def _list(call: Call) -> list[JsonObject]:
    return call.luxi.query_notifications()


ROUTES = (
    Route(
        "GET",
        "/2/notifications",
        "Where notices of events are sent, and how that goes",
        _list,
        access=("write",),
        answer={
            "type": "array",
            "items": schemas.record(
                (
                    "name",
                    "way",
                    "target",
                    "qfilter",
                    "interval",
                    "server",
                    "sender",
                    "waiting",
                    "sent",
                    "failed",
                    "lost",
                    "last_sent",
                    "problem",
                )
            ),
        },
    ),
)
