"""Memories that all users of an agent are shown, over HTTP and through the client's parameters."""

from __future__ import annotations

from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

PATH = "/v1/agents/ada/memories"


def test_what_is_about_the_agent_is_shown_to_all(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    stored = client.post(PATH, json={"text": "Never give medical dosage advice.", "kind": "core"})
    assert stored.status_code == 201 and stored.json()["outcome"] == "inserted"
    app = MemoryApp(runtime, tenant)
    for user in ("mira", "bob"):
        app.record(Scope("ada", user, "chat"), "Hello there, how are you?")
        assert "Never give medical dosage advice." in app.context(Scope("ada", user, "chat")).text
    listed = client.get(PATH).json()["memories"]
    assert [memory["text"] for memory in listed] == ["Never give medical dosage advice."]
    assert client.get("/v1/agents/nobody/memories").status_code == 404


def test_another_kind_needs_the_explicit_word(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    fact = {"text": "The office closes at six.", "kind": "fact"}
    refused = client.post(PATH, json=fact)
    assert refused.status_code == 422 and "shared" in refused.json()["error"]["message"]
    assert client.post(PATH, json=fact | {"shared": True}).status_code == 201
    missing = client.post(PATH, json={"text": "No kind."})
    assert missing.status_code == 422 and missing.json()["error"]["field"] == "kind"
    unknown = client.post(PATH, json=fact | {"shared": True, "session": "chat"})
    assert unknown.status_code == 422 and unknown.json()["error"]["field"] == "session"
