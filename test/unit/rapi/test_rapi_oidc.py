"""Log-in by OpenID Connect against a provider over real HTTPS, honest and hostile."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from https_server import Reply, Request, Server, serve
from identity_provider import KEY, Idp
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi import oidc, oidc_tokens
from ganeti.rapi.login_settings import OidcSettings
from ganeti.rapi.oidc import Providers, Rejected

HERE = "192.0.2.1"
OTHER = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
CURVE = ECKey.generate_key("P-256", {"kid": "two"}, private=True)


@dataclass
class SetClock(Clock):
    moment: float

    def monotonic(self) -> float:
        return self.moment

    def advance(self, seconds: float) -> None:
        self.moment += seconds


@dataclass
class Desk:
    idp: Idp
    server: Server
    providers: Providers
    settings: dict[str, OidcSettings]

    def log_in(self, **changes: str) -> Any:
        """The identity after a whole log-in; ``changes`` are made to the answer."""
        place, browser = self.providers.begin("corp", HERE)
        answer = {**self.idp.approve(place), **changes}
        return self.providers.identify(self.providers.finish("corp", answer, browser))

    def refuse(self, **changes: str) -> str:
        with pytest.raises(Rejected) as caught:
            self.log_in(**changes)
        return f"{caught.value.code}: {caught.value}"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    idp = Idp()
    with serve(tmp_path, lambda request: idp.answer(request)) as server:
        idp.url = server.url
        (tmp_path / "ca.pem").write_text(server.authority)
        made = OidcSettings(
            issuer=server.url,
            client_id="ganeti",
            client_secret="s3cr/et",
            redirect_uri="https://cluster.example.com/2/oidc/corp/callback",
            ca_file=str(tmp_path / "ca.pem"),
            groups={"ops": "@operator,-instance.console", "admins": "@admin"},
        )
        settings = {"corp": made}
        yield Desk(idp, server, Providers(lambda: settings), settings)


def test_an_honest_log_in_has_the_rights_of_the_groups(desk: Desk) -> None:
    anna = desk.log_in()
    assert anna.name == "corp:anna"
    assert {"read", "-instance.console"} <= anna.permissions
    desk.idp.claims = {"groups": ["admins", "unknown"], "aud": ["ganeti"]}
    assert desk.log_in().permissions == {"write"}
    assert [request.path for request in desk.server.requests].count("/keys") == 1


def test_rights_follow_the_settings_and_end_with_the_provider(desk: Desk) -> None:
    place, browser = desk.providers.begin("corp", HERE)
    back = desk.providers.finish("corp", desk.idp.approve(place), browser)
    fields = {name: getattr(desk.settings["corp"], name) for name in OidcSettings.__struct_fields__}
    desk.settings["corp"] = OidcSettings(**{**fields, "groups": {"*": "read"}})
    assert desk.providers.identify(back).permissions == {"read"}
    desk.settings["corp"] = OidcSettings(**{**fields, "groups": {"admins": "write"}})
    assert desk.providers.identify(back) is None
    desk.settings.clear()
    assert desk.providers.identify(back) is None


def hostile(alg: str) -> str:
    """A token without a signature, or with one by a key that everybody has."""
    part = [
        base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode()
        for p in ({"alg": alg}, {"sub": "1"})
    ]
    return ".".join([*part, ""])


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "another"}, "audience"),
        ({"aud": ["ganeti", "another"]}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"nonce": "replayed"}, "another log-in"),
        ({"exp": 1000}, "expired"),
        ({"exp": "soon"}, "no exp"),
        ({"iat": 1000}, "clocks"),
        ({"iat": 9_999_999_999}, "clocks"),
        ({"nbf": 9_999_999_999}, "not valid yet"),
        ({"sub": ""}, "nobody"),
        ({"preferred_username": "anna\nroot"}, "preferred_username"),
        ({"preferred_username": ["anna"]}, "preferred_username"),
        ({"preferred_username": "token:ci"}, "preferred_username"),
    ],
)
def test_claims_that_are_not_for_this_log_in_are_refused(
    desk: Desk, claims: dict[str, Any], said: str
) -> None:
    desk.idp.claims = claims
    refused = desk.refuse()
    assert refused.startswith("proof: ")
    assert said in refused


def test_clocks_may_differ_by_a_minute(desk: Desk) -> None:
    now = int(SYSTEM.now())
    desk.idp.claims = {"iat": now + 50, "exp": now - 50}
    assert desk.log_in().name == "corp:anna"


def test_signatures_of_others_are_refused(desk: Desk) -> None:
    desk.idp.key = OTHER
    assert "signature" in desk.refuse()
    desk.idp.token = hostile("none")
    assert "signature" in desk.refuse()
    desk.idp.token = "x" * 100_000
    assert desk.refuse().startswith("proof: ")


def test_the_public_key_is_no_shared_secret(desk: Desk) -> None:
    desk.idp.key = OctKey.import_key(KEY.as_pem(private=False).hex())
    desk.idp.header = {"alg": "HS256", "kid": "one"}
    assert "signature" in desk.refuse()


def test_new_keys_are_fetched_once_a_minute(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.log_in()
    desk.idp.key, desk.idp.header = CURVE, {"alg": "ES256", "kid": "two"}
    desk.idp.published = [KEY, CURVE]
    assert desk.refuse().startswith("proof: ")
    monkeypatch.setattr(oidc, "NEW_KEYS", 0.0)
    assert desk.log_in().name == "corp:anna"


def test_a_state_counts_once_for_one_browser_and_one_provider(desk: Desk) -> None:
    place, browser = desk.providers.begin("corp", HERE)
    assert len(browser) == 43  # 256 bits
    answer = desk.idp.approve(place)
    assert desk.providers.finish("corp", answer, browser)
    with pytest.raises(Rejected, match="over") as caught:
        desk.providers.finish("corp", answer, browser)
    assert caught.value.code == "expired"
    place, browser = desk.providers.begin("corp", HERE)
    with pytest.raises(Rejected, match="another browser"):
        desk.providers.finish("corp", desk.idp.approve(place), "other")
    place, browser = desk.providers.begin("corp", HERE)
    with pytest.raises(Rejected):
        desk.providers.finish("other", desk.idp.approve(place), browser)
    assert desk.refuse(state="guessed").startswith("expired: ")


def test_a_code_counts_once(desk: Desk) -> None:
    place, browser = desk.providers.begin("corp", HERE)
    first = desk.idp.approve(place)
    assert desk.providers.finish("corp", first, browser)
    assert desk.refuse(code=first["code"]).startswith("refused: ")


def test_what_the_provider_refuses_and_mixes_up_is_no_log_in(desk: Desk) -> None:
    assert desk.refuse(error="access_denied").startswith("refused: ")
    assert desk.refuse(iss="https://evil.example.com").startswith("proof: ")
    desk.idp.claims = {"groups": ["guests"]}
    assert desk.refuse().startswith("groups: ")
    desk.idp.claims = {"groups": "ops"}
    assert desk.refuse().startswith("groups: ")


def test_a_provider_that_says_it_is_another_one_is_not_used(desk: Desk) -> None:
    desk.idp.issuer = "https://evil.example.com"
    with pytest.raises(Rejected) as caught:
        desk.providers.begin("corp", HERE)
    assert caught.value.code == "unreachable"


def test_a_provider_without_a_good_certificate_is_not_used(desk: Desk) -> None:
    fields = {name: getattr(desk.settings["corp"], name) for name in OidcSettings.__struct_fields__}
    desk.settings["corp"] = OidcSettings(**{**fields, "ca_file": None})
    with pytest.raises(Rejected, match="not accepted"):
        desk.providers.begin("corp", HERE)
    assert desk.server.requests == []


def test_log_ins_that_are_never_finished_are_bounded(desk: Desk) -> None:
    for _ in range(oidc.MOST_OF_ADDRESS):
        desk.providers.begin("corp", HERE)
    with pytest.raises(errors.ThrottledError):
        desk.providers.begin("corp", HERE)
    assert desk.providers.begin("corp", "192.0.2.2")


@pytest.mark.parametrize(
    ("exp", "iat", "good"),
    [
        (940, 990, True),
        (939, 990, False),
        (1300, 1060, True),
        (1300, 1061, False),
        (1300, 400, True),
        (1300, 399, False),
    ],
)
def test_the_bounds_of_times(exp: int, iat: int, good: bool) -> None:
    """Now is 1000; clocks may differ by a minute, and a token is at most ten minutes old."""
    settings = OidcSettings(
        issuer="i", client_id="c", client_secret="s", redirect_uri="r", groups={}
    )
    claims = {"iss": "i", "aud": "c", "sub": "1", "nonce": "n", "exp": exp, "iat": iat}
    token = jwt.encode({"alg": "ES256", "kid": "two"}, claims, CURVE)
    keys = oidc_tokens.read_keys(KeySet([CURVE]).as_dict(private=False))
    if good:
        assert oidc_tokens.verify(token, keys, settings, "n", 1000.0)["sub"] == "1"
        return
    with pytest.raises(errors.AuthenticationError):
        oidc_tokens.verify(token, keys, settings, "n", 1000.0)


@pytest.mark.parametrize("token", [None, 7, "", "x" * 40_000])
def test_what_is_not_a_token_is_refused(token: object) -> None:
    settings = OidcSettings(
        issuer="i", client_id="c", client_secret="s", redirect_uri="r", groups={}
    )
    with pytest.raises(errors.AuthenticationError):
        oidc_tokens.verify(token, KeySet([CURVE]), settings, "n", 1000.0)


@pytest.mark.parametrize("value", [None, [], {}, {"keys": 7}, {"keys": [{"kty": "nope"}]}])
def test_what_are_not_keys_is_refused(value: object) -> None:
    with pytest.raises(errors.AuthenticationError):
        oidc_tokens.verify("a.b.c", oidc_tokens.read_keys(value), None, "n", 0.0)  # type: ignore[arg-type]


def test_the_log_in_page_lists_providers_by_name(desk: Desk) -> None:
    fields = {name: getattr(desk.settings["corp"], name) for name in OidcSettings.__struct_fields__}
    desk.settings["alpha"] = OidcSettings(**{**fields, "title": "Alpha Inc"})
    assert desk.providers.list_methods() == [
        {"name": "oidc", "title": "Alpha Inc", "url": "/2/oidc/alpha/login"},
        {"name": "oidc", "title": "corp", "url": "/2/oidc/corp/login"},
    ]


def _attempt(address: str, begun: float) -> oidc.Attempt:
    settings = OidcSettings(
        issuer="i", client_id="c", client_secret="s", redirect_uri="r", groups={}
    )
    cookie = hashlib.sha256(b"cookie").digest()
    return oidc.Attempt("corp", settings, address, begun, "a nonce", "a verifier", cookie)


def test_an_attempt_lives_for_ten_minutes_and_hides_its_secrets() -> None:
    clock = SetClock(1000.0)
    attempts = oidc.Attempts(clock)
    made = _attempt(HERE, clock.monotonic())
    states = [attempts.add(made) for _ in range(2)]
    assert all(len(state) == 43 for state in states)
    shown = repr(made)
    assert not any(secret in shown for secret in ("nonce", "verifier", "browser"))
    clock.advance(600)
    assert attempts.take(states[0], "corp", "cookie") is made
    clock.advance(0.5)
    with pytest.raises(Rejected, match="over"):
        attempts.take(states[1], "corp", "cookie")


def test_attempts_of_all_addresses_are_bounded_until_they_are_over() -> None:
    clock = SetClock(1000.0)
    attempts = oidc.Attempts(clock)
    for number in range(2000):
        attempts.add(_attempt(f"192.0.2.{number // 50}", clock.monotonic()))
    with pytest.raises(errors.ThrottledError) as caught:
        attempts.add(_attempt("198.51.100.1", clock.monotonic()))
    assert caught.value.args[1] == 60
    clock.advance(600)
    assert attempts.add(_attempt("198.51.100.1", clock.monotonic()))


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "refused"),
        (401, "refused"),
        (403, "refused"),
        (404, "unreachable"),
        (500, "unreachable"),
    ],
)
def test_how_the_provider_refuses_the_code(desk: Desk, status: int, code: str) -> None:
    honest = desk.idp.answer
    place, browser = desk.providers.begin("corp", HERE)
    desk.idp.answer = lambda asked: (
        Reply(status, b"{}") if asked.path == "/token" else honest(asked)
    )
    with pytest.raises(Rejected) as caught:
        desk.providers.finish("corp", desk.idp.approve(place), browser)
    assert caught.value.code == code


def test_a_slow_provider_takes_four_places_and_no_more(desk: Desk) -> None:
    honest, begun, go = desk.idp.answer, threading.Semaphore(0), threading.Event()

    def wait(asked: Request) -> Reply:
        begun.release()
        go.wait(20)
        return honest(asked)

    desk.idp.answer = wait
    waiting = [threading.Thread(target=desk.providers.begin, args=("corp", HERE)) for _ in range(4)]
    for thread in waiting:
        thread.start()
    for _ in waiting:
        assert begun.acquire(timeout=4)
    with pytest.raises(Rejected, match="Too many log-ins wait"):
        desk.providers.begin("corp", HERE)
    go.set()
    for thread in waiting:
        thread.join()
