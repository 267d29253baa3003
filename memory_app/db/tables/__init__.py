"""Every table of the product, on one metadata: the one description of the schema.

Statements take their columns from here, migrations are compared with it by a test, and doctor, backups and copies walk
through it. A table that is not imported here is none.
"""

from __future__ import annotations

from memory_app.db.tables.audit import audit
from memory_app.db.tables.events import deliveries, webhooks
from memory_app.db.tables.forget import erased_turns, erasures, refused_messages
from memory_app.db.tables.jobs import runs, schedules
from memory_app.db.tables.memories import entities, evidence, feedback, links, memories, mentions
from memory_app.db.tables.schema import metadata
from memory_app.db.tables.search import scope_models, scope_sizes, speakers, terms
from memory_app.db.tables.sleep import images
from memory_app.db.tables.tenancy import (
    agents,
    api_keys,
    decisions,
    grants,
    scopes,
    shards,
    tenants,
    usage,
    users,
)
from memory_app.db.tables.transfer import checkpoints, import_parts
from memory_app.db.tables.turns import sessions, turns

__all__ = [
    "agents",
    "api_keys",
    "audit",
    "checkpoints",
    "decisions",
    "deliveries",
    "entities",
    "erased_turns",
    "erasures",
    "evidence",
    "feedback",
    "grants",
    "images",
    "import_parts",
    "links",
    "memories",
    "mentions",
    "metadata",
    "refused_messages",
    "runs",
    "schedules",
    "scope_models",
    "scope_sizes",
    "scopes",
    "sessions",
    "shards",
    "speakers",
    "tenants",
    "terms",
    "turns",
    "usage",
    "users",
    "webhooks",
]
