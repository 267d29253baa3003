"""What somebody asks not to be kept is neither remembered nor shown, and the ticket says so."""

from __future__ import annotations

import pytest
from queries import rows
from sqlalchemy import Engine

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.records.records import WITHHELD, NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

CHAT, LATER, MIRA = Scope("ada", "mira", "chat"), Scope("ada", "mira", "later"), Scope("ada", "mira")
ASKED = (
    ("Don't remember this: I am getting divorced.", "divorced"),
    ("Please do not save this. My sister is in prison.", "prison"),
    ("Off the record: I am looking for another job at Nordea.", "Nordea"),
    ("Merk dir das bitte nicht: Ich lasse mich scheiden.", "scheiden"),
    ("Ne retiens pas ça : je vais divorcer.", "divorcer"),
    ("No guardes esto: me voy a divorciar de Pablo.", "divorciar"),
    ("Non ricordare questo: mi sto separando da Marco.", "separando"),
    ("Não guarde isso: vou me divorciar do Paulo.", "divorciar"),
    ("Onthoud dit niet: ik ga scheiden van Piet.", "scheiden"),
)


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def neighbours(app: MemoryApp, words: str) -> None:
    app.record_all(
        CHAT,
        [
            NewTurn(Role.USER, "I live in Lisbon and I keep bees."),
            NewTurn(Role.USER, words),
            NewTurn(Role.USER, "What grows well beside a bee hive?"),
        ],
    )
    finder.drain(app.runtime)


@pytest.mark.parametrize(("words", "word"), ASKED, ids=[word for _, word in ASKED])
def test_it_is_neither_remembered_nor_shown(app: MemoryApp, owner: Engine, words: str, word: str) -> None:
    neighbours(app, words)
    for scope in (CHAT, LATER):
        for query in (words, "What does Mira keep, and is anything new with her?"):
            assert word not in app.context(scope, query).text
    hits = app.recall(MIRA, words, limit=50).memories
    assert hits and all(word not in hit.text for hit in hits)
    assert all(word not in memory.text for memory in app.memories(MIRA, history=True))
    assert all(word not in entity.label for entity in app.entities(MIRA))
    (turn,) = rows(
        owner, "SELECT reason, keywords, embedding, terms FROM turns WHERE text = :words", words=words
    )
    assert turn.reason == WITHHELD
    assert turn.keywords is None and turn.embedding is None and turn.terms is None


def test_the_ticket_says_why_and_the_app_may_list_it(app: MemoryApp) -> None:
    ticket = app.record(CHAT, ASKED[0][0])
    finder.drain(app.runtime)
    read = app.ticket(ticket.id)
    assert (read.stage, read.reason, read.memory_ids) == ("extracted", WITHHELD, ())
    assert [turn.text for turn in app.turns(CHAT)] == [ASKED[0][0]]


def test_document_frequencies_are_those_of_what_is_searched(app: MemoryApp, owner: Engine) -> None:
    neighbours(app, ASKED[0][0])
    counted = rows(
        owner,
        """SELECT t.term, t.row_count FROM terms t WHERE t.term <> 0 AND t.row_count <> (
            SELECT count(*) FROM turns u WHERE u.scope_id = t.scope_id AND t.term = ANY(u.terms))
            + (SELECT count(*) FROM memories m WHERE m.scope_id = t.scope_id AND t.term = ANY(m.terms))""",
    )
    assert counted == []
    (rows_counted,) = rows(owner, "SELECT row_count FROM terms WHERE term = 0")
    (searched,) = rows(
        owner,
        """SELECT (SELECT count(*) FROM turns WHERE terms IS NOT NULL)
            + (SELECT count(*) FROM memories WHERE terms IS NOT NULL) AS n""",
    )
    assert rows_counted.row_count == searched.n


def test_a_turn_extracted_before_it_is_indexed_is_not_searched(app: MemoryApp, owner: Engine) -> None:
    app.record(CHAT, ASKED[0][0])
    finder.drain(app.runtime)
    with owner.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET indexed_at = NULL, starts = 0, lease_until = NULL")
    finder.drain(app.runtime)
    (turn,) = rows(owner, "SELECT indexed_at, keywords FROM turns")
    assert turn.indexed_at is not None and turn.keywords is None


@pytest.mark.parametrize(
    "words",
    [
        "I do not remember that restaurant, was it good?",
        "Don't remember this restaurant being so good.",
        "The gap between us is five years.",
        "Ich kann mir das nicht merken.",
        "I never save it for later.",
    ],
)
def test_who_only_speaks_of_remembering_withholds_nothing(app: MemoryApp, owner: Engine, words: str) -> None:
    app.record(CHAT, words)
    finder.drain(app.runtime)
    (turn,) = rows(owner, "SELECT reason, keywords FROM turns")
    assert turn.reason != WITHHELD and turn.keywords is not None
