"""An identity provider of OpenID Connect, for :mod:`https_server`; as honest as the test wants."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from https_server import Reply, Request
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from ganeti.base.clock import SYSTEM

KEY = RSAKey.generate_key(2048, {"kid": "one"}, private=True)


@dataclass
class Idp:
    """An identity provider; what it does wrong is up to the test."""

    key: Any = field(default_factory=lambda: KEY)
    published: list[Any] = field(default_factory=lambda: [KEY])
    header: dict[str, str] = field(default_factory=lambda: {"alg": "RS256", "kid": "one"})
    #: claims that are other ones than an honest provider's
    claims: dict[str, Any] = field(default_factory=dict)
    token: str | None = None
    issuer: str = ""
    url: str = ""
    #: code -> what the log-in page was asked with
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    last_code: str = ""

    def approve(self, place: str) -> dict[str, str]:
        """What the browser is sent back with after somebody has said yes."""
        parts = urllib.parse.urlsplit(place)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.url}/authorize"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_hex(4)
        self.codes[code], self.last_code = asked, code
        return {"code": code, "state": asked["state"]}

    def answer(self, request: Request) -> Reply:
        if request.path == "/.well-known/openid-configuration":
            return _json(
                {
                    "issuer": self.issuer or self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                }
            )
        if request.path == "/keys":
            return _json(KeySet(self.published).as_dict(private=False))
        if request.path.startswith("/authorize?"):
            back = urllib.parse.urlencode(self.approve(f"{self.url}{request.path}"))
            asked = dict(urllib.parse.parse_qsl(request.path.partition("?")[2]))
            return Reply(302, headers={"Location": f"{asked['redirect_uri']}?{back}"})
        return self._exchange(request)

    def _exchange(self, request: Request) -> Reply:
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        wanted = base64.b64encode(b"ganeti:s3cr%2Fet").decode()
        asked = self.codes.pop(form["code"], None)
        if asked is None or request.headers["authorization"] != f"Basic {wanted}":
            return Reply(400, b"{}")
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert asked["code_challenge"] == base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        assert asked["redirect_uri"] == form["redirect_uri"]
        now = int(SYSTEM.now())
        claims = {
            "iss": self.url,
            "aud": "ganeti",
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "preferred_username": "anna",
            "groups": ["ops"],
            **self.claims,
        }
        token = self.token or jwt.encode(
            self.header, claims, self.key, algorithms=["RS256", "ES256", "HS256"]
        )
        return _json({"access_token": "x", "id_token": token})


def _json(value: object) -> Reply:
    return Reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})
