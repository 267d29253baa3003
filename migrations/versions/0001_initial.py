"""The whole schema: tables rendered from the models, then roles, row-level security and the narrow functions."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FOLDER = Path(__file__).parent


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    for name in ("0001_tables.sql", "0001_access.sql"):
        connection = op.get_bind()
        connection.exec_driver_sql((FOLDER / name).read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("the initial version has nothing before it; drop the database instead")
