"""Every operation of the API is there in process, in both clients and, where it is meant to be, on the command line.

The list is the OpenAPI document's. A method has the name of the operation without ``get_`` or ``list_``, and its
parameters; what is otherwise stands below with the reason.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from memory_app import MemoryApp
from memory_app.client import (
    AsyncMemoryClient,
    MemoryClient,
    events,
    jobs,
    memories,
    operations,
    people,
    recall,
    transfer,
    turns,
    webhooks,
)
from memory_app.main.commands import COMMANDS, load
from memory_app.main.http import create_app
from memory_app.runtime import Runtime

DOORS = (MemoryApp, MemoryClient, AsyncMemoryClient)

NO_METHOD = {
    "live": "asked by load balancers, without a key; in process there is nobody to ask",
    "ready": "asked by load balancers, without a key; `memory health` and `memory doctor` for people",
    "metrics": "asked by Prometheus, without a key",
    "complete_chat": "speaks the OpenAI API, so every client library of that API is one of its clients",
    "list_models": "as `complete_chat`",
}

OTHER_NAMES = {
    "record_turns": ("record", "record_all"),
    "remember_for_all": ("remember",),
    "list_agent_memories": ("memories",),
    "forget_user": ("forget",),
    "list_agent_grants": ("grants",),
    "list_events": ("event_page", "events"),
    "export_user": ("export_lines",),
    "export_agent": ("export_lines",),
    "export_tenant": ("export_lines",),
}
"""Several methods of one operation, or one of several; the parameters must be those of all of them."""

NO_PARAMETER = {
    ("get_context", "format"): "windows have all forms; the clients always ask for that of messages",
    ("report_user", "format"): "the text is for people: `memory report user`",
    ("load", "*"): "the parts of a snapshot come as one, `snapshot`, but for `new_consent`",
    ("record_turns", "Idempotency-Key"): "the header does what `idempotency_key` does",
    ("record_turns", "messages"): "`record_all` takes messages as turns",
    ("record_turns", "turns"): "`record_all` takes turns as they are",
    ("call_tool", "session"): "the session of the scope",
}

IN_PROCESS_ONLY = {
    "connect": "makes the facade",
    "beside": "makes the facade",
    "local": "makes the facade",
    "close": "of both; not an operation",
    "forget_tenant": "an operator's act, which ends the keys by which it could be asked for; `memory forget-tenant`",
    "import_lines": "reads a file of the operator's, also larger than a request; `memory import`",
}

OTHER_TYPES = {("import_file", "speakers"): "a mapping, which the query carries as JSON"}

MORE_PARAMETERS = {
    ("remember", "mentions"): "what a program in the same process has recognised itself",
    ("add_fact", "shared"): "over HTTP `remember` states a fact for all users",
    ("import_file", "on_progress"): "over HTTP the run is asked how far it is",
}
"""Parameters of the facade alone."""

ADMIN = "a right of programs and of the page for operators; the command is `keys`, as the database's owner"
COMMAND_OF = {
    "record_turns": "record",
    "get_context": "context",
    "recall": "recall",
    "ask": "ask",
    "remember": "remember",
    "correct": "correct",
    "list_memories": "list",
    "list_facts": "facts",
    "why": "why",
    "get_agent": "agent",
    "amend_agent": "agent",
    "list_events": "events",
    "list_turns": "turns",
    "list_sessions": "sessions",
    "feedback": "feedback",
    "pin": "pin",
    "unpin": "unpin",
    "invalidate": "invalidate",
    "revive": "revive",
    "list_entities": "entities",
    "list_agents": "agents",
    "list_users": "users",
    "list_links": "links",
    "add_link": "link",
    "remove_link": "unlink",
    "get_user": "user",
    "change_user": "user",
    "synthesize": "synthesize",
    "list_failed": "failed",
    "list_refused": "refused",
    "replay": "replay",
    "discard": "discard",
    "sleep": "sleep",
    "undo": "undo",
    "forget_user": "forget",
    "forget_agent": "forget-agent",
    "get_erasure": "erasures",
    "export": "export",
    "export_user": "export",
    "export_agent": "export",
    "export_tenant": "export",
    "load": "import",
    "import_file": "import",
    "report_user": "report",
    "get_usage": "usage",
    "get_trace": "trace",
    "get_audit": "audit",
    "verify_audit": "audit",
    "list_keys": "keys",
    "make_key": "keys",
    "rotate_key": "keys",
    "revoke_key": "keys",
    "get_limits": "limits",
    "list_webhooks": "webhooks",
    "make_webhook": "webhooks",
    "change_webhook": "webhooks",
    "rotate_webhook": "webhooks",
    "delete_webhook": "webhooks",
    "list_webhook_deliveries": "webhooks",
    "resend_webhook": "webhooks",
    "ping_webhook": "webhooks",
    "list_grants": "grants",
    "list_agent_grants": "grants",
    "set_grant": "grants",
    "revoke_grant": "grants",
    "limit_key": "limits",
    "live": "health",
    "ready": "doctor",
    "metrics": "status",
    "get_ticket": "trace",
    "get_run": "trace",
    "clear_session": "session",
    "end_session": "session",
    "consolidate": "consolidate",
    "decay": "decay",
    "checkpoint": "checkpoints",
    "list_checkpoints": "checkpoints",
    "read_checkpoint": "checkpoints",
    "forget_session": "forget",
    "forget_turn": "forget",
    "forget_memory": "forget",
    "change_agent": "agent",
    "remember_for_all": "remember",
    "list_agent_memories": "list",
    "get_expression": "expression",
    "merge_entities": "entity",
    "get_entity": "entity",
    "add_fact": "fact",
    "unmerge": "unmerge",
    "list_versions": "show",
    "get_memory": "show",
    "get_stats": "stats",
    "similar_queries": "queries",
}
NO_COMMAND = {
    "complete_chat": "for programs that speak the OpenAI API",
    "list_models": "as `complete_chat`",
    "list_tools": "for programs; `memory mcp` serves them",
    "call_tool": "for programs; `memory mcp` serves them",
}

OTHER_OPTIONS = {
    ("get_context", "budget_tokens"): "budget",
    ("recall", "session"): "only_session",
    ("recall", "current_session"): "session",
    ("remember_for_all", "shared"): "for_all",
    ("list_links", "memory"): "memory_id",
    ("merge_entities", "into"): "merge_into",
    ("change_user", "aliases"): "alias",
    ("set_grant", "kinds"): "kind",
    ("set_grant", "until"): "days",
    ("change_webhook", "paused"): "pause",
    ("report_user", "user"): "name",
    ("get_user", "user"): "name",
    ("change_user", "user"): "name",
    ("get_agent", "agent"): "name",
    ("change_agent", "agent"): "name",
    ("amend_agent", "agent"): "name",
}
"""Options and arguments that are not called like the field; ``pause`` is a command of its group."""

OF_PROGRAMS = "what a program has at hand"
BY_TIME = "shown in the order of time; `--limit` and `memory export` show more"
NO_OPTION = {
    ("record_turns", "tool_calls"): OF_PROGRAMS,
    ("record_turns", "tool_call_id"): OF_PROGRAMS,
    ("remember", "emotional_state"): OF_PROGRAMS,
    ("remember", "relational_context"): OF_PROGRAMS,
    ("remember_for_all", "emotional_state"): OF_PROGRAMS,
    ("remember_for_all", "relational_context"): OF_PROGRAMS,
    ("list_memories", "cursor"): BY_TIME,
    ("list_agent_memories", "cursor"): BY_TIME,
    ("get_ticket", "wait_seconds"): "`memory record --wait` waits",
    ("get_run", "wait_seconds"): "commands that begin a run wait for it",
    ("list_events", "wait_seconds"): "`--follow` waits without an end",
    ("sleep", "trigger"): "says who asked, and here it is a person",
    ("limit_key", "*"): "limits are written NAME=NUMBER",
    ("load", "*"): "the parts of a snapshot come as one file",
}


@pytest.fixture
def described(runtime: Runtime) -> dict[str, Any]:
    return create_app(runtime).openapi()


def operations_of(described: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in described["paths"].values():
        for operation in methods.values():
            yield operation["operationId"], operation


def methods_of(operation_id: str) -> tuple[str, ...]:
    return OTHER_NAMES.get(operation_id, (re.sub("^(get|list)_", "", operation_id),))


def builders() -> dict[str, Callable[..., Any]]:
    """The functions that make the calls of the clients, which have their types."""
    modules = (events, jobs, memories, operations, people, recall, transfer, turns, webhooks)
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    }


def fields_of(described: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters of the address and the query, and the fields of the body, with their schemas."""
    fields = {part["name"]: part["schema"] for part in operation.get("parameters", ())}
    content = operation.get("requestBody", {}).get("content", {})
    for schema in (part["schema"] for part in content.values()):
        for choice in schema.get("oneOf", schema.get("anyOf", [schema])):
            name = choice.get("$ref", "").rpartition("/")[2]
            fields |= described["components"]["schemas"].get(name, {}).get("properties", {})
    return fields


def parameter_for(field: str, parameters: Mapping[str, Any]) -> str | None:
    """The parameter of a method that carries a field of the operation."""
    if field in parameters:
        return field
    if field in ("agent", "user", "session", "current_session") and "scope" in parameters:
        return "scope"
    if field == "id":
        return next((name for name in parameters if name.endswith("_id")), None)
    return None


def test_ids_of_operations_are_short_and_each_there_once(described: dict[str, Any]) -> None:
    ids = [id for id, _ in operations_of(described)]
    assert len(ids) > 60
    assert len(set(ids)) == len(ids)
    assert [id for id in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){0,2}", id)] == []
    assert {"record_turns", "recall", "get_context"} <= set(ids)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_operation_has_a_method_with_its_fields(described: dict[str, Any], door: type) -> None:
    missing = []
    for id, operation in operations_of(described):
        if id in NO_METHOD:
            continue
        names = methods_of(id)
        absent = [name for name in names if not hasattr(door, name)]
        missing += [f"{id}: {door.__name__} has no method {name}()" for name in absent]
        if absent:
            continue
        parameters: dict[str, Any] = {}
        for name in names:
            parameters |= inspect.signature(getattr(door, name)).parameters
        missing += [
            f"{id}: {door.__name__}.{names[0]}() has no parameter for {field!r}"
            for field in fields_of(described, operation)
            if (id, field) not in NO_PARAMETER
            and not (
                (id, "*") in NO_PARAMETER and "snapshot" in parameters and field not in ("agent", "user")
            )
            and parameter_for(field, parameters) is None
        ]
    assert missing == []


def test_the_doors_have_no_methods_beyond_the_operations(described: dict[str, Any]) -> None:
    known = {name for id, _ in operations_of(described) for name in methods_of(id)}
    for door in DOORS:
        methods = {name for name in vars(door) if name[0] != "_" and callable(getattr(door, name))}
        allowed = known | (IN_PROCESS_ONLY.keys() if door is MemoryApp else {"send", "close", "limited"})
        assert methods - allowed == set()


def test_facade_and_clients_take_the_same_parameters() -> None:
    """Names, order, kinds, defaults and types; the answers are records here and JSON objects there."""
    different = []
    for name, build in builders().items():
        in_process = dict(inspect.signature(getattr(MemoryApp, name)).parameters)
        in_process.pop("self")
        for extra in [extra for method, extra in MORE_PARAMETERS if method == name]:
            in_process.pop(extra)
        over_http = inspect.signature(build).parameters
        here, there = (typing.get_type_hints(function) for function in (getattr(MemoryApp, name), build))
        for one, other in zip(in_process.values(), over_http.values(), strict=False):
            if one.replace(annotation=None) != other.replace(annotation=None):
                different.append(f"{name}({one.name}): {one} in process, {other} over HTTP")
            elif here[one.name] != there[other.name]:
                different.append(f"{name}({one.name}): {here[one.name]}, {there[other.name]} over HTTP")
        if len(in_process) != len(over_http):
            different.append(f"{name}: {set(in_process) ^ set(over_http)}")
    assert different == []


def test_both_clients_send_every_call_that_can_be_built() -> None:
    for door in (MemoryClient, AsyncMemoryClient):
        assert [name for name in builders() if not hasattr(door, name)] == []
    for name, build in builders().items():
        for door in (MemoryClient, AsyncMemoryClient):
            parameters = list(inspect.signature(getattr(door, name)).parameters.values())[1:]
            assert parameters == list(inspect.signature(build).parameters.values()), name


def json_types_of(schema: Mapping[str, Any], described: Mapping[str, Any]) -> set[str]:
    found = set()
    for choice in schema.get("anyOf", [schema]):
        name = choice.get("$ref", "").rpartition("/")[2]
        found.add(described["components"]["schemas"].get(name, choice).get("type", "object"))
    return found - {"null"}


def python_types_of(annotation: Any) -> set[str]:
    """The JSON types of what an annotation takes."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    choices = typing.get_args(annotation) if is_union else (annotation,)
    return {_json_type(choice) for choice in choices} - {"null"}


def _json_type(annotation: Any) -> str:
    origin = typing.get_origin(annotation) or annotation
    for kind, name in ((type(None), "null"), (bool, "boolean"), (int, "integer"), (float, "number")):
        if origin is kind:
            return name
    name = getattr(origin, "__name__", "")
    if name in ("Sequence", "tuple", "list"):
        return "array"
    return "string" if name in ("str", "UUID", "datetime", "Label", "Tier", "Role", "Action") else "object"


def test_types_of_parameters_are_those_of_the_document(described: dict[str, Any]) -> None:
    wrong = []
    for id, operation in operations_of(described):
        if id in NO_METHOD or id in OTHER_NAMES or (id, "*") in NO_PARAMETER:
            continue
        (name,) = methods_of(id)
        build = builders().get(name)
        if build is None:
            wrong.append(f"{id}: the clients have no call {name}()")
            continue
        hints = typing.get_type_hints(build)
        for field, schema in fields_of(described, operation).items():
            parameter = parameter_for(field, hints)
            if parameter is None or parameter == "scope" or (id, field) in OTHER_TYPES:
                continue
            here = python_types_of(hints[parameter])
            # Every integer is a number.
            there = json_types_of(schema, described)
            if not there <= here | ({"integer"} if "number" in here else set()):
                wrong.append(f"{id}.{field}: {there} in the document, {here} in the client")
    assert wrong == []


def test_every_operation_has_a_command_or_a_reason(described: dict[str, Any]) -> None:
    ids = {id for id, _ in operations_of(described)}
    assert sorted(ids - COMMAND_OF.keys() - NO_COMMAND.keys()) == [], "neither a command nor a reason"
    assert sorted((COMMAND_OF.keys() | NO_COMMAND.keys()) - ids) == [], "no such operation any more"
    assert COMMAND_OF.keys() & NO_COMMAND.keys() == set()
    assert set(COMMAND_OF.values()) - COMMANDS.keys() == set()


def options_of(name: str) -> set[str]:
    """The options and arguments of a command, or of all commands of a group, and the names of those."""
    command = load(name)
    inner = getattr(command, "commands", None) or {}
    names = set(inner)
    for parameter in (parameter for one in inner.values() or (command,) for parameter in one.params):
        spellings = (*parameter.opts, *parameter.secondary_opts)
        names |= {parameter.name, *(spelling.lstrip("-").replace("-", "_") for spelling in spellings)}
    return names


def test_commands_take_every_field_or_there_is_a_reason(described: dict[str, Any]) -> None:
    missing = []
    for id, operation in operations_of(described):
        command = COMMAND_OF.get(id)
        # No framework parses `memory health`.
        if command in (None, "health") or (id, "*") in NO_OPTION:
            continue
        options = options_of(command)
        for field in fields_of(described, operation):
            if (id, field) in NO_OPTION or (id, field) in NO_PARAMETER:
                continue
            # An id is an argument, whatever it is called.
            if field != "id" and OTHER_OPTIONS.get((id, field), field) not in options:
                missing.append(f"{id}: `memory {command}` has nothing for {field!r}")
    assert missing == []


def test_exceptions_are_about_what_there_is(described: dict[str, Any]) -> None:
    by_id = dict(operations_of(described))
    assert NO_METHOD.keys() | OTHER_NAMES.keys() <= by_id.keys()
    for id, field in (*NO_PARAMETER, *NO_OPTION, *OTHER_OPTIONS):
        assert field == "*" or field in fields_of(described, by_id[id]), (id, field)
    for name, parameter in MORE_PARAMETERS:
        assert parameter in inspect.signature(getattr(MemoryApp, name)).parameters
    assert all(hasattr(MemoryApp, name) for name in IN_PROCESS_ONLY)
