"""Corrections and endings in a chat: what was said by mistake was never true, and what is over has an end."""

from __future__ import annotations

from datetime import timedelta

from queries import rows
from sqlalchemy import Engine
from test_newest_word import FIRST, facts_now, say

from memory_app.memories.facts import FactQuery, find_facts
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

SCOPE = Scope("ada", "mira")


def test_the_corrected_claim_was_never_true(runtime: Runtime, tenant: int, owner: Engine) -> None:
    say(runtime, tenant, "Ich arbeite bei Acme als Testerin.", FIRST)
    say(runtime, tenant, "Sorry, ich arbeite bei Apex, nicht bei Acme.", FIRST + timedelta(minutes=2))
    say(runtime, tenant, "Ich meinte Apex, nicht Acme.", FIRST + timedelta(minutes=3))

    assert facts_now(runtime, tenant, "works_at") == ["Apex"]
    between = FactQuery(relation="works_at", as_of=FIRST + timedelta(minutes=1))
    assert [hit.memory.object for hit in find_facts(runtime, tenant, SCOPE, query=between)] == ["Apex"]
    (wrong,) = rows(owner, "SELECT * FROM memories WHERE object = 'Acme'")
    assert wrong.valid_until == wrong.valid_from
    # What else the turn said stays.
    assert facts_now(runtime, tenant, "job_title") == ["Testerin"]


def test_a_name_of_many_is_corrected(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "Meine Tochter heißt Elin.", FIRST)
    say(runtime, tenant, "Meine Tochter heißt Toma.", FIRST + timedelta(minutes=1))
    say(runtime, tenant, "Korrektur: Meine Tochter heißt Elina, nicht Elin.", FIRST + timedelta(minutes=2))

    assert facts_now(runtime, tenant, "daughter") == ["Elina", "Toma"]


def test_a_couple_that_is_over_ends_whoever_it_was_with(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "Meine Frau Velma und ich wohnen in Mainz.", FIRST)
    assert facts_now(runtime, tenant, "wife") == ["Velma"]

    say(runtime, tenant, "Meine Frau und ich haben uns scheiden lassen.", FIRST + timedelta(days=9))
    assert facts_now(runtime, tenant, "wife") == []

    say(runtime, tenant, "Meine Frau heißt Ines.", FIRST + timedelta(days=90))
    assert facts_now(runtime, tenant, "wife") == ["Ines"]
    assert facts_now(runtime, tenant, "no_longer_with") == []
