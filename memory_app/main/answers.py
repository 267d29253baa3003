"""What routes of keys and of the audit log answer with."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer


class EntryAnswer(Answer):
    seq: int = Field(description="Counts from 1 without a gap.")
    at: datetime
    key_id: int | None = Field(description="Null: the operator, on the command line or in Python.")
    action: str
    agent: str | None
    subject: str | None = Field(description="Digest of the person's name.")
    target: str | None
    outcome: str = Field(description="`begun`, `done`, `broke`, or the kind of error it was refused with.")
    request_id: UUID | None
    digest: str = Field(description="Over the entry and the digest of the one before.")


class AuditAnswer(Answer):
    entries: list[EntryAnswer]
    cursor: int | None


class ChainAnswer(Answer):
    entries: int
    head: str = Field(
        description="Digest of the last entry: kept elsewhere, it shows later that nothing was cut off."
    )
    broken_at: int | None = Field(description="The first number at which something does not fit.")


class KeyAnswer(Answer):
    id: int
    prefix: str = Field(description="The first characters, by which its holder recognises it.")
    rights: list[str]
    label: str | None
    agent: str | None = Field(validation_alias="agent_name")
    user: str | None = Field(validation_alias="user_name")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    limits: dict[str, int] = Field(description="By name; what is not named has no limit.")


class KeysAnswer(Answer):
    keys: list[KeyAnswer]


class NewKeyAnswer(Answer):
    id: int
    key: str = Field(description="Shown this once; only a digest is stored.")
    expires_at: datetime | None


class LimitsAnswer(Answer):
    limits: dict[str, int] = Field(description="By name; what is not named has no limit.")


class TenantLimitsAnswer(LimitsAnswer):
    turns: int = Field(description="Stored turns of the tenant, counted within the last seconds.")
