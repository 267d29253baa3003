"""The tables and the pieces of statements that are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from memory_app.db.expressions import among, before_if_given, column_list, columns_of, nullable_types
from memory_app.db.tables import memories, metadata, tenants


@dataclass(frozen=True, slots=True)
class Named:
    """A record with one field that is a column of tenants, and one that is not."""

    name: str
    age: int


def sql(statement: object) -> str:
    return str(statement.compile(dialect=PGDialect_psycopg()))  # type: ignore[attr-defined]


def test_none_in_a_json_column_is_written_as_null() -> None:
    columns = [column for table in metadata.tables.values() for column in table.columns]
    types = [column.type for column in columns if isinstance(column.type, JSONB)]
    assert types and all(type.none_as_null for type in types)


def test_the_columns_of_a_record_are_those_that_the_table_has() -> None:
    assert columns_of(tenants, Named) == (tenants.c.name,)


def test_nullable_columns_say_what_they_hold_in_python() -> None:
    others = {column.name for column in memories.columns} - {"id", "subtype", "retired_at"}
    assert nullable_types(memories, without=others) == {"subtype": str, "retired_at": datetime}


def test_columns_are_listed_with_and_without_an_alias() -> None:
    assert column_list(tenants.columns) == "id, name, created_at, limits"
    assert column_list(columns_of(tenants, Named), "t") == "t.name"


def test_a_list_of_any_length_is_one_parameter() -> None:
    statement = select(memories.c.id).where(among(memories.c.id, "ids"))
    assert "memories.id = ANY (%(ids)s::UUID[])" in sql(statement)


def test_a_listing_begins_at_the_top_without_a_last_id() -> None:
    condition = sql(before_if_given(memories.c.id, "before"))
    assert condition == "%(before)s::UUID IS NULL OR memories.id < %(before)s::UUID"
