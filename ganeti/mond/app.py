"""The requests that ganeti-mond answers, as a WSGI application."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from wsgiref.types import StartResponse, WSGIEnvironment

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.mond.cluster import ClusterFacts
from ganeti.mond.collector import Collector

log = logging.getLogger(__name__)

#: Versions of the protocol.
_VERSIONS = [1]
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}

_Answer = tuple[int, bytes]


class MonitorApp:
    """Only GET; answers are JSON without a content type, errors are text."""

    def __init__(self, collectors: Mapping[str, Collector], facts: ClusterFacts) -> None:
        self._collectors = collectors
        self._facts = facts

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method = str(environ.get("REQUEST_METHOD"))
        if method == "GET":
            code, body = self._get(str(environ.get("PATH_INFO", "")))
        else:
            code, body = 405, b"only GET is possible here"
        headers = [("Content-Length", str(len(body)))]
        if code == 405:
            headers.append(("Allow", "GET"))
        start(f"{code} {_REASONS[code]}", headers)
        return [body]

    def _get(self, path: str) -> _Answer:
        match path.strip("/").split("/"):
            case [""]:
                return _json(_VERSIONS)
            case ["1"]:
                return _json(None)
            case ["1", "list", "collectors"]:
                return _json(
                    [
                        [one.name, one.category or "default", int(one.kind)]
                        for one in self._list_active()
                    ]
                )
            case ["1", "report", "all"]:
                return _json([report for one in self._list_active() if (report := _report(one))])
            case ["1", "report", category, name]:
                return self._answer_one(category, name)
        return 404, b"there is nothing at this path"

    def _list_active(self) -> list[Collector]:
        return [
            one
            for one in self._collectors.values()
            if self._facts.is_active(one.name) and one.is_useful()
        ]

    def _answer_one(self, category: str, name: str) -> _Answer:
        found = [one for one in self._list_active() if one.path == f"{category}/{name}"]
        if not found:
            return 500, b"there is no such collector on this node, or it is switched off"
        report = _report(found[0])
        if report is None:
            return 500, b"the collector has nothing to report; see the log"
        return _json(report)


def _json(value: object) -> _Answer:
    return 200, jsonio.answer_bytes(value)


def _report(collector: Collector) -> JsonObject | None:
    """The report of a collector; None when it fails, which is logged."""
    try:
        return collector.report()
    except (errors.GanetiError, OSError) as err:
        text = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
        log.warning("collector %s: %s", collector.name, text)
    except Exception:  # one collector must not spoil the others
        log.exception("collector %s failed by a bug", collector.name)
    return None
