"""An agent whose memory is off: beside an older system, agent by agent."""

from __future__ import annotations

import pytest

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.errors import Conflict
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

CHAT = Scope("ada", "mira", "chat")
SAID = NewTurn(Role.USER, "I have a dog called Bruno.")


def test_memory_off_stops_recording_and_recall_and_loses_nothing(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, CHAT, [SAID])
    remember(runtime, tenant, Scope("ada", "mira"), statement=Statement("core", "Ada is kind.", pinned=True))
    change_agent(
        runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"policy"}), policy={"memory": False})
    )

    with pytest.raises(Conflict, match="memory is off"):
        record(runtime, tenant, CHAT, [SAID])
    assert recall(runtime, tenant, CHAT, query=RecallQuery("dog Bruno")).memories == ()
    window = context(runtime, tenant, CHAT, request=ContextRequest("dog", session="chat"))
    assert "Bruno" not in window.text
    assert "Ada is kind" not in window.text

    change_agent(
        runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"policy"}), policy={"memory": True})
    )
    assert "Bruno" in recall(runtime, tenant, CHAT, query=RecallQuery("dog Bruno")).memories[0].text
