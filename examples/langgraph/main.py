"""A graph of LangGraph whose long-term store is this memory.

    pip install ../.. -r requirements.txt
    export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
    python main.py monday "I have a dog called Bruno."
    python main.py friday "What is my dog called?"

`MemoryStore` says what of the store interface maps. Checkpoints hold the state of a graph and are nothing about a
person: use a checkpointer of LangGraph, here the one in the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp

from memory_app.client import MemoryClient, Scope
from memory_app.errors import NotFound
from memory_app.memories.answers import MemoryAnswer
from memory_app.recall.answers import HitAnswer

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
KEY_TAG = "key:"
"""Beginning of the tag that holds an item's key."""


class MemoryStore(BaseStore):
    """LangGraph's store over the memories of people.

    A namespace is (agent, user). A value is {"text": a statement}, perhaps with a "kind". A search finds what was put
    there and what the memory extracted from conversations; the key of the latter is its id, with which `MemoryClient`
    reads or forgets it. Filters, further fields, lists of namespaces and times to live do not map and are refused.
    """

    def __init__(self, memory: MemoryClient) -> None:
        self.memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._do(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _do(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case PutOp():
                self._put(op)
                return None
            case _:
                raise NotImplementedError("namespaces are agents and users: MemoryClient lists them")

    def _get(self, op: GetOp) -> Item | None:
        row = self._row(op.namespace, op.key)
        if row is None:
            return None
        value = {"text": row.text, "kind": row.kind}
        return Item(
            value=value,
            key=op.key,
            namespace=op.namespace,
            created_at=row.created_at,
            updated_at=row.last_seen or row.created_at,
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.filter:
            raise NotImplementedError("filter: a statement has no fields to filter by")
        try:
            # Entities and turns are found, too, unless only facts are asked for.
            answer = self.memory.recall(
                scope_of(op.namespace_prefix), op.query, limit=op.limit + op.offset, tiers=["facts"]
            )
        except NotFound:
            return []
        return [searched(op.namespace_prefix, hit) for hit in answer.memories[op.offset :]]

    def _put(self, op: PutOp) -> None:
        if op.ttl is not None:
            raise NotImplementedError("ttl: a memory fades, or ends when another one takes its place")
        row = self._row(op.namespace, op.key)
        if op.value is None:
            if row is not None:
                self.memory.forget_memory(row.id)
        elif row is not None:
            self.memory.correct(row.id, text_of(op.value))
        else:
            # Not united with what says the same: that has another key.
            self.memory.remember(
                scope_of(op.namespace),
                text_of(op.value),
                kind=op.value.get("kind", "fact"),
                tags=[KEY_TAG + op.key],
                deduplicate=False,
            )

    def _row(self, namespace: tuple[str, ...], key: str) -> MemoryAnswer | None:
        try:
            rows = self.memory.memories(scope_of(namespace), tag=KEY_TAG + key, limit=1).memories
        except NotFound:
            return None
        return rows[0] if rows else None


def scope_of(namespace: tuple[str, ...]) -> Scope:
    if len(namespace) != 2:
        raise ValueError(f"namespace {namespace}: it is (agent, user)")
    return Scope(*namespace)


def text_of(value: Mapping[str, Any]) -> str:
    if not value.keys() <= {"text", "kind"} or not isinstance(value.get("text"), str):
        raise ValueError('value: it is {"text": …}, perhaps with "kind"')
    return str(value["text"])


def searched(namespace: tuple[str, ...], hit: HitAnswer) -> SearchItem:
    keys = [tag.removeprefix(KEY_TAG) for tag in hit.tags if tag.startswith(KEY_TAG)]
    at = hit.at or datetime.min.replace(tzinfo=UTC)
    value = {"text": hit.text, "kind": hit.kind}
    return SearchItem(namespace, keys[0] if keys else str(hit.id), value, at, at, score=hit.score)


@dataclass(frozen=True, slots=True)
class Chat:
    """The context of a run."""

    memory: MemoryClient
    conversation: Scope


def call_model(state: MessagesState, runtime: Runtime[Chat]) -> dict[str, Any]:
    """Answer with what the store has for the question."""
    assert runtime.store is not None
    conversation = runtime.context.conversation
    namespace = (conversation.agent, str(conversation.user))
    items = runtime.store.search(namespace, query=state["messages"][-1].text, limit=10)
    known = "\n".join(f"- {item.value['text']}" for item in items)
    instructions = SystemMessage(
        f"You are Ada, a friendly companion. What you remember, as quoted data:\n{known}"
    )
    return {"messages": [ChatOpenAI(model=MODEL).invoke([instructions, *state["messages"]])]}


def record_turns(state: MessagesState, runtime: Runtime[Chat]) -> None:
    """Record question and reply, of which the memory extracts what is worth keeping."""
    question, reply = state["messages"][-2:]
    runtime.context.memory.record_all(
        runtime.context.conversation,
        [{"role": "user", "content": question.text}, {"role": "assistant", "content": reply.text}],
    )


def main(session: str, text: str) -> None:
    builder = StateGraph(MessagesState, context_schema=Chat)
    builder.add_sequence([call_model, record_turns])
    builder.add_edge(START, "call_model")
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    with MemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        graph = builder.compile(checkpointer=InMemorySaver(), store=MemoryStore(memory))
        state = graph.invoke(
            {"messages": [HumanMessage(text)]},
            {"configurable": {"thread_id": session}},
            context=Chat(memory, Scope("ada", "noa", session)),
        )
        print(state["messages"][-1].text)


if __name__ == "__main__":
    main(*sys.argv[1:])
