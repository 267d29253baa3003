"""Write the bodies of the OpenAI API's newer call for replies, ``/v1/responses``. It is not streamed."""

from __future__ import annotations

import json

from memory_app.testing.script import Json, Rule


def responses_body(body: Json, rule: Rule) -> Json:
    """Return the answer of ``/v1/responses``: a message, or a call of a tool."""
    answer = rule.answer(body) if callable(rule.answer) else rule.answer
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    output = (
        _message(text) if rule.call is None else _function_call(rule.call["name"], rule.call["arguments"])
    )
    read, written = len(json.dumps(body.get("input"))) // 4, len(text) // 4
    return {
        "id": "resp_stub",
        "object": "response",
        "created_at": 0,
        "model": body.get("model"),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "output": [output],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        },
    }


def _message(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _function_call(name: object, arguments: object) -> Json:
    return {
        "id": "fc_stub",
        "type": "function_call",
        "call_id": "call_stub",
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }
