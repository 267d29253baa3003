"""An agent's instructions through every door: given, shown, sent to the model, and held whoever states something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import all_shards
import pytest
from commands import Memory
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app import MemoryApp, Scope
from memory_app.dispatch import finder
from memory_app.errors import InvalidInput, NotFound
from memory_app.main.http import create_app
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Extract, Settings
from memory_app.tenancy.rows import keys
from memory_app.testing import Rule, StubProvider

MIRA = Scope("Nova", "Mira", "chat")
WISHES: dict[str, Any] = {
    "keep": ["doses and times of medicines"],
    "never": ["salary, debts"],
    "entity_types": {"medicine": "thing"},
    "relations": ["takes_medicine"],
}
PATH = "/v1/agents/Nova"


@pytest.fixture
def client(runtime: Runtime, owner: Engine) -> TestClient:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[MemoryApp]:
    """An agent with a model and wishes."""
    parts: dict[str, Any] = {
        "chat": Chat(base_url=stub.base_url, model="small"),
        "extract": Extract(idle_seconds=0, max_age_seconds=0),
    }
    with MemoryApp(all_shards.at_work(build(settings.model_copy(update=parts))), tenant) as memory:
        memory.change_agent("Nova", policy={"extraction": "llm", "instructions": WISHES})
        yield memory


def test_single_fields_of_a_policy_are_changed_over_http(client: TestClient) -> None:
    assert client.patch(PATH, json={"policy": {}}).status_code == 404
    client.put(PATH, json={"policy": {"extraction": "off"}, "persona": {"name": "Nova", "style": "casual"}})
    changed = client.patch(PATH, json={"policy": {"instructions": WISHES}, "persona": {"style": "formal"}})
    assert changed.status_code == 200, changed.text
    shown = client.get(PATH).json()
    assert shown == changed.json()
    assert (shown["policy"]["extraction"], shown["policy"]["instructions"]) == ("off", WISHES)
    assert (shown["persona"]["name"], shown["persona"]["style"]) == ("Nova", "formal")
    # null puts one field back
    back = client.patch(PATH, json={"policy": {"instructions": None}}).json()["policy"]
    assert back["extraction"] == "off"
    assert back["instructions"] == {"keep": [], "never": [], "entity_types": {}, "relations": []}


def test_a_wish_that_is_wrong_is_named_and_nothing_is_changed(client: TestClient) -> None:
    client.put(PATH, json={"policy": {"extraction": "off"}})
    wrong = {"policy": {"extraction": "rules", "instructions": {"keep": ["my password is tulip"]}}}
    refused = client.patch(PATH, json=wrong)
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == "policy.instructions.keep[0]"
    assert client.get(PATH).json()["policy"]["extraction"] == "off"


def test_an_agent_is_shown_and_changed_by_command(memory: Memory, runtime: Runtime, tenant: int) -> None:
    app = MemoryApp(runtime, tenant)
    with pytest.raises(NotFound):
        app.agent("Nova")
    app.change_agent("Nova", policy={"extraction": "off"})
    wishes = json.dumps({"instructions": WISHES})
    changed = memory("agent", "Nova", "--tenant", "acme", "--policy", wishes, "--json").json
    assert changed["policy"] == app.agent("Nova").policy.as_dict()
    assert (changed["policy"]["extraction"], changed["policy"]["instructions"]) == ("off", WISHES)
    shown = memory("agent", "Nova", "--tenant", "acme").out
    assert f"policy.instructions = {json.dumps(WISHES)}" in shown
    assert "persona.style = " in shown
    refused = memory("agent", "Nova", "--tenant", "acme", "--policy", "[]")
    assert (refused.status, "--policy: a JSON object is required" in refused.err) == (1, True)
    absent = memory("agent", "Nova", "--tenant", "acme", "--policy", "nowhere.json")
    assert (absent.status, "no such file" in absent.err) == (2, True)


def test_wishes_go_to_the_model_and_hold_whatever_it_says(
    asking: MemoryApp, stub: StubProvider, owner: Engine
) -> None:
    said = ("I take Amlodipin every morning.", "My salary is 4,000 euros.", "Why is my salary so low?")
    facts = [
        {"text": "Mira takes Amlodipin every morning.", "evidence": ["@Amlodipin"]},
        {"text": "Mira's salary is 4,000 euros.", "evidence": ["@4,000"]},
        {"text": "Mira notes doses and times of medicines.", "evidence": ["@Amlodipin"]},
    ]
    lists: dict[str, Any] = {"insights": [], "identity_notes": [], "topics": [], "tones": []}
    stub.follow(Rule(path="/chat/completions", answer={**lists, "facts": facts}))
    tickets = [asking.record(MIRA, text) for text in said]
    finder.drain(asking.runtime)

    (request,) = [request for request in stub.requests if "chat" in request.path]
    assert "never: salary, debts" in str(request.body)
    # the question about it does not stay in the query graph, either
    assert [row.text for row in rows(owner, "SELECT text FROM memories")] == [facts[0]["text"]]
    assert asking.ticket(tickets[1].id).reason == "guarded: never to be kept for this agent"


def test_no_door_stores_what_is_never_kept(asking: MemoryApp) -> None:
    person = Scope("Nova", "Mira")
    kept = asking.remember(person, "Mira takes Amlodipin.")
    for state in (
        lambda: asking.remember(person, "Mira's salary is low."),
        lambda: asking.add_fact(person, "Mira", "has", "debts"),
        lambda: asking.correct(kept.id, "Mira has a debt."),
    ):
        with pytest.raises(InvalidInput) as refused:
            state()
        assert refused.value.field == "text"
    answer = asking.call_tool(person, "store_memory", {"text": "Mira's salary is low."})
    assert answer.is_error


def test_rules_leave_out_what_is_never_kept(asking: MemoryApp, stub: StubProvider, owner: Engine) -> None:
    asking.amend_agent("Nova", policy={"extraction": "rules"})
    ticket = asking.record(MIRA, "I work at the Debts Advice Centre.")
    other = asking.record(MIRA, "I have a dog called Bruno.")
    finder.drain(asking.runtime)
    assert asking.ticket(ticket.id).reason == "guarded: never to be kept for this agent"
    assert len(asking.ticket(other.id).memory_ids) >= 1
    assert not stub.requests
    assert not rows(owner, "SELECT text FROM memories WHERE text LIKE '%Debts%'")
