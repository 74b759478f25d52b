"""Messages to a webhook: an HTTPS request with a body in JSON and its signature.

The receiver computes ``HMAC-SHA256(key, timestamp + "." + body)`` and compares it with the header
``X-Ganeti-Signature``; by the timestamp it can refuse what somebody sends again later.
"""

from __future__ import annotations

import hashlib
import hmac

from ganeti import errors
from ganeti.model.notification import Notification
from ganeti.net import https

TIMESTAMP, SIGNATURE, DELIVERY = "X-Ganeti-Timestamp", "X-Ganeti-Signature", "X-Ganeti-Delivery"
#: Seconds for a connection and for each part of an answer.
TIMEOUT = 10.0


def sign(key: str, timestamp: int, body: bytes) -> str:
    """The value of the header for a body that is sent at that time (Unix time)."""
    text = str(timestamp).encode() + b"." + body
    return "sha256=" + hmac.new(key.encode(), text, hashlib.sha256).hexdigest()


def send(notification: Notification, delivery: str, body: bytes, now: float) -> None:
    """Send a body; ``delivery`` is its id, the same for each attempt. Blocks up to half a minute.

    Raises:
        RemoteError: there was no answer, or it was not one of success.
    """
    assert notification.secret_url is not None
    stamp = int(now)
    answer = https.request(
        "POST",
        notification.secret_url,
        context=https.make_context(notification.authority),
        timeout=TIMEOUT,
        body=body,
        headers={
            "Content-Type": "application/json",
            DELIVERY: delivery,
            TIMESTAMP: str(stamp),
            SIGNATURE: sign(notification.secret or "", stamp, body),
        },
    )
    if not 200 <= answer.status < 300:
        hint = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        raise errors.RemoteError(f"the webhook answers with the status {answer.status}{hint}")
