"""``ask_memory``: a question that the agent's language model answers from memory."""

from __future__ import annotations

from memory_app.ask.ask import ask
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tools.answers import ToolAnswer
from memory_app.tools.arguments import AskMemory


def ask_memory(runtime: Runtime, tenant_id: int, scope: Scope, arguments: AskMemory) -> ToolAnswer:
    """Answer from what is remembered of the person, or say that it is not known."""
    answered = ask(runtime, tenant_id, Scope(scope.agent, scope.user), question=arguments.question)
    sentences = [
        {"text": sentence.text, "ids": [str(id) for id in sentence.ids]} for sentence in answered.sentences
    ]
    return ToolAnswer(
        {
            "known": answered.known,
            "sentences": sentences,
            "degraded": list(answered.degraded),
            "display_text": answered.text,
        }
    )
