"""Sign and verify messages by the convention of Standard Webhooks (https://www.standardwebhooks.com). Pure.

The signed text is ``id.timestamp.body``, the signature HMAC-SHA256 in base64 with the version before it. A secret is
``whsec_`` and base64. Receivers use this module, too: it imports the standard library only.
"""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import Any

PREFIX = "whsec_"
VERSION = "v1"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"

TOLERANCE_SECONDS = 300.0
"""How old a message may be, as the convention advises: an older one may have been caught and sent again."""


class InvalidSignature(ValueError):
    """The message was not signed with the secret, or not just now. Answer 401 and do not act on it."""


def text_of(secret: bytes) -> str:
    """The secret as receivers are given it."""
    return PREFIX + b64encode(secret).decode()


def sign(secrets: Sequence[bytes], *, id: str, timestamp: int, body: bytes) -> str:
    """The header with a signature for each of ``secrets``. ``timestamp`` is in seconds since 1970."""
    return " ".join(f"{VERSION},{_signature(secret, id, str(timestamp), body)}" for secret in secrets)


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | Sequence[str],
    tolerance: float = TOLERANCE_SECONDS,
    *,
    now: float | None = None,
) -> dict[str, Any]:
    """The message in ``body``, which must be the bytes as they came, or `InvalidSignature`.

    ``secret`` is that of the webhook; several while it is replaced. ``tolerance`` is in seconds. A message that comes
    twice has the same ``webhook-id``: keep the ids that you are done with.
    """
    values = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp, given = values[ID], values[TIMESTAMP], values[SIGNATURE]
    except KeyError as error:
        raise InvalidSignature(f"the header {error.args[0]} is missing") from None
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise InvalidSignature(f"the header {TIMESTAMP} is no time")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise InvalidSignature(f"the header {TIMESTAMP} is further from now than {tolerance:g} seconds")
    secrets = [secret] if isinstance(secret, str) else secret
    expected = [_signature(_bytes_of(text), id, timestamp, body).encode() for text in secrets]
    for signature in given.split():
        version, _, value = signature.partition(",")
        # All are compared, and each in constant time.
        matches = [hmac.compare_digest(value.encode(), own) for own in expected]
        if version == VERSION and any(matches):
            return _message(body)
    raise InvalidSignature("no signature fits: another secret, or the body is not as it was sent")


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise InvalidSignature("the body is no JSON object")
    return message


def _signature(secret: bytes, id: str, timestamp: str, body: bytes) -> str:
    signed = f"{id}.{timestamp}.".encode() + body
    return b64encode(hmac.digest(secret, signed, "sha256")).decode()


def _bytes_of(text: str) -> bytes:
    try:
        return b64decode(text.removeprefix(PREFIX), validate=True)
    except (Base64Error, ValueError):
        # Without the text, which is a secret.
        raise ValueError(f"secret: {PREFIX} and base64 is required") from None
