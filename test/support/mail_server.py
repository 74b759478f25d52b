"""A real mail server in this process, with STARTTLS and a password, and the mail that it got."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from ganeti.net import certs

#: An address that does not count as this host, so that TLS is demanded.
HOST = "127.0.0.2"
USER, PASSWORD = "ganeti", "s3cr3t word"


@dataclass
class MailServer:
    """``answers`` are said to the next mails in place of taking them."""

    #: with the user
    url: str = ""
    #: certificate that verifies it, PEM
    authority: str = ""
    answers: list[str] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    #: receivers of each mail, and whether it came over TLS from the user with the password
    envelopes: list[tuple[list[str], bool, bool]] = field(default_factory=list)

    async def handle_DATA(self, _server: Any, session: Any, envelope: Envelope) -> str:
        if self.answers:
            return self.answers.pop(0)
        assert isinstance(envelope.content, bytes)
        self.mails.append(BytesParser(EmailMessage, policy=default).parsebytes(envelope.content))
        facts = (list(envelope.rcpt_tos), session.ssl is not None, bool(session.authenticated))
        self.envelopes.append(facts)
        return "250 taken"


def _check(
    _server: Any, _session: Any, _envelope: Envelope, _mechanism: str, proof: Any
) -> AuthResult:
    good = (proof.login, proof.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=good, handled=False)


class _Controller(Controller):
    """Serves on a port that the system chooses."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextlib.contextmanager
def serve(directory: Path, *, tls: bool = True) -> Iterator[MailServer]:
    """Serve ``smtp://127.0.0.2:PORT`` in the block; with TLS it demands a password."""
    credential = certs.self_signed("mail.example.com", [HOST])
    file = directory / "mail-server.pem"
    certs.write(file, credential)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    made = MailServer(authority=credential.cert.decode())
    options: dict[str, Any] = {}
    if tls:
        options = {
            "tls_context": context,
            "require_starttls": True,
            "authenticator": _check,
            "auth_required": True,
        }
    controller = _Controller(made, hostname=HOST, port=0, **options)
    controller.start()
    made.url = f"smtp://{USER}@{HOST}:{controller.port}"
    try:
        yield made
    finally:
        controller.stop()
