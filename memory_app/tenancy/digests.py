"""Digests that stand for names which the database must not keep: of who was erased, and of turns that were.

A name can be looked for, since its digest can be computed again, and cannot be read out of a digest. Without a secret,
whoever holds a digest can try names until one fits; with one, only who has the secret can. Pure.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import blake2b

from memory_app.settings import Settings

TURN, USER, AGENT, SESSION, KEY = "sent", "user", "agent", "session", "key"
"""Sorts of names."""


@dataclass(frozen=True, slots=True)
class Digests:
    """Makes digests with ``secrets``: the first for what is new; the others, and none, for what was made before."""

    secrets: tuple[bytes, ...] = field(default=(), repr=False)

    def new(self, tenant_id: int, of: str, name: str) -> bytes:
        """What stands for a name, or an id, of one tenant; ``of`` says what sort of thing it names.

        32 bytes, or 16 where no secret is set.
        """
        return self.possible(tenant_id, of, name)[0]

    def possible(self, tenant_id: int, of: str, name: str) -> tuple[bytes, ...]:
        """Every digest that may stand for the name, the newest form first: secrets change, and were not always set."""
        # With the tenant in it, equal names of two tenants have different digests.
        message = f"{tenant_id}:{of}:{name}".encode("utf-8", "surrogatepass")
        keyed = [hmac.digest(secret, message, "sha256") for secret in self.secrets]
        return (*keyed, blake2b(message, digest_size=16).digest())

    def seal(self, text: str) -> str | None:
        """64 hexadecimal digits that nobody can make for another text without the secret; None without one."""
        return hmac.digest(self.secrets[0], text.encode(), "sha256").hex() if self.secrets else None

    def is_sealed(self, text: str, seal: str) -> bool:
        """Whether the seal was made for this text under one of the secrets."""
        seals = [hmac.digest(secret, text.encode(), "sha256").hex() for secret in self.secrets]
        return any(hmac.compare_digest(each.encode(), seal.encode()) for each in seals)


def digests_of(settings: Settings) -> Digests:
    """Digests with the secrets of the settings."""
    return Digests(settings.erasure.secrets)


def session_name(agent: str, user: str | None, session: str | None) -> str:
    """The full name of a session, as it goes into a digest."""
    # Names hold no NUL, so two sessions never share a full name.
    return f"{agent}\0{user}\0{session}"


def sent_name(user: str | None, idempotency_key: str, request_hash: bytes) -> str:
    """What one turn is called that a caller sent under a key: the same again, and nothing else under that key."""
    return f"{user}\0{idempotency_key}\0{request_hash.hex()}"


def hidden_key(digest: bytes) -> str:
    """What stands in place of an idempotency key of a turn whose words were deleted: a key may be made of the words."""
    return f"digest:{digest.hex()}"


def key_name(user: str | None, idempotency_key: str) -> str:
    """The full name of an idempotency key, as it goes into a digest. Keys count per person."""
    return f"{user}\0{idempotency_key}"
