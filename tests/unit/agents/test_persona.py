from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memory_app.agents.persona import (
    TEMPLATES,
    Persona,
    Preferences,
    Trait,
    load_template,
    parse_persona,
    parse_persona_json,
    render_persona,
)
from memory_app.errors import InvalidInput, TooLarge


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_four_templates_ship_and_are_valid(name):
    loaded = load_template(name)
    assert loaded.note is None
    assert parse_persona(json.loads(json.dumps(loaded.persona.as_dict()))) == loaded.persona


def test_the_templates_differ():
    assert len({render_persona(load_template(name).persona) for name in TEMPLATES}) == len(TEMPLATES)


@pytest.mark.parametrize("name", ["pirate", "", "../settings", "default.json"])
def test_a_missing_template_means_the_default_and_a_note(name):
    loaded = load_template(name)
    assert loaded.persona == load_template("default").persona
    assert "default" in (loaded.note or "")


def test_a_name_is_enough():
    assert parse_persona({"name": " Ada "}) == Persona(name="Ada")


def test_everything_that_is_set_is_rendered():
    persona = Persona(
        name="Ada",
        description="Patient\nand exact.",
        style="technical",
        tone=("direct", "friendly"),
        traits=(Trait("dry", "never more than one joke", 3), Trait("kind", "", 7.5)),
        preferences=Preferences("concise", "step-by-step", examples=False, code_blocks=False),
    )
    assert render_persona(persona).splitlines() == [
        "Persona Ada: Patient and exact.",
        "Style: technical; tone: direct, friendly.",
        "Trait dry, 3 of 10: never more than one joke",
        "Trait kind, 7.5 of 10",
        "Answers: concise, step-by-step, without examples, no code blocks.",
    ]


def persona(**changes: object) -> dict[str, object]:
    return {"name": "Ada", **changes}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], "persona"),
        (None, "persona"),
        ({}, "persona.name"),
        ({"name": "  "}, "persona.name"),
        ({"name": 7}, "persona.name"),
        (persona(description=None), "persona.description"),
        (persona(mood="good"), "persona.mood"),
        (persona(style="rude"), "persona.style"),
        (persona(style=["casual"]), "persona.style"),
        (persona(tone="friendly"), "persona.tone"),
        (persona(tone=["friendly", "angry"]), "persona.tone[1]"),
        (persona(traits={"name": "dry"}), "persona.traits"),
        (persona(traits=["dry"]), "persona.traits[0]"),
        (persona(traits=[{"name": "dry"}, {"intensity": 5}]), "persona.traits[1].name"),
        (persona(traits=[{"name": "dry"}, {"name": "kind", "intensity": 11}]), "persona.traits[1].intensity"),
        (persona(traits=[{"name": "dry", "intensity": True}]), "persona.traits[0].intensity"),
        (persona(traits=[{"name": "dry", "intensity": float("nan")}]), "persona.traits[0].intensity"),
        (persona(traits=[{"name": "dry", "colour": "red"}]), "persona.traits[0].colour"),
        (persona(preferences=["concise"]), "persona.preferences"),
        (persona(preferences={"length": "long"}), "persona.preferences.length"),
        (persona(preferences={"structure": "tree"}), "persona.preferences.structure"),
        (persona(preferences={"examples": "yes"}), "persona.preferences.examples"),
        (persona(preferences={"codeBlocks": 1}), "persona.preferences.codeBlocks"),
        (persona(preferences={"code_blocks": True}), "persona.preferences.code_blocks"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_field(given, field):
    with pytest.raises(InvalidInput) as refused:
        parse_persona(given)
    assert refused.value.field == field
    assert refused.value.message.startswith(field)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (persona(name="a" * 101), "persona.name"),
        (persona(description="a" * 2_001), "persona.description"),
        (persona(traits=[{"name": "dry"}] * 21), "persona.traits"),
    ],
)
def test_a_limit_that_was_passed_is_named(given, field):
    with pytest.raises(TooLarge) as refused:
        parse_persona(given)
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["", "{", '{"name": "Ada",}', b"\xff\xfe", "[" * 100_000])
def test_broken_json_is_a_clear_error(text):
    with pytest.raises(InvalidInput) as refused:
        parse_persona_json(text)
    assert refused.value.field == "persona"
    assert "JSON" in refused.value.message


def test_broken_json_says_where():
    with pytest.raises(InvalidInput, match="line 2, column 11"):
        parse_persona_json('{\n  "name": : "Ada"}')


def test_json_that_is_no_object_is_an_error():
    with pytest.raises(InvalidInput, match="object"):
        parse_persona_json("[1]")


def test_a_template_by_name_stands_in_for_what_is_absent() -> None:
    casual = load_template("casual").persona
    assert parse_persona({"template": "casual"}) == casual
    assert parse_persona({"template": "casual", "name": "Ada"}) == replace(casual, name="Ada")
    with pytest.raises(InvalidInput) as refused:
        parse_persona({"template": "rude"})
    assert refused.value.field == "persona.template"
