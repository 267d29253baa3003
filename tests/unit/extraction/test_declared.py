"""Which fact a caller's statement is, and which statements are more or less than one fact."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import read_declared
from memory_app.records.records import Origin, Statement

AT = datetime(2026, 11, 28, 9, tzinfo=UTC)


def read(text: str, *, user: str | None = "u-7", **fields: object) -> Statement:
    statement = Statement(**{"kind": "fact", "text": text} | fields)  # type: ignore[arg-type]
    return read_declared(statement, user=user, at=AT, zone=ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("Mira lives in Porto.", ("Mira", "lives_in", "Porto")),
        ("Mira now lives in Lisbon", ("Mira", "lives_in", "Lisbon")),
        ("Petra Novak lives in Brno.", ("Petra Novak", "lives_in", "Brno")),
        ("Mira moved to Lisbon.", ("Mira", "lives_in", "Lisbon")),
        ("Mira works at Acme.", ("Mira", "works_at", "Acme")),
        ("Mira works for Apex.", ("Mira", "works_at", "Apex")),
        ("Mira is a nurse.", ("Mira", "job_title", "nurse")),
        ("Mira is 34 years old.", ("Mira", "age", "34")),
        ("Mira has 5 years of experience.", ("Mira", "years_of_experience", "5")),
        ("Mira has six years experience", ("Mira", "years_of_experience", "six")),
        ("Mira is allergic to walnuts.", ("Mira", "allergic_to", "walnuts")),
        ("I live in Porto.", ("u-7", "lives_in", "Porto")),
        ("Mira wohnt in Porto.", ("Mira", "lives_in", "Porto")),
        ("Mira arbeitet bei Acme.", ("Mira", "works_at", "Acme")),
        ("Mira habite à Porto.", ("Mira", "lives_in", "Porto")),
        ("Mira travaille chez Acme.", ("Mira", "works_at", "Acme")),
        ("Mira vive en Oporto.", ("Mira", "lives_in", "Oporto")),
        ("Mira trabaja en Acme.", ("Mira", "works_at", "Acme")),
        ("Mira vive a Porto.", ("Mira", "lives_in", "Porto")),
        ("Mira lavora alla Acme.", ("Mira", "works_at", "Acme")),
        ("Mira mora em Lisboa.", ("Mira", "lives_in", "Lisboa")),
        ("Mira trabalha na Acme.", ("Mira", "works_at", "Acme")),
        ("Mira woont in Porto.", ("Mira", "lives_in", "Porto")),
        ("Mira werkt bij Acme.", ("Mira", "works_at", "Acme")),
        ("The user lives in Porto.", ("u-7", "lives_in", "Porto")),
    ],
)
def test_a_statement_that_is_one_fact_is_read(text: str, triple: tuple[str, str, str]) -> None:
    statement = read(text)

    assert (statement.subject, statement.relation, statement.object) == triple
    assert (statement.text, statement.mentions) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        "Mira lives in Porto and works at Acme.",
        "Mira lives in Porto with her cat.",
        "Mira lives in Porto. She works at Acme.",
        "Mira lives in Porto because of the sea",
        "Mira moved to Lisbon last month.",
        "Mira has 5 years of experience in Java.",
        "Maybe Mira lives in Porto.",
        "Vielleicht wohnt Mira in Porto.",
        "Mira wohnt in Porto und arbeitet bei Acme.",
        "Mira habite à Porto depuis 2019.",
        "Mira vive en Oporto con su hermana mayor.",
        "Does Mira live in Porto?",
        "She lives in Porto.",
        "The museum is closed on Mondays.",
        "Mira",
        "",
        "?",
        "Mira lives in " + "Porto " * 60,
    ],
)
def test_what_is_more_or_less_than_one_fact_is_left_as_it_is(text: str) -> None:
    assert read(text) == Statement("fact", text)


def test_nobody_says_i_where_there_is_no_user() -> None:
    assert read("I live in Porto.", user=None).subject is None


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "anchor"},
        {"origin": Origin.EXTRACTED},
        {"subject": "Tom", "relation": "knows", "object": "Mira"},
    ],
)
def test_only_what_a_caller_states_in_words_is_read(fields: dict[str, object]) -> None:
    assert read("Mira lives in Porto.", **fields) == Statement(
        **{"kind": "fact", "text": "Mira lives in Porto."} | fields  # type: ignore[arg-type]
    )
