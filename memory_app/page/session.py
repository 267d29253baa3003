"""Sessions of the page: a key that was shown once becomes a signed cookie, which names the key and when it ends.

The cookie never holds the key. It is worth something only as long as the key itself is: each request looks the key up
again.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_app.settings import Settings

SESSION, FORM = b"memory page session", b"memory page form"
"""What is signed, so that no signature stands for another thing."""

NONCE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Session:
    """Who works with the page: a key of a tenant, until an instant (seconds since 1970). Key 0 is who needs none."""

    tenant_id: int
    key_id: int
    ends_at: int
    nonce: str

    def is_over(self, now: datetime) -> bool:
        return now.timestamp() >= self.ends_at

    def is_half_over(self, now: datetime, life: timedelta) -> bool:
        """Whether it is time to give its holder a new one."""
        return now.timestamp() >= self.ends_at - life.total_seconds() / 2

    def __str__(self) -> str:
        return f"{self.tenant_id}.{self.key_id}.{self.ends_at}.{self.nonce}"


def begin(tenant_id: int, key_id: int, *, now: datetime, life: timedelta) -> Session:
    """Return a new session that ends after ``life``."""
    return Session(tenant_id, key_id, int((now + life).timestamp()), secrets.token_urlsafe(NONCE_BYTES))


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with the first of ``secrets`` and knows the signatures of all of them, so that a secret can be replaced."""

    secrets: tuple[bytes, ...] = field(repr=False)

    def cookie(self, session: Session) -> str:
        """The session with its signature, as the value of a cookie."""
        return f"{session}.{_signature(self.secrets[0], SESSION, str(session))}"

    def session(self, cookie: str, *, now: datetime) -> Session | None:
        """The session in a cookie. None where it is over, was altered or was signed with another secret."""
        text, _, signature = cookie.rpartition(".")
        if not self._is_signed(SESSION, text, signature):
            return None
        tenant_id, key_id, ends_at, nonce = text.split(".")
        session = Session(int(tenant_id), int(key_id), int(ends_at), nonce)
        return None if session.is_over(now) else session

    def token(self, of: str) -> str:
        """What a form must carry: another site cannot read it, so it cannot send the form."""
        return _signature(self.secrets[0], FORM, of)

    def is_token(self, token: str, of: str) -> bool:
        return self._is_signed(FORM, of, token)

    def _is_signed(self, purpose: bytes, text: str, signature: str) -> bool:
        return any(
            hmac.compare_digest(_signature(secret, purpose, text).encode(), signature.encode())
            for secret in self.secrets
        )


def signer_of(settings: Settings) -> Signer:
    """A signer with the secrets of the settings, which all API processes share; without any, one of this process."""
    return Signer(settings.erasure.secrets or (secrets.token_bytes(32),))


def _signature(secret: bytes, purpose: bytes, text: str) -> str:
    # A key of its own for each purpose: the same secret seals receipts, too.
    key = hmac.digest(secret, purpose, "sha256")
    digest = hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
