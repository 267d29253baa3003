"""A secret is remembered through no door: the caller is told which field holds one, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import InvalidInput
from memory_app.main.http import create_app
from memory_app.records.records import RelationalContext
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

CARD = "4111 1111 1111 1111"
CHAT, MIRA = Scope("ada", "mira", "chat"), Scope("ada", "mira")
BASE = "/v1/agents/ada/users/mira"
SECRETS = (
    f"Mira's visa is {CARD}.",
    "Mira's passphrase is correct horse battery.",
    "Her wifi password: sunshine",
    "Mira's PIN is 4711.",
    "Miras Passwort ist Sonnenschein.",
    "The key is sk-abcdefghijklmnop1234.",
    "Her social security number is 123-45-6789.",
)
HARMLESS = (
    "Mira's wifi password is on the fridge.",
    "Mira forgot her password twice.",
    "Das Passwort steht auf dem Zettel hinter dem Spiegel.",
    "Mira reads ISBN 9783161484100.",
    "Mira is reached at +49 170 1234567.",
)


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def stored_texts(owner: Engine) -> list[str]:
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT text FROM memories ORDER BY id")).scalars())


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_refused_with_its_field(app: MemoryApp, owner: Engine, secret: str) -> None:
    with pytest.raises(InvalidInput, match="never remembered") as refused:
        app.remember(MIRA, secret)
    assert refused.value.field == "text"
    assert secret not in refused.value.message
    assert stored_texts(owner) == []


@pytest.mark.parametrize("words", HARMLESS)
def test_what_only_speaks_of_one_is_remembered(app: MemoryApp, owner: Engine, words: str) -> None:
    app.remember(MIRA, words)
    assert stored_texts(owner) == [words]


PARTS: tuple[tuple[str, Callable[[MemoryApp], Any]], ...] = (
    ("object", lambda app: app.add_fact(MIRA, "Mira", "has_card", CARD)),
    ("subject", lambda app: app.add_fact(MIRA, f"card {CARD}", "belongs_to", "Mira")),
    ("tags", lambda app: app.remember(MIRA, "Mira pays by card.", tags=("visa", CARD))),
    (
        "relational_context",
        lambda app: app.remember(
            MIRA, "We trust.", kind="anchor", relational_context=RelationalContext(user_values=(CARD,))
        ),
    ),
)


@pytest.mark.parametrize(("field", "store"), PARTS, ids=[field for field, _ in PARTS])
def test_a_secret_in_another_part_is_named(
    app: MemoryApp, owner: Engine, field: str, store: Callable[[MemoryApp], Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        store(app)
    assert refused.value.field == field
    assert stored_texts(owner) == []


def test_every_door_refuses_alike(app: MemoryApp, runtime: Runtime, owner: Engine, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    kept = app.remember(MIRA, "Mira has a card.")
    words = SECRETS[0]

    answers = [
        client.post(f"{BASE}/memories", json={"text": words}),
        client.post(f"{BASE}/facts", json={"subject": "Mira", "relation": "has_card", "object": CARD}),
        client.post(f"/v1/memories/{kept.id}/correct", json={"text": words}),
        client.post("/v1/agents/ada/memories", json={"text": words, "kind": "core"}),
    ]
    tool = app.call_tool(CHAT, "store_memory", {"text": words})
    (ticket,) = client.post(
        f"{BASE}/sessions/chat/turns",
        json={"role": "user", "content": f"Please remember that my visa is {CARD}."},
    ).json()["tickets"]
    finder.drain(runtime)
    read = client.get(f"/v1/turns/{ticket['id']}").json()

    assert [answer.status_code for answer in answers] == [422] * 4
    assert {answer.json()["error"]["field"] for answer in answers} == {"text", "object"}
    assert tool.is_error and "never remembered" in tool.text
    assert read["stage"] == "extracted" and read["reason"] and not read["memory_ids"]
    assert stored_texts(owner) == ["Mira has a card."]


def test_what_the_policy_takes_out_is_no_reason_to_refuse(app: MemoryApp, owner: Engine) -> None:
    app.change_agent("ada", policy={"redaction": "mask"})
    app.remember(MIRA, SECRETS[0])
    assert stored_texts(owner) == ["Mira's visa is [card]."]
