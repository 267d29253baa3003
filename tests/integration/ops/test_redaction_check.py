"""What the doctor says of redaction: how many agents have it, which kinds, and who reads the texts of the others."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from memory_app.app import MemoryApp
from memory_app.ops import redaction_check
from memory_app.ops.check import State
from memory_app.runtime import Runtime
from memory_app.settings import Chat, Embedding, Settings


def finding(runtime: Runtime, tenants: tuple[tuple[int, str], ...], settings: Settings) -> str:
    (check,) = redaction_check.look(settings, runtime.engine, tenants)
    assert check.state is State.OK
    return check.found


@pytest.mark.one_shard
def test_the_doctor_says_how_many_agents_redact_what(
    runtime: Runtime, settings: Settings, tenant: int, other_tenant: int
) -> None:
    tenants = ((tenant, "acme"), (other_tenant, "globex"))
    assert list(redaction_check.look(settings, runtime.engine, tenants)) == []
    acme, globex = MemoryApp(runtime, tenant), MemoryApp(runtime, other_tenant)
    acme.change_agent("ada", policy={})
    globex.change_agent("zoe", policy={"redaction": "off"})
    assert finding(runtime, tenants, settings) == (
        "off for all of 2 agents; no provider is set that texts would go to"
    )
    acme.amend_agent("ada", policy={"redaction": "mask"})
    assert finding(runtime, tenants, settings).startswith("1 of 2 agents take out all kinds;")
    globex.amend_agent("zoe", policy={"redaction": "drop", "redaction_kinds": ["card", "iban"]})
    found = finding(runtime, tenants, settings)
    assert found.startswith("2 of 2 agents take out: ")
    assert "card (2)" in found
    assert "email (1)" in found
    # A name of a tenant or an agent is not part of it.
    assert "acme" not in found
    assert "zoe" not in found


@pytest.mark.one_shard
def test_the_doctor_names_the_providers_that_read_the_rest(
    runtime: Runtime, settings: Settings, tenant: int
) -> None:
    MemoryApp(runtime, tenant).change_agent("ada", policy={})
    chat = Chat(base_url="http://127.0.0.1:1/v1", model="small", key=SecretStr("k"))
    with_chat = settings.model_copy(update={"chat": chat})
    assert finding(runtime, ((tenant, "acme"),), with_chat) == (
        "off for the one agent; without it, texts go to the language model as they are"
    )
    remote = Embedding.model_construct(provider="openai")
    with_both = with_chat.model_copy(update={"embedding": remote})
    assert finding(runtime, ((tenant, "acme"),), with_both).endswith(
        "without it, texts go to the language model and the embedder as they are"
    )
