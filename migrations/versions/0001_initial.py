"""The tables of the first release."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = Path(__file__).with_name("0001_tables.sql")


def upgrade() -> None:
    op.get_bind().exec_driver_sql(TABLES.read_text(encoding="utf-8"))


def downgrade() -> None:
    raise NotImplementedError("the initial version has nothing before it; drop the database instead")
