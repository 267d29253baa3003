"""Files as other programs export them, about invented people. Each holds what comes in, and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from zipfile import ZipFile

Json = dict[str, Any]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def seconds(text: str) -> float:
    return at(text).timestamp()


@dataclass(frozen=True, slots=True)
class Said:
    """A message that comes in: who spoke in which role, what, and when; None where the file does not say."""

    role: str
    text: str
    at: datetime | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """A file, and what comes in of it: messages by session, statements, and how much is left out by reason."""

    format: str
    content: bytes
    sessions: Mapping[str | None, tuple[Said, ...]]
    statements: tuple[str, ...] = ()
    left_out: Mapping[str, int] | None = None
    speakers: Mapping[str, str] | None = None


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def _jsonl(rows: Iterable[object]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _node(id: str, parent: str | None, children: list[str], message: Json | None) -> Json:
    return {"id": id, "parent": parent, "children": children, "message": message}


def _chatgpt_message(id: str, role: str, parts: list[Any], when: str | None, **more: Any) -> Json:
    return {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": None if when is None else seconds(when),
        "content": {"content_type": more.pop("content_type", "text"), "parts": parts},
        "status": "finished_successfully",
        "recipient": more.pop("recipient", "all"),
        "metadata": more,
    }


def chatgpt_conversation(id: str = "c-1", *, begin: str = "2025-03-01T10:00:00") -> Json:
    """A question that was edited and an answer that was generated again: two branches beside the one that is shown."""
    hour = begin[:14]
    return {
        "title": "Ferry to Gozo",
        "create_time": seconds(begin),
        "update_time": seconds(begin),
        "conversation_id": id,
        "current_node": "a2",
        "mapping": {
            "root": _node("root", None, ["sys"], None),
            "sys": _node(
                "sys",
                "root",
                ["u0", "u1"],
                _chatgpt_message("sys", "system", [""], None, is_visually_hidden_from_conversation=True),
            ),
            "u0": _node(
                "u0", "sys", [], _chatgpt_message("u0", "user", ["When is the fery?"], hour + "00:30")
            ),
            "u1": _node(
                "u1", "sys", ["call"], _chatgpt_message("u1", "user", ["When is the ferry?"], hour + "01:00")
            ),
            "call": _node(
                "call",
                "u1",
                ["a1", "a2"],
                _chatgpt_message("call", "assistant", ["search()"], hour + "01:05", recipient="browser"),
            ),
            "a1": _node("a1", "call", [], _chatgpt_message("a1", "assistant", ["At eight."], hour + "01:10")),
            "a2": _node(
                "a2",
                "call",
                [],
                _chatgpt_message(
                    "a2",
                    "assistant",
                    [
                        "Every hour from Cirkewwa.",
                        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
                    ],
                    hour + "02:00",
                    content_type="multimodal_text",
                ),
            ),
        },
    }


CHATGPT = Export(
    "chatgpt",
    _encoded([chatgpt_conversation(), chatgpt_conversation("c-2", begin="2025-03-02T09:00:00")]),
    {
        f"chatgpt-{id}": (
            Said("user", "When is the ferry?", at(f"{day}:01:00")),
            Said("assistant", "Every hour from Cirkewwa.\n[image]", at(f"{day}:02:00")),
        )
        for id, day in (("c-1", "2025-03-01T10"), ("c-2", "2025-03-02T09"))
    },
    left_out={"another branch": 4, "not shown to the user": 2, "written by the program": 2},
)

CLAUDE = Export(
    "claude",
    _encoded(
        [
            {
                "uuid": "d-1",
                "name": "Sourdough",
                "created_at": "2025-05-04T08:00:00.000000Z",
                "account": {"uuid": "account-1"},
                "chat_messages": [
                    {
                        "uuid": "m-1",
                        "text": "My starter is called Bubbles.",
                        "content": [{"type": "text", "text": "My starter is called Bubbles."}],
                        "sender": "human",
                        "created_at": "2025-05-04T08:00:05.120000Z",
                        "attachments": [{"file_name": "starter.txt", "extracted_content": "flour, water"}],
                        "files": [],
                    },
                    {
                        "uuid": "m-2",
                        "text": "",
                        "content": [
                            {"type": "tool_use", "name": "search", "input": {}},
                            {"type": "text", "text": "A fine name."},
                        ],
                        "sender": "assistant",
                        "created_at": "2025-05-04T08:00:09Z",
                        "attachments": [],
                        "files": [],
                    },
                    {
                        "uuid": "m-3",
                        "text": " ",
                        "content": [],
                        "sender": "human",
                        "attachments": [],
                        "files": [],
                    },
                ],
            },
            {"uuid": "d-2", "name": "No messages at all"},
        ]
    ),
    {
        "claude-d-1": (
            Said(
                "user", "My starter is called Bubbles.\n[file: starter.txt]", at("2025-05-04T08:00:05.120000")
            ),
            Said("assistant", "A fine name.", at("2025-05-04T08:00:09")),
        )
    },
    left_out={"no text": 1, "not of the expected form": 1},
)

SILLYTAVERN = Export(
    "sillytavern",
    _jsonl(
        [
            {
                "user_name": "Mira",
                "character_name": "Ada",
                "create_date": "2024-1-5 @14h 03m 22s 123ms",
                "chat_metadata": {"note_prompt": ""},
            },
            {
                "name": "Ada",
                "is_user": False,
                "send_date": "January 5, 2024 2:03pm",
                "mes": "Welcome back.",
                "swipes": ["Welcome back.", "Hello again."],
                "swipe_id": 0,
            },
            {
                "name": "Mira",
                "is_user": True,
                "send_date": "2024-1-5 @14h 04m 10s 007ms",
                "mes": "I repair clocks.",
            },
            {"name": "note", "is_user": False, "is_system": True, "mes": "Chat saved."},
            {"name": "Ada", "is_user": False, "send_date": 1704463500000, "mes": "Since when?"},
        ]
    ),
    {
        "sillytavern-Ada 2024-1-5 @14h 03m 22s 123ms": (
            Said("assistant", "Welcome back.", at("2024-01-05T14:03:00"), "Ada"),
            Said("user", "I repair clocks.", at("2024-01-05T14:04:10.007000"), "Mira"),
            Said("assistant", "Since when?", at("2024-01-05T14:05:00"), "Ada"),
        )
    },
    left_out={"another branch": 1, "not shown to the user": 1},
)

WHATSAPP_TEXT = (
    "31/12/2024, 21:40 - Messages and calls are end-to-end encrypted.\n"
    "31/12/2024, 21:41 - Anna: I moved to Graz.\n"
    "It is lovely:\n"
    "snow everywhere\n"
    "31/12/2024, 21:42 - Ben: <Media omitted>\n"
    "31/12/2024, 21:42 - Ben: Nice!\n"
    "31/12/2024, 21:42 - Ben: Nice!\n"
    "31/12/2024, 21:43 - Anna: IMG-1.jpg (file attached)\n"
    "the view from here\n"
    "01/01/2025, 00:01 - Ben: This message was deleted\n"
)
WHATSAPP = Export(
    "whatsapp",
    WHATSAPP_TEXT.encode(),
    {
        None: (
            Said(
                "user", "I moved to Graz.\nIt is lovely:\nsnow everywhere", at("2024-12-31T21:41:00"), "Anna"
            ),
            Said("assistant", "Nice!", at("2024-12-31T21:42:00"), "Ben"),
            Said("assistant", "Nice!", at("2024-12-31T21:42:00"), "Ben"),
            Said("user", "the view from here", at("2024-12-31T21:43:00"), "Anna"),
        )
    },
    left_out={"written by the program": 1, "media without text": 1, "deleted by its author": 1},
    speakers={"Anna": "user"},
)

OPENAI = Export(
    "openai",
    _encoded(
        [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Where do I live?"}],
                "created_at": 1740000000,
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "t", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "t", "content": "Bonn"},
            {"role": "assistant", "content": "In Bonn.", "name": "Ada"},
            {"content": "a message of nobody"},
        ]
    ),
    {
        None: (
            Said("system", "Be brief."),
            Said("user", "Where do I live?", datetime.fromtimestamp(1740000000, UTC)),
            Said("assistant", "[tool call: look]"),
            Said("tool", "Bonn"),
            Said("assistant", "In Bonn.", None, "Ada"),
        )
    },
    left_out={"not of the expected form": 1},
)

LANGCHAIN = Export(
    "langchain",
    _encoded(
        [
            {"type": "human", "data": {"content": "I play the oboe.", "type": "human", "id": None}},
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "In an orchestra?", "id": "run-1", "tool_calls": []},
            },
            {"type": "human", "content": "In a quintet."},
        ]
    ),
    {
        None: (
            Said("user", "I play the oboe."),
            Said("assistant", "In an orchestra?"),
            Said("user", "In a quintet."),
        )
    },
    left_out={},
)

_WEBUI_MESSAGES = {
    "w1": {
        "id": "w1",
        "parentId": None,
        "childrenIds": ["w2", "w3"],
        "role": "user",
        "content": "I grow chillies.",
        "timestamp": 1735700000,
    },
    "w2": {
        "id": "w2",
        "parentId": "w1",
        "childrenIds": [],
        "role": "assistant",
        "content": "Hot!",
        "timestamp": 1735700010,
        "model": "llama",
    },
    "w3": {
        "id": "w3",
        "parentId": "w1",
        "childrenIds": [],
        "role": "assistant",
        "content": "Which kinds?",
        "timestamp": 1735700020,
        "done": True,
    },
}
OPENWEBUI = Export(
    "openwebui",
    _encoded(
        [
            {
                "id": "chat-7",
                "user_id": "u-1",
                "title": "Chillies",
                "chat": {
                    "models": ["llama"],
                    "messages": [_WEBUI_MESSAGES["w1"], _WEBUI_MESSAGES["w3"]],
                    "history": {"messages": _WEBUI_MESSAGES, "currentId": "w3"},
                },
                "created_at": 1735700000,
            }
        ]
    ),
    {
        "openwebui-chat-7": (
            Said("user", "I grow chillies.", datetime.fromtimestamp(1735700000, UTC)),
            Said("assistant", "Which kinds?", datetime.fromtimestamp(1735700020, UTC)),
        )
    },
    left_out={"another branch": 1},
)

OPENWEBUI_MEMORIES = Export(
    "openwebui",
    _encoded(
        [
            {
                "id": "k-1",
                "user_id": "u-1",
                "content": "Mira has a greenhouse.",
                "created_at": 1735700000,
                "updated_at": 1735700000,
            }
        ]
    ),
    {},
    ("Mira has a greenhouse.",),
    left_out={},
)

MEM0 = Export(
    "mem0",
    _encoded(
        {
            "results": [
                {
                    "id": "r-1",
                    "memory": "Allergic to walnuts",
                    "hash": "0",
                    "user_id": "mira",
                    "categories": ["health"],
                    "created_at": "2025-02-03T04:05:06.000000-07:00",
                },
                {"id": "r-2", "memory": "Plays chess on Tuesdays", "user_id": "mira", "created_at": None},
                {"id": "r-3", "user_id": "mira"},
            ]
        }
    ),
    {},
    ("Allergic to walnuts", "Plays chess on Tuesdays"),
    left_out={"not of the expected form": 1},
)

LETTA = Export(
    "letta",
    _encoded(
        {
            "agents": [
                {
                    "id": "agent-0",
                    "name": "Sam",
                    "system": "You are Sam.",
                    "messages": [
                        {
                            "id": "message-0",
                            "role": "system",
                            "content": [{"type": "text", "text": "You are Sam."}],
                            "created_at": "2025-06-01T10:00:00+00:00",
                        },
                        {
                            "id": "message-1",
                            "role": "user",
                            "content": [
                                {
                                    "type": "text",
                                    "text": json.dumps({"type": "user_message", "message": "I ski."}),
                                }
                            ],
                            "created_at": "2025-06-01T10:00:01+00:00",
                        },
                        {
                            "id": "message-2",
                            "role": "user",
                            "content": [{"type": "text", "text": json.dumps({"type": "heartbeat"})}],
                            "created_at": "2025-06-01T10:00:02+00:00",
                        },
                        {
                            "id": "message-3",
                            "role": "assistant",
                            "content": [{"type": "text", "text": "The user skis."}],
                            "tool_calls": [
                                {
                                    "id": "t",
                                    "function": {
                                        "name": "send_message",
                                        "arguments": '{"message": "Where?"}',
                                    },
                                }
                            ],
                            "created_at": "2025-06-01T10:00:03+00:00",
                        },
                    ],
                }
            ],
            "blocks": [
                {"id": "block-0", "label": "human", "value": "Name: Olu\n- Lives in Jos\n", "limit": 5000},
                {"id": "block-1", "label": "persona", "value": "I am kind and brief.", "limit": 5000},
            ],
        }
    ),
    {
        "letta-agent-0": (
            Said("user", "I ski.", at("2025-06-01T10:00:01")),
            Said("assistant", "Where?", at("2025-06-01T10:00:03")),
        )
    },
    ("Name: Olu", "Lives in Jos", "I am kind and brief."),
    left_out={"written by the program": 2},
)

LETTA_OLD = Export(
    "letta",
    _encoded(
        {
            "agent_type": "memgpt_agent",
            "core_memory": [
                {"label": "human", "value": "Likes tea", "created_at": "2025-01-01T00:00:00+00:00"}
            ],
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Good evening."}],
                    "created_at": "2025-01-02T20:00:00+00:00",
                    "tool_calls": [],
                }
            ],
            "name": "Sam",
            "version": "0.6.1",
        }
    ),
    {None: (Said("user", "Good evening.", at("2025-01-02T20:00:00")),)},
    ("Likes tea",),
    left_out={},
)

EXPORTS = {
    "chatgpt": CHATGPT,
    "claude": CLAUDE,
    "sillytavern": SILLYTAVERN,
    "whatsapp": WHATSAPP,
    "openai": OPENAI,
    "langchain": LANGCHAIN,
    "openwebui": OPENWEBUI,
    "openwebui memories": OPENWEBUI_MEMORIES,
    "mem0": MEM0,
    "letta": LETTA,
    "letta, older": LETTA_OLD,
}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """An archive of these files."""
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()
