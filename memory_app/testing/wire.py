"""Write the bodies that the stub sends: those of the OpenAI API and of Ollama, good ones and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from memory_app.providers.embedders.hashing import HashEmbedder
from memory_app.testing.answers import answer_of, with_references
from memory_app.testing.dialects import SERVERS, Server
from memory_app.testing.schemas import schema_of
from memory_app.testing.script import Json, Mode, Rule

OPENAI_DIMENSIONS = 1536
OLLAMA_DIMENSIONS = 768


def chat_body(body: Json, rule: Rule) -> Json:
    """Return the answer of ``/v1/chat/completions``."""
    answer = rule.answer(body) if callable(rule.answer) else rule.answer
    answer = answer_of(body) if answer is None else with_references(answer, body)
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    message, finish = _message(text, answer=answer, body=body, rule=rule)
    server = SERVERS.get(rule.mode, Server())
    usage = {
        "prompt_tokens": len(json.dumps(body.get("messages"))) // 4,
        "completion_tokens": len(text) // 4,
    }
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": server.dress(message), "finish_reason": finish}],
        "usage": None if rule.mode is Mode.NO_USAGE else usage,
        **(server.details or {}),
    }


def stream_events(body: Json) -> list[bytes]:
    """Return an answer in pieces, as servers stream it."""
    choices: Any = body["choices"]
    message, finish = choices[0]["message"], choices[0]["finish_reason"]
    text = str(message.get("content") or "")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[start : start + 20]} for start in range(0, len(text), 20)]
    calls = message.get("tool_calls") or []
    deltas += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(calls)]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    head = {"id": body["id"], "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    events = [f"data: {json.dumps(head | chunk)}\n\n".encode() for chunk in chunks]
    return [*events, b"data: [DONE]\n\n"]


def _message(text: str, *, answer: object, body: Json, rule: Rule) -> tuple[Json, str]:
    """The message in which ``text`` is sent, damaged as the rule wants it, and why the model stopped."""
    message: Json = {"role": "assistant", "content": text}
    if rule.call is not None:
        called = _tool_call(0, json.dumps(rule.call["arguments"]), name=str(rule.call["name"]))
        return {**message, "content": None, "tool_calls": [called]}, "tool_calls"
    if rule.mode is Mode.REFUSAL:
        return {**message, "content": None, "refusal": "I cannot help with that."}, "stop"
    if rule.mode is Mode.LENGTH:
        return {**message, "content": text[: len(text) // 2]}, "length"
    if rule.mode in (Mode.DUPLICATE_TOOL_CALLS, Mode.DIFFERENT_TOOL_CALLS):
        other = text if rule.mode is Mode.DUPLICATE_TOOL_CALLS else "{}"
        calls = [_tool_call(0, text), _tool_call(1, other)]
        return {**message, "content": None, "tool_calls": calls}, "tool_calls"
    damage = _DAMAGES.get(rule.mode)
    return {**message, "content": damage(text, answer, body) if damage else text}, "stop"


def _tool_call(number: int, arguments: str, *, name: str = "answer") -> Json:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _bare(text: str, answer: object, _: Json) -> str:
    if not isinstance(answer, Mapping):
        return text
    lists = [part for part in answer.values() if isinstance(part, list)]
    return json.dumps(max(lists, key=len), ensure_ascii=False) if lists else text


def _renamed(text: str, answer: object, _: Json) -> str:
    return json.dumps(_camel_case(answer), ensure_ascii=False)


def _camel_case(value: object) -> object:
    if isinstance(value, Mapping):
        return {_camel(str(key)): _camel_case(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_camel_case(inner) for inner in value]
    return value


def _camel(key: str) -> str:
    return "".join(part.title() for part in key.split("_"))


def _unclosed(text: str, *_: object) -> str:
    return text.rstrip().rstrip("]}")


_ECHO = "Keep answers short when Ottilie is tired."
"""A sentence of our prompt's example."""

_ODD_ITEMS: tuple[object, ...] = (
    {"text": ""},
    7,
    None,
    [[]],
    {"text": _ECHO, "evidence": ["t1"], "importance": "high"},
    {"text": "They have things.", "memories": ["m1", "m2"]},
    {"source": "m1"},
)


def _odd_items(text: str, answer: object, _: Json) -> str:
    if not isinstance(answer, Mapping):
        return text
    parts = {
        name: [*_ODD_ITEMS, *part, "They have things."] if isinstance(part, list) else part
        for name, part in answer.items()
    }
    return json.dumps(parts, ensure_ascii=False)


_DAMAGES: dict[Mode, Callable[[str, object, Json], str]] = {
    Mode.NOT_JSON: lambda *_: "The user seems nice and lives somewhere warm.",
    Mode.WRONG_SCHEMA: lambda *_: json.dumps({"colour": "blue", "count": [1, 2, 3]}),
    Mode.FENCE: lambda text, *_: f"```json\n{text}\n```",
    # Braces that are no JSON, before those that are.
    Mode.PREAMBLE: lambda text, *_: f"Sure! Here is what I found {{as asked}}:\n\n{text}\n\nAnything else?",
    # An answer that fits the schema and does not count.
    Mode.THINKING: lambda text, *_: f'<think>Maybe {{"statements": []}}?</think>\n{text}',
    Mode.BARE_LIST: _bare,
    Mode.RENAMED_KEYS: _renamed,
    Mode.ECHOED_SCHEMA: lambda _text, _answer, body: json.dumps(schema_of(body)),
    Mode.UNCLOSED: _unclosed,
    Mode.CUT_JSON: lambda text, *_: text[: int(len(text) * 0.7)].rstrip('"}], '),
    Mode.ODD_ITEMS: _odd_items,
    Mode.EMPTY: lambda *_: "",
    Mode.REFUSAL_TEXT: lambda *_: "I'm sorry, but I can't help with that request.",
}


def embeddings_body(body: Json, rule: Rule) -> Json:
    """Return the answer of ``/v1/embeddings``."""
    rows = _rows(body, rule, OPENAI_DIMENSIONS)
    items: list[Json] = [
        {"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)
    ]
    if rule.mode is Mode.UNORDERED:
        items.reverse()
    tokens = sum(len(text) for text in _inputs(body)) // 4
    return {
        "object": "list",
        "data": items,
        "model": body.get("model"),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def ollama_body(body: Json, rule: Rule) -> Json:
    """Return the answer of Ollama's ``/api/embed``."""
    rows = _rows(body, rule, OLLAMA_DIMENSIONS)
    return {"model": body.get("model"), "embeddings": rows, "prompt_eval_count": 1}


def rerank_body(body: Json, rule: Rule) -> object:
    """Return the answer of ``/rerank``, best first: a list of its own for TEI, which is asked for ``texts``.

    A text scores by the share of the query's words in it, unless ``rule.answer`` gives the scores.
    """
    is_tei = "texts" in body
    texts = body["texts" if is_tei else "documents"]
    assert isinstance(texts, list)
    scores = (
        rule.answer(body) if callable(rule.answer) else [_share(str(body["query"]), text) for text in texts]
    )
    assert isinstance(scores, list)
    if rule.mode is Mode.NAN:
        scores = [float("nan")] * len(scores)
    name = "score" if is_tei else "relevance_score"
    rows = [{"index": place, name: score} for place, score in enumerate(scores)]
    rows.sort(key=lambda row: -row[name])
    if rule.mode is Mode.FEWER_ROWS:
        rows.pop()
    return rows if is_tei else {"model": body.get("model"), "results": rows}


def _share(query: str, text: str) -> float:
    words = set(query.lower().split())
    return len(words & set(text.lower().split())) / len(words)


def _inputs(body: Json) -> list[str]:
    inputs = body.get("input")
    if isinstance(inputs, str):
        return [inputs]
    return [str(text) for text in inputs] if isinstance(inputs, list) else []


def _rows(body: Json, rule: Rule, default: int) -> list[list[float]]:
    """A row for each text; ``default`` is the length of those for a request that names none."""
    requested = body.get("dimensions")
    dimensions = requested if isinstance(requested, int) else default
    if rule.mode is Mode.WRONG_DIMENSION:
        dimensions += 1
    rows: list[list[float]] = HashEmbedder(dimensions).embed(_inputs(body)).tolist()
    if rule.mode is Mode.NAN:
        # Python writes it as NaN, as servers of models do, although JSON knows none.
        rows[0][0] = float("nan")
    if rule.mode is Mode.ZERO:
        rows[0] = [0.0] * dimensions
    return rows[:-1] if rule.mode is Mode.FEWER_ROWS else rows
