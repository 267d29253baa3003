"""Tenants with their keys, agents and users, the pair of both that rows carry (a scope), and what a tenant used."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from memory_app.db.literals import literals
from memory_app.db.tables.schema import (
    JSON_VALUE,
    NO_FIELDS,
    instant,
    metadata,
    of_scope,
    serial,
    tenant,
    tenant_of_scope,
)
from memory_app.records.kinds import shareable_kinds

tenants = Table(
    "tenants",
    metadata,
    serial(),
    Column("name", Text, nullable=False, unique=True),
    instant("created_at", now=True),
    # By name, see `records.limits`; what is not named has no limit.
    Column("limits", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    PrimaryKeyConstraint("id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    serial(),
    tenant(),
    Column("prefix", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("rights", ARRAY(Text), nullable=False),
    Column("label", Text),
    instant("created_at", now=True),
    instant("expires_at"),
    instant("revoked_at"),
    instant("last_used_at"),
    # The one agent, the one person that the key is for; NULL: any.
    Column("agent_name", Text),
    Column("user_name", Text),
    Column("limits", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    PrimaryKeyConstraint("id"),
    Index("api_keys_tenant_id_idx", "tenant_id"),
)

agents = Table(
    "agents",
    metadata,
    serial(),
    tenant(),
    Column("name", Text, nullable=False),
    Column("persona", JSON_VALUE),
    Column("policy", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    Column("default_memories", JSON_VALUE, nullable=False, server_default=text("'[]'::jsonb")),
    instant("created_at", now=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "name"),
    # What scopes refer to: with the tenant in the reference, none can name an agent of another one.
    UniqueConstraint("tenant_id", "id", name="agents_tenant_id_id_key"),
)

users = Table(
    "users",
    metadata,
    serial(),
    tenant(),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False, server_default="UTC"),
    instant("created_at", now=True),
    # The one that holds the user's rows. A copy in another shard than the home shard says the same.
    Column("shard", SmallInteger, nullable=False, server_default=text("0")),
    # Set by somebody, so that UTC is meant and not only the default.
    Column("zone_is_set", Boolean, nullable=False, server_default=text("false")),
    # That of the newest turn whose time had one, such as "+09:00": where the person speaks while no zone is set.
    Column("utc_offset", Text),
    # What the app calls the person, and further names of theirs; the id stays the one subject of what is known.
    Column("label", Text),
    Column("aliases", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "name"),
    UniqueConstraint("tenant_id", "id", name="users_tenant_id_id_key"),
    # Who is where, for the list of shards.
    Index("users_shard_idx", "shard"),
)

scopes = Table(
    "scopes",
    metadata,
    serial(),
    tenant_of_scope(),
    Column("agent_id", BigInteger, nullable=False),
    Column("user_id", BigInteger),
    instant("created_at", now=True),
    instant("seeded_at"),
    # No more current memories and links than these are in the scope; NULL: not counted.
    Column("most_memories", Integer),
    Column("most_links", Integer),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "id"),
    # An agent has one scope without a user, for what it knows of itself.
    UniqueConstraint(
        "tenant_id", "agent_id", "user_id", name="scopes_agent_user_key", postgresql_nulls_not_distinct=True
    ),
    ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(
        ["tenant_id", "user_id"],
        ["users.tenant_id", "users.id"],
        name="scopes_tenant_id_user_fkey",
        ondelete="CASCADE",
    ),
    Index("scopes_tenant_user_idx", "tenant_id", "user_id"),
)

grants = Table(
    "grants",
    metadata,
    tenant_of_scope(),
    # What an agent knows of a person, and the agent that may recall it: both scopes are the same person's.
    Column("scope_id", BigInteger, nullable=False),
    Column("to_scope_id", BigInteger, nullable=False),
    Column("kinds", ARRAY(Text), nullable=False),
    # Exclusive; NULL: until it is revoked.
    instant("until"),
    instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "to_scope_id"),
    of_scope(),
    ForeignKeyConstraint(
        ["tenant_id", "to_scope_id"],
        ["scopes.tenant_id", "scopes.id"],
        name="grants_tenant_id_to_scope_fkey",
        ondelete="CASCADE",
    ),
    CheckConstraint(
        f"cardinality(kinds) > 0 AND kinds <@ ARRAY[{literals(shareable_kinds())}]",
        name="kinds",
    ),
    CheckConstraint("to_scope_id <> scope_id", name="to_scope_id"),
    Index("grants_to_scope_idx", "to_scope_id"),
)
"""What a person lets one agent recall of what another knows of them."""

shards = Table(
    "shards",
    metadata,
    Column("id", SmallInteger, autoincrement=False, nullable=False),
    # The newest one that it was migrated to; NULL while it is being made.
    Column("revision", Text),
    Column("is_open", Boolean, nullable=False, server_default=text("true")),
    instant("created_at", now=True),
    # The name of the PostgreSQL server that it is on; NULL: that of the home shard.
    Column("server", Text),
    # The server that it is being moved to; closed: where it was nobody writes any more, and where it goes nobody yet.
    Column("moves_to", Text),
    Column("is_closed", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("id"),
)
"""The shards, in the directory; ``is_open``: new users come to it."""

decisions = Table(
    "decisions",
    metadata,
    Column("id", Uuid, nullable=False),
    # False: whoever was to commit comes too late.
    Column("is_commit", Boolean, nullable=False, server_default=text("true")),
    instant("decided_at", now=True),
    PrimaryKeyConstraint("id"),
    Index("decisions_decided_idx", "decided_at"),
)
"""Transactions over several servers, in the directory: those that are prepared elsewhere take effect, or do not."""

usage = Table(
    "usage",
    metadata,
    tenant(),
    Column("day", Date, nullable=False),
    Column("model", Text, nullable=False),
    Column("calls", BigInteger, nullable=False, server_default=text("0")),
    Column("tokens_in", BigInteger, nullable=False, server_default=text("0")),
    Column("tokens_out", BigInteger, nullable=False, server_default=text("0")),
    # A call of a small model costs a fraction of a cent.
    Column("cost_usd", Numeric(14, 6), nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("tenant_id", "day", "model"),
)
