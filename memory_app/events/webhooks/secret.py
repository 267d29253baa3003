"""Secrets of webhooks. The database keeps none: each is computed from a random salt and a secret of the settings.

So a copy of the database signs nothing, and all processes with the same settings know the secret. The settings may name
several secrets; a row says by a short id with which of them it was made. Pure, but for the random salt.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from secrets import token_bytes

from memory_app.errors import Conflict
from memory_app.settings import Settings

PURPOSE, ID_PURPOSE = b"memory webhook", b"memory webhook secret id"
"""What is computed, so that nothing stands for another thing: the same secret seals receipts, too."""

SALT_BYTES = 24
ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class SecretSource:
    """What a secret is computed from; stored. ``made_with`` is the id of the secret in the settings."""

    salt: bytes
    made_with: bytes


@dataclass(frozen=True, slots=True)
class Keyring:
    """Computes secrets with those of the settings, of which the first serves what is new."""

    secrets: tuple[bytes, ...] = field(repr=False)

    def new(self) -> SecretSource:
        """What a new secret is computed from. Raises `Conflict` where the settings name no secret."""
        if not self.secrets:
            raise Conflict(
                "webhooks require MEMORY_ERASURE__SECRET, of which their secrets are made; set it for all processes"
            )
        return SecretSource(token_bytes(SALT_BYTES), _id_of(self.secrets[0]))

    def secret(self, source: SecretSource) -> bytes | None:
        """The secret, 32 bytes. None where the settings no longer name the secret with which it was made."""
        for secret in self.secrets:
            if hmac.compare_digest(_id_of(secret), source.made_with):
                return hmac.digest(hmac.digest(secret, PURPOSE, "sha256"), source.salt, "sha256")
        return None


def keyring_of(settings: Settings) -> Keyring:
    return Keyring(settings.erasure.secrets)


def _id_of(secret: bytes) -> bytes:
    return hmac.digest(secret, ID_PURPOSE, "sha256")[:ID_BYTES]
