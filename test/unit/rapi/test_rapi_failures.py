"""Bodies of errors, as clients know them."""

from __future__ import annotations

from http import HTTPStatus
from types import SimpleNamespace

import pytest

from ganeti import errors
from ganeti.base import jsonio
from ganeti.rapi import failures
from ganeti.rapi.client_link import _make_error
from ganeti.rapi.queries import _put

TEXT = "There is no instance 'web9'"


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 409, 412, 413, 415, 429, 500, 501, 502, 503]
)
def test_the_text_is_in_one_of_two_places(status: int) -> None:
    raw = failures.body(status, TEXT)
    body = jsonio.loads(raw)
    assert body["code"] == status
    phrase = HTTPStatus(status).phrase
    if status in (400, 500, 502, 503):
        assert body["message"] == TEXT
        assert body["explain"] != TEXT
    else:
        assert (body["message"], body["explain"]) == (phrase, TEXT)
    response = SimpleNamespace(status=status, body=raw)
    assert str(_make_error(response)) == f"HTTP {status}: {TEXT}"


def test_a_missing_object_is_not_found() -> None:
    err = errors.OpPrereqError(TEXT, errors.ErrorCode.NOENT)
    body = jsonio.loads(failures.body(failures.status_of(err), failures.text_of(err)))
    assert body == {"code": 404, "message": "Not Found", "explain": body["explain"]}
    assert TEXT in body["explain"]


def put(**body: object) -> object:
    luxi = SimpleNamespace(fetch=lambda *args: jsonio.dumps_bytes(args[-1]))
    return _put(
        SimpleNamespace(  # type: ignore[arg-type]
            path={"resource": "node"}, query={}, body={"fields": ["name"], **body}, luxi=luxi
        )
    ).data


def test_a_filter_may_be_given_under_both_names() -> None:
    mine = ["==", "name", "a"]
    assert put(filter=mine) == put(qfilter=mine) == put(filter=mine, qfilter=mine)
    assert put(filter=None, qfilter=None) == b"null"
    for other in (None, ["==", "name", "b"]):
        with pytest.raises(failures.Refused, match="differ") as refused:
            put(filter=other, qfilter=mine)
        assert refused.value.status == 400
