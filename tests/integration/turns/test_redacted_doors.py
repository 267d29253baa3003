"""What an agent's redaction takes out, at every door: before it is stored, and before a provider is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import all_shards
import pytest
from redis import Redis
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Conflict, Erased, InvalidInput
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Embedding, Extract, Settings
from memory_app.testing import StubProvider
from memory_app.transfer import person, snapshots
from memory_app.transfer.export import export_lines, import_lines
from memory_app.turns.relay import relay

CARD, MAIL, PHONE = "4111 1111 1111 1111", "mira.k@example.com", "+49 170 1234567"
SECRETS = (CARD, CARD.replace(" ", ""), MAIL, PHONE)
WORDS = f"My card is {CARD}, write to {MAIL} or call {PHONE}."
MASKED = "My card is [card], write to [email] or call [phone]."
COUNTS = {"card": 1, "email": 1, "phone": 1}
MESSAGE = {"agent": "ada", "user": "mira", "session": "chat", "role": "user", "content": WORDS}
CHAT, MIRA = Scope("ada", "mira", "chat"), Scope("ada", "mira")


@pytest.fixture
def masking(runtime: Runtime, tenant: int) -> MemoryApp:
    app = MemoryApp(runtime, tenant)
    app.change_agent("ada", policy={"redaction": "mask"})
    return app


def leaks(owner: Engine) -> list[str]:
    """Where one of the secrets stands: every column of every row of every schema."""
    places = []
    with owner.connect() as connection:
        tables = connection.execute(
            text(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
                "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            )
        ).scalars()
        for table in tables.all():
            for secret in SECRETS:
                found = connection.execute(
                    text(f"SELECT count(*) FROM {table} t WHERE strpos(CAST(t AS text), :secret) > 0"),
                    {"secret": secret},
                ).scalar_one()
                places += [f"{table}: {secret}"] if found else []
    return places


def leaks_in_redis(runtime: Runtime) -> list[str]:
    settings = runtime.settings.redis
    places = []
    with Redis.from_url(settings.url.get_secret_value(), protocol=2) as client:
        for key in client.scan_iter(f"{settings.prefix}*"):
            dump = client.dump(key) or b""
            places += [f"{key!r}" for secret in SECRETS if secret.encode() in dump]
    return places


def stored_turns(owner: Engine) -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT text, metadata, redacted FROM turns ORDER BY id")))


def test_every_door_masks_before_anything_is_stored(
    masking: MemoryApp, runtime: Runtime, owner: Engine, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    base = "/v1/agents/ada/users/mira"
    metadata = {"note": WORDS, "card": 4111111111111111, "password": "sunshine", "deep": [{"mail": MAIL}]}

    answer = client.post(
        f"{base}/sessions/chat/turns", json={"role": "user", "content": WORDS, "metadata": metadata}
    )
    ticket = masking.record(CHAT, WORDS, emotional_tone=f"glad {PHONE}")
    relay(runtime, {**MESSAGE, "api_key": api_key}, message_id="m-1")
    told = masking.remember(MIRA, f"Mira's card is {CARD}.", tags=(MAIL,))
    said = client.post(f"{base}/memories", json={"text": f"Mira is reached at {MAIL}."}).json()
    masking.add_fact(MIRA, "Mira", "has_phone", PHONE)
    tool = masking.call_tool(CHAT, "store_memory", {"text": f"Call Mira at {PHONE}."})
    corrected = masking.correct(told.id, f"Mira's other card is {CARD}.")
    masking.feedback(MIRA, corrected.id, "down", note=f"wrong: {CARD}")
    finder.drain(runtime)
    masking.recall(MIRA, f"what about {CARD}?")
    masking.context(CHAT, f"and {MAIL}?")

    assert answer.json()["tickets"][0]["redacted"]["email"] == 3
    assert dict(ticket.redacted) == COUNTS | {"phone": 2}
    assert any("card 1" in note for note in told.notes)
    assert any("email 1" in note for note in said["notes"])
    assert not tool.is_error
    turns = stored_turns(owner)
    assert [row.text for row in turns] == [MASKED] * 3
    assert turns[0].metadata == {
        "note": MASKED,
        "card": "[card]",
        "password": "[password]",
        "deep": [{"mail": "[email]"}],
    }
    assert turns[2].redacted == COUNTS
    listed = client.get(f"{base}/sessions/chat/turns", params={"limit": 10}).json()["turns"]
    assert listed[-1]["redacted"] == COUNTS
    assert leaks(owner) == []
    assert leaks_in_redis(runtime) == []


def test_the_agents_own_words_and_names_stay(masking: MemoryApp, owner: Engine) -> None:
    masking.amend_agent("ada", policy={"redaction": "drop"})
    masking.change_agent(
        "ada",
        policy={"redaction": "drop"},
        default_memories=[{"text": "Support is at help@example.org.", "kind": "core"}],
    )
    masking.record(Scope("ada", "mira@example.org", "chat"), f"It is {CARD}")
    masking.record(Scope("bob", "mira", "chat"), WORDS)
    finder.drain(masking.runtime)
    window = masking.context(Scope("ada", "mira@example.org", "chat")).text
    assert "help@example.org" in window
    assert [row.text for row in stored_turns(owner)] == ["It is", WORDS]


def test_a_retry_is_known_before_and_after_the_switch(masking: MemoryApp) -> None:
    first = masking.record(CHAT, WORDS, idempotency_key="k-1")
    assert masking.record(CHAT, WORDS, idempotency_key="k-1").id == first.id
    masking.amend_agent("ada", policy={"redaction": None})
    open_ticket = masking.record(CHAT, WORDS, idempotency_key="k-2")
    masking.amend_agent("ada", policy={"redaction": "mask"})
    again = masking.record(CHAT, WORDS, idempotency_key="k-2")
    assert (again.id, again.duplicate) == (open_ticket.id, True)
    with pytest.raises(Conflict):
        masking.record(CHAT, f"Another text, {CARD}", idempotency_key="k-1")


def test_an_erased_turn_stays_erased_under_redaction(masking: MemoryApp) -> None:
    ticket = masking.record(CHAT, WORDS, idempotency_key="k-1")
    masking.forget_turn(ticket.id)
    with pytest.raises(Erased):
        masking.record(CHAT, WORDS, idempotency_key="k-1")


def test_an_import_is_redacted_and_still_found(
    masking: MemoryApp, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    whole = Scope("zoe", "mira", "chat")
    masking.record(whole, WORDS)
    masking.record(whole, "I keep bees in Porto.")
    masking.remember(Scope("zoe", "mira"), f"Mira orders with {MAIL} at the bakery.", tags=(PHONE,))
    masking.add_fact(Scope("zoe", "mira"), "Mira", "has_phone", PHONE)
    finder.drain(runtime)
    document = json.loads(json.dumps(snapshots.export(runtime, tenant, Scope("zoe", "mira"))))
    with closing(export_lines(runtime, tenant, agent="zoe", user="mira", with_vectors=False)) as lines:
        exported = list(lines)
    masking.forget("mira")
    finder.drain(runtime)

    imported = snapshots.load(runtime, tenant, Scope("ada", "ann"), document)
    finder.drain(runtime)
    assert imported.counts["turns"] == 2
    assert leaks(owner) == []
    hits = masking.recall(Scope("ada", "ann"), "bakery", tiers=("facts",)).memories
    assert "orders with [email] at the bakery" in hits[0].text
    turns = masking.recall(Scope("ada", "ann"), "write to", tiers=("daily-logs",)).memories
    assert any(MASKED in hit.text for hit in turns)

    # The same ids once more, for the agent that now masks.
    masking.forget("ann")
    masking.change_agent("zoe", policy={"redaction": "mask"})
    import_lines(runtime, tenant, exported, new_consent=True)
    finder.drain(runtime)
    assert leaks(owner) == []


def test_an_import_takes_no_counts_that_are_none(masking: MemoryApp, runtime: Runtime, tenant: int) -> None:
    masking.record(CHAT, WORDS)
    document = json.loads(json.dumps(snapshots.export(runtime, tenant, MIRA)))
    document["turns"][0]["redacted"] = {"card": "many"}
    with pytest.raises(InvalidInput) as refused:
        snapshots.load(runtime, tenant, Scope("zoe", "ann"), document)
    assert refused.value.field == "turns[0].redacted"


def test_a_provider_sees_nothing_also_of_what_was_stored_before(
    settings: Settings, owner: Engine, tenant: int
) -> None:
    with StubProvider() as stub:
        parts: dict[str, Any] = {
            "chat": Chat(base_url=stub.base_url, model="small"),
            "extract": Extract(idle_seconds=0, max_age_seconds=0),
            "embedding": Embedding(
                provider="compatible", base_url=stub.base_url, model="small", dimensions=1536
            ),
        }
        runtime = all_shards.at_work(build(settings.model_copy(update=parts)))
        try:
            app = MemoryApp(runtime, tenant)
            # Off: the turn is stored as it is, and waits to be embedded and extracted.
            app.change_agent("ada", policy={"extraction": "llm"})
            app.record(CHAT, WORDS)
            app.amend_agent("ada", policy={"redaction": "mask"})
            app.record(CHAT, f"Another: {WORDS}")
            stub.reset()
            finder.drain(runtime)
            app.remember(MIRA, f"Mira pays with {CARD}.")
            app.recall(MIRA, f"who has {CARD}?")
            app.context(CHAT, f"who writes from {MAIL}?")
            app.facts(MIRA, query=f"whose is {PHONE}?")
            app.similar_queries(MIRA, f"whose is {PHONE}?")
            sent = [json.dumps(request.body, ensure_ascii=False) for request in stub.requests]
        finally:
            runtime.close()
    paths = {request.path.rpartition("/")[2] for request in stub.requests}
    assert paths >= {"embeddings", "completions"}
    assert len(sent) >= 5
    assert [body for body in sent for secret in SECRETS if secret in body] == []
    assert any("[card]" in body for body in sent)


def test_the_report_about_a_person_counts_what_was_taken_out(
    masking: MemoryApp, runtime: Runtime, tenant: int
) -> None:
    masking.record(CHAT, WORDS)
    masking.record(CHAT, f"And again {CARD}.")
    report = person.report_user(runtime, tenant, "mira")
    assert dict(report.agents[0].redacted) == {"card": 2, "email": 1, "phone": 1}
    assert "taken out before it was stored: 2 card, 1 email, 1 phone" in person.as_text(report)


def test_only_the_kinds_of_the_policy_are_taken_out(masking: MemoryApp, owner: Engine) -> None:
    masking.amend_agent("ada", policy={"redaction_kinds": ["card"]})
    masking.record(CHAT, WORDS)
    assert stored_turns(owner)[0].text == WORDS.replace(CARD, "[card]")


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"redaction": "blur"}, "policy.redaction"),
        ({"redaction": True}, "policy.redaction"),
        ({"redaction_kinds": []}, "policy.redaction_kinds"),
        ({"redaction_kinds": ["card", "blood"]}, "policy.redaction_kinds[1]"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(
    masking: MemoryApp, policy: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        masking.change_agent("ada", policy=policy)
    assert refused.value.field == field


@pytest.fixture(autouse=True)
def nothing_of_it_in_logs(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    output = "".join(capfd.readouterr())
    assert [secret for secret in SECRETS if secret in output] == []
