"""Agents on the page: the persona with its preview, the policy and the default memories, as the API takes them."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from page_visitor import Visitor, read
from sqlalchemy import Engine

from memory_app.agents import agents
from memory_app.agents.agents import Agent, AgentChange
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys

NAME = "ada/<b>1</b>"
ADDRESS = "/agents/ada%2F%3Cb%3E1%3C%2Fb%3E"

PERSONA: dict[str, Any] = {
    "name": "Ada <i>Lovelace</i>",
    "description": "Counts.\nAnd counts.",
    "style": "technical",
    "tone": ["direct", "playful"],
    "length": "concise",
    "structure": "bulleted",
    "codeBlocks": "true",
    "trait_name": ["exact", "", ""],
    "trait_description": ["to the digit", "", ""],
    "trait_intensity": ["9.5", "5", "5"],
}


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, owner: Engine, tenant: int) -> Visitor:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    visitor = Visitor(app)
    visitor.log_in(key)
    return visitor


def stored(runtime: Runtime, tenant: int) -> Agent:
    return agents.agent(runtime, tenant, Scope(NAME))


def filled(visitor: Visitor) -> dict[str, list[str]]:
    """The fields of the form on the page, as a browser would send them unchanged."""
    fields: dict[str, list[str]] = {}
    elements = read(visitor.html).elements
    for place, (tag, attributes) in enumerate(elements):
        name = attributes.get("name")
        if not name or name in ("token", "viewport", "color-scheme", "referrer", "htmx-config"):
            continue
        is_box = attributes.get("type") == "checkbox"
        if tag == "input" and (not is_box or "checked" in attributes):
            fields.setdefault(name, []).append(attributes.get("value") or "")
        if tag == "select":
            options = []
            for inner, its in elements[place + 1 :]:
                if inner != "option":
                    break
                options.append(its)
            chosen = [its for its in options if "selected" in its] or options[:1]
            fields.setdefault(name, []).append(chosen[0].get("value") or "")
    return fields


def test_a_new_agent_is_made_by_saving_its_persona(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    answer = visitor.get(f"/agents?agent={ADDRESS.removeprefix('/agents/')}")
    assert answer.url.raw_path.decode() == "/ui" + ADDRESS
    assert "new: saving makes it" in visitor.text and "<b>1" not in visitor.html

    visitor.send(ADDRESS + "/persona", **PERSONA)

    assert "The persona is saved" in visitor.text
    assert "Trait exact, 9.5 of 10: to the digit" in visitor.text, "the preview"
    assert "<i>Lovelace" not in visitor.html
    persona = stored(runtime, tenant).persona
    assert persona.as_dict() == {
        "name": "Ada <i>Lovelace</i>",
        "description": "Counts.\nAnd counts.",
        "style": "technical",
        # In the order of the form or of the names: both say the same.
        "tone": list(persona.tone),
        "traits": [{"name": "exact", "description": "to the digit", "intensity": 9.5}],
        "preferences": {
            "length": "concise",
            "structure": "bulleted",
            "examples": False,
            "codeBlocks": True,
        },
    }
    assert sorted(persona.tone) == ["direct", "playful"]
    entries = list(audit.all_entries(runtime, tenant))
    assert [(entry.action, entry.agent, entry.outcome) for entry in entries] == [
        ("agent.change", NAME, "begun"),
        ("agent.change", NAME, "done"),
    ]
    visitor.get("/agents")
    assert NAME in visitor.text and f'href="/ui{ADDRESS}"' in visitor.html


@pytest.mark.parametrize(
    ("change", "field", "id"),
    [
        ({"name": " "}, "persona.name", "name"),
        ({"name": "x" * 101}, "persona.name", "name"),
        ({"style": "rude"}, "persona.style", "style"),
        ({"trait_intensity": ["11", "", ""]}, "persona.traits[0].intensity", "intensity-1"),
        ({"trait_intensity": ["much", "", ""]}, "persona.traits[0].intensity", "intensity-1"),
        ({"trait_name": ["", "", ""]}, "persona.traits[0].name", "trait-1"),
    ],
)
def test_a_field_that_does_not_fit_is_marked_and_nothing_stored(
    runtime: Runtime, tenant: int, visitor: Visitor, change: dict[str, Any], field: str, id: str
) -> None:
    agents.change_agent(
        runtime, tenant, Scope(NAME), change=AgentChange(frozenset({"persona"}), {"template": "casual"})
    )
    before = stored(runtime, tenant)
    visitor.get(ADDRESS)

    answer = visitor.send(ADDRESS + "/persona", **(PERSONA | change))

    assert answer.status_code in (413, 422)
    assert field in visitor.text
    marked = [its for _, its in read(visitor.html).elements if "aria-invalid" in its]
    assert [(its["id"], its["aria-describedby"]) for its in marked] == [(id, f"{id}-wrong")]
    assert f'id="{id}-wrong"' in visitor.html
    assert "And counts." in visitor.text, "what was filled in is still there"
    assert stored(runtime, tenant) == before
    assert [entry.outcome for entry in audit.all_entries(runtime, tenant)] in (
        ["begun", "invalid_input"],
        ["begun", "too_large"],
    )


def test_a_preview_shows_the_form_and_stores_nothing(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    visitor.get(ADDRESS)
    page = visitor.html
    visitor.send(ADDRESS + "/persona/preview", **PERSONA)
    assert "Style: technical" in visitor.text and "<form" in visitor.html

    visitor.html = page
    visitor.client.headers["HX-Request"] = "true"
    visitor.send(ADDRESS + "/persona/preview", **PERSONA)
    assert "Style: technical" in visitor.text and "<form" not in visitor.html
    visitor.html = page
    assert visitor.send(ADDRESS + "/persona/preview", **(PERSONA | {"name": ""})).status_code == 422
    assert "persona.name" in visitor.text and "<h1" not in visitor.html

    del visitor.client.headers["HX-Request"]
    assert "new: saving makes it" in visitor.get(ADDRESS).text
    assert list(audit.all_entries(runtime, tenant)) == []


def test_a_template_fills_the_form_and_the_default_comes_back(
    runtime: Runtime, tenant: int, visitor: Visitor
) -> None:
    visitor.get(ADDRESS)
    visitor.send(ADDRESS + "/persona", **PERSONA)
    visitor.get("/agents/other")
    default = visitor.text.split("What the model reads")[1]

    visitor.get(ADDRESS + "?template=creative")
    assert "Style: creative" in visitor.text
    assert stored(runtime, tenant).persona.style == "technical"
    assert visitor.get(ADDRESS + "?template=..%2F..").status_code == 422
    visitor.get(ADDRESS)
    visitor.send(ADDRESS + "/persona/reset")
    shown = visitor.text.split("What the model reads")[1].split("Back to")[0]
    assert shown.strip() == default.strip()


def test_the_policy_is_sent_back_as_it_is_shown(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    visitor.get(ADDRESS + "/policy")
    visitor.send(
        ADDRESS + "/policy",
        **filled(visitor)
        | {
            "extraction": "off",
            "after_turns": "7",
            "idle_seconds": "1.5",
            "weights.similarity": "0.9",
            "single_valued_relations": "takes_medicine\n\nowns",
            "keep": "doses\ntimes",
            "entity_types": "medicine: thing",
            "redaction": "mask",
            "redaction_kinds": ["iban", "card"],
            "strict": "true",
            "retention.turns": "30",
        },
    )
    assert "The policy is saved" in visitor.text
    policy = stored(runtime, tenant).policy
    assert (policy.extraction, policy.after_turns, policy.idle_seconds, policy.strict, policy.memory) == (
        "off",
        7,
        1.5,
        True,
        True,
    )
    assert dict(policy.weights) == {"similarity": 0.9}
    assert policy.single_valued_relations == ("takes_medicine", "owns")
    assert policy.instructions.as_dict()["entity_types"] == {"medicine": "thing"}
    assert policy.redaction_kinds == ("iban", "card")
    assert dict(policy.retention) == {"turns": 30}

    areas = {
        "single_valued_relations": "takes_medicine\nowns",
        "keep": "doses\ntimes",
        "entity_types": "medicine: thing",
    }
    visitor.send(ADDRESS + "/policy", **filled(visitor) | areas)
    assert stored(runtime, tenant).policy == policy


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("after_turns", "0", "policy.after_turns"),
        ("after_turns", "many", "policy.after_turns"),
        ("max_memories", "1e99", "policy.max_memories"),
        ("idle_seconds", "-1", "policy.idle_seconds"),
        ("weights.similarity", "100", "policy.weights.similarity"),
        ("weights.colour", "1", "policy.weights.colour"),
        ("single_valued_relations", "Not one!", "policy.single_valued_relations[0]"),
        ("entity_types", "medicine", "policy.instructions.entity_types"),
        ("never", "x" * 5_000, "policy.instructions.never[0]"),
        ("redaction_kinds", "shoe size", "policy.redaction_kinds[0]"),
        ("retention.episode", "0", "policy.retention.episode"),
    ],
)
def test_a_policy_that_does_not_fit_names_the_field(
    visitor: Visitor, name: str, value: str, field: str
) -> None:
    visitor.get(ADDRESS + "/policy")

    answer = visitor.send(ADDRESS + "/policy", **filled(visitor) | {name: value})

    assert answer.status_code in (413, 422)
    assert field in visitor.text


def test_default_memories_are_changed_row_by_row(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    visitor.get(ADDRESS + "/defaults")
    rows: dict[str, list[str]] = {
        "text": ["Never gives medical advice.", "", "Likes <u>tea</u>."],
        "kind": ["core", "core", "identity"],
        "subtype": ["", "", ""],
        "importance": ["9", "", ""],
        "importance_scale": ["", "", ""],
        "tags": ["safety, health", "", ""],
        "pinned": ["0"],
    }
    visitor.send(ADDRESS + "/defaults", **rows)
    memories = stored(runtime, tenant).default_memories
    assert [(memory["text"], memory["kind"], memory["pinned"]) for memory in memories] == [
        ("Never gives medical advice.", "core", True),
        ("Likes <u>tea</u>.", "identity", False),
    ]
    assert memories[0]["tags"] == ["safety", "health"] and memories[0]["importance"] == 9
    assert "<u>" not in visitor.html

    bad = rows | {"kind": ["core", "core", "nonsense"]}
    answer = visitor.send(ADDRESS + "/defaults", **bad)
    assert answer.status_code == 422
    assert "default_memories[1]" in visitor.text
    assert stored(runtime, tenant).default_memories == memories


def test_who_may_only_read_changes_no_agent(
    runtime: Runtime, app: FastAPI, owner: Engine, tenant: int
) -> None:
    with owner.begin() as connection:
        reader = keys.create(connection, "acme")[1]
        own = keys.create(connection, "acme", rights=keys.RIGHTS, agent="bob")[1]
        person = keys.create(connection, "acme", rights=keys.RIGHTS, user="mira")[1]
    visitor = Visitor(app)
    visitor.log_in(reader)
    visitor.get(ADDRESS)
    assert "needs the right admin" in visitor.text
    for part in ("/persona", "/persona/reset", "/policy", "/defaults"):
        assert visitor.send(ADDRESS + part, **PERSONA).status_code == 403, part
        visitor.get(ADDRESS)
    for key in (own, person):
        other = Visitor(app)
        other.log_in(key)
        assert other.get("/agents").status_code == 403
        assert other.get(ADDRESS).status_code == 403
        assert other.send(ADDRESS + "/persona", **PERSONA).status_code == 403
    assert "new: saving makes it" in visitor.get(ADDRESS).text
