"""What each part does in Redis, as commands: the same as ``deploy/redis/users.acl`` allows, to be asked in advance.

A command with ``{prefix}`` and ``{db}`` of the settings; none is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from memory_app.hot.keys import DROPPED, KEYS, Key, named_key, scope_key


class Part(StrEnum):
    """Who connects. The users of the file are called so, with ``memory-`` before it."""

    API = "api"
    WORKER = "worker"
    BEAT = "beat"
    FINDER = "finder"
    FLOWER = "flower"
    DOCTOR = "doctor"


Command = tuple[str, ...]

# As in `memory_app.queue`, which cannot be imported here: it imports this package.
QUEUES: Final = ("ingest", "model", "maintenance")

# A key of ours under the commonest name. None of the commands is run, so it needs not exist.
_KEY = "{prefix}hint:rights"
_HOT: Final[tuple[Command, ...]] = (
    ("GET", _KEY),
    ("SET", _KEY, "1"),
    ("DEL", _KEY),
    ("EXISTS", _KEY),
    ("PEXPIRE", _KEY, "1"),
    ("HGET", _KEY, "f"),
    ("HGETALL", _KEY),
    ("HMGET", _KEY, "f"),
    ("HSET", _KEY, "f", "1"),
    ("HSETNX", _KEY, "f", "1"),
    ("HDEL", _KEY, "f"),
    ("HEXISTS", _KEY, "f"),
    ("HINCRBY", _KEY, "f", "1"),
    ("LPUSH", _KEY, "1"),
    ("LPUSHX", _KEY, "1"),
    ("LPOP", _KEY),
    ("LRANGE", _KEY, "0", "1"),
    ("LTRIM", _KEY, "0", "1"),
    ("RPUSH", _KEY, "1"),
    # The digest of no script: rights are checked before Redis looks for it.
    ("EVALSHA", "0" * 40, "1", _KEY),
    ("SCRIPT", "LOAD", "return 1"),
    ("TIME",),
)
_HINTS: Final[tuple[Command, ...]] = (
    *(("LPUSH", "{prefix}" + queue, "1") for queue in QUEUES),
    *(("LLEN", "{prefix}" + queue) for queue in QUEUES),
    *(("SADD", "{prefix}_kombu.binding." + queue, "1") for queue in QUEUES),
)
_CONTROL = "{prefix}/{db}.celery.pidbox"
_EVENTS = "{prefix}/{db}.celeryev/*"
_MAILBOX = "{prefix}rights.reply.celery.pidbox"
_BINDING = "{prefix}_kombu.binding.reply.celery.pidbox"
_QUESTIONS: Final[tuple[Command, ...]] = (
    ("PUBLISH", _CONTROL, "1"),
    ("BRPOP", _MAILBOX, "1"),
    ("LLEN", _MAILBOX),
    ("DEL", _MAILBOX),
    ("SADD", _BINDING, "1"),
    ("SREM", _BINDING, "1"),
    ("EVALSHA", "0" * 40, "1", _BINDING),
    ("SCRIPT", "LOAD", "return 1"),
)
_MESSAGES: Final[tuple[Command, ...]] = (
    ("BRPOP", *("{prefix}" + queue for queue in QUEUES), "1"),
    *(("RPUSH", "{prefix}" + queue, "1") for queue in QUEUES),
    *(("LREM", "{prefix}" + queue, "1", "1") for queue in QUEUES),
    ("HSET", "{prefix}unacked", "f", "1"),
    ("HDEL", "{prefix}unacked", "f"),
    ("ZADD", "{prefix}unacked_index", "1", "1"),
    ("ZREM", "{prefix}unacked_index", "1"),
    ("SET", "{prefix}unacked_mutex", "1"),
    ("LPUSH", _MAILBOX, "1"),
    ("SMEMBERS", _BINDING),
    ("SADD", _BINDING, "1"),
    ("PSUBSCRIBE", _CONTROL),
    ("PUBLISH", "{prefix}/{db}.celeryev/worker.online", "1"),
    ("HINCRBY", "{prefix}dropped:all", "f", "1"),
    ("EXPIRE", "{prefix}dropped:all", "1"),
)

HOT: Final[dict[Part, tuple[Command, ...]]] = {
    Part.API: _HOT,
    Part.WORKER: _HOT,
    Part.BEAT: (
        ("HSET", "{prefix}life:beat", "f", "1"),
        ("EVALSHA", "0" * 40, "1", "{prefix}life:beat"),
        ("HINCRBY", "{prefix}metrics:all", "f", "1"),
        ("PEXPIRE", "{prefix}metrics:all", "1"),
    ),
    Part.FINDER: _HOT,
    Part.FLOWER: (),
    Part.DOCTOR: (
        ("INFO",),
        ("TIME",),
        ("HGET", "{prefix}breaker:chat", "f"),
        ("HGETALL", "{prefix}life:beat"),
    ),
}
BROKER: Final[dict[Part, tuple[Command, ...]]] = {
    Part.API: _HINTS,
    Part.WORKER: (*_HINTS, *_MESSAGES),
    Part.BEAT: _HINTS,
    Part.FINDER: _HINTS,
    Part.FLOWER: (*_QUESTIONS, ("PSUBSCRIBE", _EVENTS), ("LLEN", "{prefix}ingest")),
    Part.DOCTOR: (*_QUESTIONS, ("HGETALL", "{prefix}dropped:all"), ("TTL", "{prefix}dropped:all")),
}


def hot_commands(part: Part, *, prefix: str, db: int) -> tuple[Command, ...]:
    """What a part does in hot memory: each command once, and a write to each key."""
    commands = _filled(HOT[part], prefix, db)
    # Beat and doctor use single keys, which their commands name.
    if HOT[part] is not _HOT:
        return commands
    # Messages that were dropped are counted at the broker.
    keys = [key for key in KEYS if key is not DROPPED]
    return (*commands, *(("DEL", _sample_key(prefix, key)) for key in keys))


def _sample_key(prefix: str, key: Key) -> str:
    return scope_key(prefix, key, 1) if key.per_scope else named_key(prefix, key, "rights")


def broker_commands(part: Part, *, prefix: str, db: int) -> tuple[Command, ...]:
    """What a part does at the broker."""
    return _filled(BROKER[part], prefix, db)


def _filled(commands: Sequence[Command], prefix: str, db: int) -> tuple[Command, ...]:
    return tuple(
        tuple(word.replace("{prefix}", prefix).replace("{db}", str(db)) for word in command)
        for command in commands
    )
