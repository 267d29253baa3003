"""Answer as the servers do that speak the OpenAI API, each in its way: what they refuse, with which words, and what
their answers look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from memory_app.testing.script import Json, Mode

Refusal = tuple[int, Json]
"""Status and body of an error."""

THOUGHT = 'The user wants a list. Perhaps {"cities": []}? No, there are two.'
"""What a model thinks before it answers, with a draft that does not count."""


def _accepts_all(_: Json) -> Refusal | None:
    return None


def _as_it_is(message: Json) -> Json:
    return message


@dataclass(frozen=True, slots=True)
class Server:
    """How a server refuses a request, and how it changes the message of an answer."""

    refuse: Callable[[Json], Refusal | None] = _accepts_all
    dress: Callable[[Json], Json] = _as_it_is
    details: Json | None = None
    """What stands in the body of an answer beside the usual."""


def _form(body: Json) -> str | None:
    form = body.get("response_format")
    return str(form.get("type")) if isinstance(form, dict) else None


def _error(status: int, message: str, **more: object) -> Refusal:
    return status, {"error": {"message": message, **more}}


# --- what is refused ------------------------------------------------------------------------------------------


def _openai_reasoning(body: Json) -> Refusal | None:
    more = {"type": "invalid_request_error", "code": "unsupported_parameter"}
    if "max_tokens" in body:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        return _error(400, message, param="max_tokens", **more)
    if body.get("temperature", 1) != 1:
        message = (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1)."
        )
        return _error(400, message, param="temperature", **more)
    return None


def _azure(body: Json) -> Refusal | None:
    if _form(body) != "json_schema":
        return None
    message = (
        "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
    )
    return _error(400, message, code="BadRequest")


def _azure_filter(_: Json) -> Refusal:
    message = (
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
        "Please modify your prompt and retry."
    )
    return _error(400, message, param="prompt", code="content_filter")


def _llama_cpp(body: Json) -> Refusal | None:
    # Its grammar compiler gives up on a schema with the status of a failure.
    if _form(body) != "json_schema":
        return None
    return _error(
        500, "Failed to initialize samplers: failed to parse grammar", code=500, type="server_error"
    )


def _vllm(body: Json) -> Refusal | None:
    if _form(body) != "json_schema":
        return None
    message = (
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
        "'msg': \"Input should be 'text' or 'json_object'\"}]"
    )
    # Not below "error", as everybody else has it.
    return 422, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 422}


def _lm_studio(body: Json) -> Refusal | None:
    if _form(body) in (None, "text"):
        return None
    return 400, {
        "error": "'response_format.type' must be 'json_schema' or 'text', and the model takes no schema"
    }


def _openrouter(body: Json) -> Refusal | None:
    if _form(body) != "json_schema":
        return None
    return _error(404, "No endpoints found that can handle the requested parameters.", code=404)


def _streams(body: Json) -> Refusal | None:
    if body.get("stream"):
        return None
    return _error(400, "This model only supports streaming: set stream=true.", type="invalid_request_error")


# --- what answers look like -----------------------------------------------------------------------------------


def _with_field(name: str) -> Callable[[Json], Json]:
    return lambda message: {**message, name: THOUGHT}


def _thought_in_text(beginning: str, end: str) -> Callable[[Json], Json]:
    return lambda message: {**message, "content": f"{beginning}{THOUGHT}{end}{message['content']}"}


def _harmony(message: Json) -> Json:
    text = (
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
        f"<|channel|>final<|message|>{message['content']}<|return|>"
    )
    return {**message, "content": text}


def _answer_in_thought(message: Json) -> Json:
    return {**message, "content": None, "reasoning_content": message["content"]}


def _tool_call_text(message: Json) -> Json:
    call = json.dumps({"name": "answer", "arguments": json.loads(str(message["content"]))})
    return {**message, "content": f"<tool_call>\n{call}\n</tool_call>"}


def _tool_call_object(message: Json) -> Json:
    function = {"name": "answer", "arguments": json.loads(str(message["content"]))}
    return {**message, "content": "", "tool_calls": [{"type": "function", "function": function}]}


def _function_call(message: Json) -> Json:
    return {**message, "content": None, "function_call": {"name": "answer", "arguments": message["content"]}}


SERVERS: dict[Mode, Server] = {
    Mode.OPENAI_REASONING: Server(refuse=_openai_reasoning),
    Mode.AZURE: Server(refuse=_azure, details={"prompt_filter_results": [{"prompt_index": 0}]}),
    Mode.AZURE_FILTER: Server(refuse=_azure_filter),
    Mode.LLAMA_CPP: Server(refuse=_llama_cpp, dress=_with_field("reasoning_content")),
    Mode.VLLM: Server(refuse=_vllm, dress=_with_field("reasoning_content")),
    Mode.LM_STUDIO: Server(refuse=_lm_studio, dress=_harmony),
    Mode.OPENROUTER: Server(
        refuse=_openrouter, dress=_with_field("reasoning"), details={"provider": "Somebody"}
    ),
    Mode.OLLAMA: Server(dress=_with_field("reasoning")),
    Mode.MAGISTRAL: Server(dress=_thought_in_text("[THINK]", "[/THINK]")),
    Mode.GEMMA: Server(dress=_thought_in_text("<thought>", "</thought>")),
    Mode.ANSWER_IN_THOUGHT: Server(dress=_answer_in_thought),
    Mode.TOOL_CALL_TEXT: Server(dress=_tool_call_text),
    Mode.TOOL_CALL_OBJECT: Server(dress=_tool_call_object),
    Mode.FUNCTION_CALL: Server(dress=_function_call),
    Mode.STREAM_REQUIRED: Server(refuse=_streams),
}
