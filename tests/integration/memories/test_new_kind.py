"""A kind is one line of a table: added, it is remembered, recalled and shown, in whichever section it stands."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from memory_app.memories.lookup import MemoryFilter, list_memories
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import recall
from memory_app.recall.records import RecallQuery
from memory_app.records.kinds import KINDS, Kind, Section
from memory_app.records.records import Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

BOB = Scope("ada", "bob")
PLEDGE = "Bob promised to repair the greenhouse before winter."
QUESTION = "What about the greenhouse before winter?"


@pytest.fixture(params=Section, ids=lambda section: section.value)
def pledge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """The one line that adds a kind to a section."""
    kind = Kind("pledge", section=request.param, half_life=timedelta(days=60), importance=5)
    monkeypatch.setitem(KINDS, kind.name, kind)
    return kind


def test_a_kind_added_by_one_line_is_remembered_recalled_and_shown(
    runtime: Runtime, tenant: int, pledge: Kind
) -> None:
    remembered = remember(runtime, tenant, BOB, statement=Statement(pledge.name, PLEDGE))

    for query in (RecallQuery(QUESTION), RecallQuery(QUESTION, kinds=(pledge.name,))):
        assert [hit.id for hit in recall(runtime, tenant, BOB, query=query).memories] == [remembered.id]
    listed = list_memories(runtime, tenant, BOB, filters=MemoryFilter(kind=pledge.name))
    assert [memory.importance for memory in listed] == [pledge.importance]

    asked = None if pledge.section is not Section.MEMORIES else QUESTION
    window = context(runtime, tenant, BOB, request=ContextRequest(query=asked))
    lines = {section.name: "\n".join(section.lines) for section in window.sections}
    assert pledge.section is not None
    assert PLEDGE in lines[pledge.section.value]
    assert str(remembered.id) in window.ids


def test_a_new_kind_shows_though_a_window_of_the_old_version_is_cached(
    runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        KINDS, "pledge", Kind("pledge", section=Section.EXPRESSION, half_life=None, importance=5)
    )
    remember(runtime, tenant, BOB, statement=Statement("pledge", PLEDGE))
    with monkeypatch.context() as before:
        before.delitem(KINDS, "pledge")
        assert PLEDGE not in context(runtime, tenant, BOB, request=ContextRequest()).text
    assert PLEDGE in context(runtime, tenant, BOB, request=ContextRequest()).text


def test_kinds_of_the_section_expression_stand_in_the_order_of_the_table(
    runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        KINDS,
        "pledge",
        Kind("pledge", section=Section.EXPRESSION, half_life=None, importance=9, lead="Promised: "),
    )
    remember(runtime, tenant, BOB, statement=Statement("pledge", PLEDGE))
    remember(runtime, tenant, BOB, statement=Statement("value", "Bob finds rest important."))
    remember(runtime, tenant, BOB, statement=Statement("expression", "Bob wants short answers."))
    shown = context(runtime, tenant, BOB, request=ContextRequest()).text
    lines = [
        "- Bob wants short answers.",
        "- Value being explored: Bob finds rest important.",
        f"- Promised: {PLEDGE}",
    ]
    assert "\n".join(lines) in shown


def test_the_http_schema_names_a_new_kind_and_its_subtypes() -> None:
    program = """
from memory_app.records.kinds import KINDS, Kind, Section
KINDS["pledge"] = Kind("pledge", section=Section.MEMORIES, half_life=None, importance=5, subtypes=("oath",))
from pydantic import TypeAdapter
from memory_app.web.fields import KindName, SubtypeName
for field, name in ((KindName, "pledge"), (SubtypeName, "oath")):
    assert name in TypeAdapter(field).json_schema()["enum"], field
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
