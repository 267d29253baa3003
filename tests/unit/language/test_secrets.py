"""One filter for secrets, and both extractors use it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.llm.guards import SECRET, Draft, Ground, fault_of
from memory_app.extraction.rules import extract
from memory_app.language.secrets import holds_secret
from memory_app.records.records import Role, Statement, Turn

NAMED = (
    "I love my password manager.",
    "I love my PIN code.",
    "I love the API key of the bank.",
    "I like social security.",
    "I like access tokens.",
    "I like that my password is under the mat: horse.",
    "I love that the password is in the form Blue7.",
    "I love my password, it is on the fridge.",
)
UNNAMED = (
    "I like 4111 1111 1111 1111 very much.",
    "I live near 4111-1111-1111-1111.",
    "I like sk-abcdefghijklmnop a lot.",
    "I like ghp_abcdefghijklmnopqrst very much.",
)
"""Sentences of a form that the rules read: without the filter each states something."""

HARMLESS = (
    "I live in Lisbon since 2019.",
    "My sister Sara plays tennis on Mondays.",
    "I work at the bank in Porto.",
    "I have a skateboard and a pinboard.",
    "My wifi password is on the fridge and the cleaner comes on Tuesdays.",
    "The alarm pin is taped behind the mirror.",
    "Our passwords are written down in my grandmother's cookbook.",
)


def turn(text: str) -> Turn:
    return Turn(UUID(int=1), "s", 1, Role.USER, "Maria", text, datetime(2024, 5, 8, tzinfo=UTC))


@pytest.mark.parametrize("text", [*NAMED, *UNNAMED])
def test_a_secret_is_recognised_by_name_or_by_form(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_sentences_hold_no_secret(text: str) -> None:
    assert not holds_secret(text)


@pytest.mark.parametrize("text", [*NAMED, *UNNAMED])
def test_the_rules_state_nothing_of_a_sentence_with_a_secret(text: str) -> None:
    said = extract([turn(text)], [], user_label="Maria", agent_label="Nova", time_zone=ZoneInfo("UTC"))
    assert said.statements == ()


@pytest.mark.parametrize("text", [*NAMED, *UNNAMED])
def test_a_model_s_statement_with_a_secret_is_rejected(text: str) -> None:
    said = turn(text)
    ground = Ground((said,), "Maria", "Nova", ZoneInfo("UTC"))
    assert fault_of(Draft(Statement("fact", text), (said,)), ground) == SECRET


@pytest.mark.parametrize("text", HARMLESS[:3])
def test_the_rules_read_ordinary_sentences(text: str) -> None:
    said = extract([turn(text)], [], user_label="Maria", agent_label="Nova", time_zone=ZoneInfo("UTC"))
    assert said.statements
