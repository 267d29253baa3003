"""What somebody who reaches Redis may put into a queue: pieces by name, over none of which a worker may stumble."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Mapping
from typing import Any

from memory_app.queue import INDEX_TURNS, INGEST

CANARY = "canary-7f3a: I love Anna"
"""Stands in every piece that can carry text; must show up nowhere."""

JSON = "application/json"


def envelope(
    *,
    task: object = INDEX_TURNS,
    body: object = None,
    queue: str = INGEST,
    content_type: object = JSON,
    encoding: object = "utf-8",
    headers: Mapping[str, object] | None = None,
    properties: Mapping[str, object] | None = None,
    **fields: object,
) -> bytes:
    """A good message as kombu writes it to a list, with whatever is wished otherwise."""
    content = json.dumps([[], {}, EMBED] if body is None else body)
    message: dict[str, Any] = {
        "body": base64.b64encode(content.encode()).decode(),
        "content-encoding": encoding,
        "content-type": content_type,
        "headers": {
            "lang": "py",
            "task": task,
            "id": "11111111-2222-4333-8444-555555555555",
            "shadow": None,
            "eta": None,
            "expires": None,
            "group": None,
            "group_index": None,
            "retries": 0,
            "timelimit": [None, None],
            "root_id": None,
            "parent_id": None,
            "argsrepr": CANARY,
            "kwargsrepr": CANARY,
            "origin": "gen1@here",
            "ignore_result": True,
            **(headers or {}),
        },
        "properties": {
            "correlation_id": "11111111-2222-4333-8444-555555555555",
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "forged",
            **(properties or {}),
        },
    }
    return json.dumps(message | fields).encode()


EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def without(name: str) -> bytes:
    """A message that lacks this field."""
    message = json.loads(envelope())
    del message[name]
    return json.dumps(message).encode()


def pickled() -> bytes:
    return base64.b64encode(pickle.dumps([[CANARY], {}, {}]))


def pieces() -> dict[str, bytes]:
    """Small ones, one of each kind."""
    return {
        "nothing": b"",
        "null": b"null",
        "true": b"true",
        "number": b"12345678901234567890",
        "not a number": b"NaN",
        "text": json.dumps(CANARY).encode(),
        "list": json.dumps([CANARY, 1, None]).encode(),
        "empty list": b"[]",
        "empty object": b"{}",
        "bytes": b"\x80\x04\xff\xfe garbage",
        "half a message": envelope()[:100],
        "deep": b"[" * 100_000,
        "typed value": b'{"__type__": "decimal", "__value__": "no number"}',
        "no properties": without("properties"),
        "null properties": nulled("properties"),
        "text properties": envelope_with("properties", CANARY),
        "list properties": envelope_with("properties", [CANARY]),
        "empty properties": envelope_with("properties", {}),
        "no delivery tag": envelope_with(
            "properties", {"delivery_info": {"exchange": "", "routing_key": INGEST}}
        ),
        "object as delivery tag": envelope(properties={"delivery_tag": {"a": CANARY}}),
        "null delivery tag": envelope(properties={"delivery_tag": None}),
        "null delivery info": envelope(properties={"delivery_info": None}),
        "empty delivery info": envelope(properties={"delivery_info": {}}),
        "list delivery info": envelope(properties={"delivery_info": [CANARY]}),
        "no headers": without("headers"),
        "null headers": nulled("headers"),
        "text headers": envelope_with("headers", CANARY),
        "list headers": envelope_with("headers", [CANARY]),
        "empty headers": envelope_with("headers", {}),
        "number as task": envelope(task=5),
        "null as task": envelope(task=None),
        "list as task": envelope(task=[CANARY]),
        "unknown task": envelope(task="memory.unheard_of"),
        "text as task": envelope(task=CANARY),
        "built-in chord": envelope(task="celery.chord"),
        "built-in clean-up": envelope(task="celery.backend_cleanup"),
        "built-in map": envelope(task="celery.map", body=[[CANARY, [1]], {}, EMBED]),
        "object as id": envelope(headers={"id": {"a": 1}}),
        "text as id": envelope(headers={"id": CANARY}),
        "text as shadow": envelope(headers={"shadow": CANARY}),
        "due in the year 9999": envelope(headers={"eta": "9999-01-01T00:00:00+00:00"}),
        "eta that is none": envelope(headers={"eta": CANARY}),
        "expiry that is none": envelope(headers={"expires": CANARY}),
        "object as expiry": envelope(headers={"expires": {"a": 1}}),
        "limits of its own": envelope(headers={"timelimit": [1e9, 1e9]}),
        "limits that are none": envelope(headers={"timelimit": CANARY}),
        "compressed": envelope(headers={"compression": "application/x-gzip"}),
        "no body": without("body"),
        "null body": nulled("body"),
        "number as body": envelope_with("body", 5),
        "object as body": envelope_with("body", {"task": "memory.index_turns", "args": CANARY}),
        "body that is no base64": envelope_with("body", "%%%"),
        "body in an unknown encoding": envelope(properties={"body_encoding": "rot13"}),
        "body that is no list": envelope(body=CANARY),
        "body of two": envelope(body=[[], {}]),
        "text as arguments": envelope(body=[CANARY, CANARY, EMBED]),
        "arguments": envelope(body=[[CANARY], {}, EMBED]),
        "unknown argument": envelope(body=[[], {"surprise": CANARY}, EMBED]),
        "callbacks": envelope(
            body=[[], {}, {**EMBED, "callbacks": [{"task": CANARY, "args": [], "kwargs": {}}]}]
        ),
        "chain": envelope(body=[[], {}, {**EMBED, "chain": [{"task": CANARY}]}]),
        "pickle": envelope_with("body", pickled().decode(), content_type="application/x-python-serialize"),
        "yaml": envelope(content_type="application/x-yaml"),
        "unheard-of content": envelope(content_type="application/unheard-of"),
        "object as content type": envelope(content_type={"a": CANARY}),
        "unheard-of encoding": envelope(encoding="utf-99"),
        "object as encoding": envelope(encoding={"a": CANARY}),
        "old protocol": old_protocol(),
    }


def dropped() -> dict[str, bytes]:
    """Those that no task ever sees. The others look like messages of another version; the task itself refuses them."""
    return {name: piece for name, piece in pieces().items() if name not in ("arguments", "unknown argument")}


def envelope_with(name: str, value: object, **options: Any) -> bytes:
    return json.dumps(json.loads(envelope(**options)) | {name: value}).encode()


def nulled(name: str) -> bytes:
    return envelope_with(name, None)


def old_protocol() -> bytes:
    """Version 1 of Celery's protocol: everything is in the body."""
    body = {"task": INDEX_TURNS, "id": CANARY, "args": [CANARY], "kwargs": {CANARY: 1}}
    message = json.loads(envelope()) | {"headers": {}}
    message["body"] = base64.b64encode(json.dumps(body).encode()).decode()
    return json.dumps(message).encode()


def commands() -> list[bytes]:
    """Commands to all workers that are none."""
    bodies: list[object] = [
        {},
        {"method": 5},
        {"method": None, "arguments": {}},
        {"method": "ping", "arguments": CANARY},
        {"method": "ping", "arguments": [CANARY]},
        {"method": "ping", "arguments": {}, "destination": 7},
        {"method": "ping", "arguments": {}, "pattern": 7, "matcher": CANARY},
        {"method": "ping", "arguments": {}, "reply_to": CANARY},
        {"method": "ping", "arguments": {}, "reply_to": {"exchange": 5}},
        {"method": "ping", "arguments": {}, "self": 1},
        [{"method": "ping"}],
    ]
    return [envelope(body=body, headers={"clock": 1}) for body in bodies] + [
        envelope(body={"method": "ping", "arguments": {}}, headers={"clock": CANARY})
    ]


def huge(megabytes: int) -> bytes:
    """One message of so many megabytes."""
    return envelope(body=[[], {"session_id": "x" * (megabytes * 750_000)}, EMBED])
