"""The expression state of a pair: persona, what tunes it, and the mood of the last interaction."""

from __future__ import annotations

import pytest
from redis import Redis
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.errors import NotFound
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

CHAT, MIRA = Scope("ada", "mira", "chat"), Scope("ada", "mira")


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def flush(runtime: Runtime) -> None:
    with Redis.from_url(runtime.settings.redis.url.get_secret_value(), protocol=2) as client:
        for key in client.scan_iter(f"{runtime.settings.redis.prefix}*"):
            client.delete(key)


def test_it_tells_persona_tuning_and_mood(app: MemoryApp) -> None:
    app.change_agent("ada", persona={"name": "Ada", "style": "casual"})
    app.record(CHAT, "What a day!", emotional_tone="joy")
    tuned = app.remember(MIRA, "Keep answers short for Mira.", kind="expression")
    app.remember(MIRA, "Mira lives in Lisbon.")

    state = app.expression(MIRA)
    assert state.persona["name"] == "Ada" and state.persona["style"] == "casual"
    assert [memory.id for memory in state.adjustments] == [tuned.id]
    assert state.tone == "joy"
    assert state.session == "chat"
    assert state.last_interaction_at is not None and state.session_started_at is not None


def test_without_redis_it_is_read_from_the_tables(app: MemoryApp, runtime: Runtime) -> None:
    app.record(CHAT, "What a day!", emotional_tone="joy")
    before = app.expression(MIRA)
    flush(runtime)
    after = app.expression(MIRA)
    assert (after.tone, after.session) == (before.tone, before.session)
    assert after.last_interaction_at is not None and before.last_interaction_at is not None
    assert abs((after.last_interaction_at - before.last_interaction_at).total_seconds()) < 5


def test_a_tone_in_the_producers_own_word_is_told(app: MemoryApp) -> None:
    app.record(CHAT, "Hm.", emotional_tone="wistful")
    assert app.expression(MIRA).tone == "wistful"


def test_a_pair_without_any_talk_has_the_persona_alone(app: MemoryApp) -> None:
    app.remember(MIRA, "Mira lives in Lisbon.")
    state = app.expression(MIRA)
    assert state.adjustments == () and state.tone is None and state.session is None
    assert state.last_interaction_at is None and state.persona["name"]
    with pytest.raises(NotFound):
        app.expression(Scope("ada", "nobody"))


def test_over_http(app: MemoryApp, runtime: Runtime, api_key: str) -> None:
    app.record(CHAT, "What a day!", emotional_tone="joy")
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    answer = client.get("/v1/agents/ada/users/mira/expression")
    assert answer.status_code == 200 and answer.json()["tone"] == "joy"
    assert client.get("/v1/agents/ada/users/nobody/expression").status_code == 404
