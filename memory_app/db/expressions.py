"""Pieces of statements that are the same for every table: lists of columns, and comparisons with many or no values."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import ARRAY, BindParameter, Column, ColumnElement, Table, all_, any_, bindparam, or_


def columns_of(table: Table, record: type[Any]) -> tuple[Column[Any], ...]:
    """The columns of the table that a record (a dataclass) has a field for, in the order of its fields."""
    names = [field.name for field in dataclasses.fields(record)]
    return tuple(table.c[name] for name in names if name in table.c)


def nullable_types(table: Table, *, without: Collection[str]) -> dict[str, type[Any]]:
    """The Python types of the nullable columns by name, but for those named in ``without``."""
    columns = [column for column in table.columns if column.nullable and column.name not in without]
    return {column.name: column.type.python_type for column in columns}


def column_list(columns: Iterable[Column[Any]], alias: str | None = None, **instead: str) -> str:
    """The columns as text SQL names them: ``m.id, m.kind``, or without an alias ``id, kind``.

    ``instead`` gives by column the expression that stands in its place.
    """
    prefix = "" if alias is None else f"{alias}."
    return ", ".join(instead.get(column.name, f"{prefix}{column.name}") for column in columns)


def among(column: Column[Any], name: str) -> ColumnElement[bool]:
    """``column = ANY(:name)``, where ``name`` is a list.

    An IN list would have as many parameters as values, and so another text and another plan for each number of them.
    """
    return column == any_(many(column, name))


def not_among(column: Column[Any], name: str) -> ColumnElement[bool]:
    """``column <> ALL(:name)``, where ``name`` is a list."""
    return column != all_(many(column, name))


def many(column: Column[Any], name: str) -> BindParameter[Any]:
    """A parameter that holds a list of values of the column."""
    return bindparam(name, type_=ARRAY(column.type))


def before_if_given(column: Column[Any], name: str) -> ColumnElement[bool]:
    """``column < :name``, or everything where the parameter is None: the first page of a listing."""
    # With its type: PostgreSQL cannot tell that of a parameter which is first compared with NULL.
    value: BindParameter[Any] = bindparam(name, type_=column.type)
    return or_(value.is_(None), column < value)
