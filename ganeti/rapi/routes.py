"""The table of all routes; routing, rights, OpenAPI and the reference page follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ganeti.base import jsonio
from ganeti.rapi import (
    backups,
    cluster,
    console_routes,
    history,
    jobs,
    login,
    notifications,
    oidc_routes,
    openapi,
    parts,
    queries,
    reads,
    reinstall,
    rules,
    schemas,
    scrapes,
    waits,
    writes,
)
from ganeti.rapi.route import ANYBODY, Call, Ready, Route


@cache
def _document() -> Ready:
    return Ready(jsonio.dumps_bytes(openapi.document(ROUTES)))


def _openapi(_call: Call) -> Ready:
    return _document()


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/openapi.json",
        "This interface, as an OpenAPI document",
        _openapi,
        access=ANYBODY,
        answer=schemas.OBJECT,
    ),
    *cluster.ROUTES,
    *login.ROUTES,
    *oidc_routes.ROUTES,
    *reads.ROUTES,
    *parts.ROUTES,
    *backups.ROUTES,
    *console_routes.ROUTES,
    *jobs.ROUTES,
    *history.ROUTES,
    *waits.ROUTES,
    *rules.ROUTES,
    *notifications.ROUTES,
    *queries.ROUTES,
    *reinstall.ROUTES,
    *scrapes.ROUTES,
    *writes.ROUTES,
)


def shape(path: str) -> str:
    """A path with its variables by number, whatever they are called."""
    return "/".join(
        f"{{p{index}}}" if part.startswith("{") else part
        for index, part in enumerate(path.split("/"))
    )


def group_by_path(routes: tuple[Route, ...] = ROUTES) -> dict[str, Mapping[str, Route]]:
    """Routes by the shape of their path and by method."""
    found: dict[str, dict[str, Route]] = {}
    for route in routes:
        methods = found.setdefault(shape(route.path), {})
        if route.method in methods:
            raise ValueError(f"{route.method} {route.path} is in the table twice")
        methods[route.method] = route
    return dict(found)
