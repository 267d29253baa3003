"""One message for a burst of work: whoever would send a hint claims its name first.

Sender, after its commit: claim the name; send only if it was free. Worker, on receipt: clear the name,
**then** look.

No turn is overlooked. Let a turn be committed at C, and let its sender ask at S > C.

- The name was free: a message goes out after C, so its worker looks after C and sees the turn.
- The name was taken: by a claim at T < S, whose message was sent after T, and whose worker clears the name at
  D and looks at L > D. At S the claim still stood, so it had not been cleared: D > S. Hence L > D > S > C,
  and the worker sees the turn.

Other workers clearing the name, an expiry or a flush only free it early, which means more messages and never
fewer. What is left: the claimer dies before sending, or the message is lost. Then the name is free again
after its life, and the finders look anyway. If Redis refuses the clearing, the same holds. A worker that
leaves work behind must hint again itself.
"""

from __future__ import annotations

from redis.client import Pipeline

from memory_app.hot.client import Hot
from memory_app.hot.keys import HINT, milliseconds


def claim(hot: Hot, name: str, *, life_ms: int) -> bool:
    """True if the caller should send the message ``name``, False if one is under way.

    ``life_ms`` bounds how long a lost message holds back its followers, and is cut to the life in the table
    of keys. Raises `HotUnavailable`; the name may then be claimed all the same.
    """
    with hot.calling() as redis:
        pipeline = redis.pipeline(transaction=False)
        put_to(pipeline, hot, name, life_ms=life_ms)
        return bool(pipeline.execute()[0])


def put_to(pipeline: Pipeline, hot: Hot, name: str, *, life_ms: int) -> None:
    """Have ``pipeline`` claim a name; the reply is as `claim` answers."""
    # NX makes one of several claimers the sender; the expiry frees the name where it dies before it sends.
    life = min(life_ms, milliseconds(HINT.life))
    pipeline.set(hot.named_key(HINT, name), 1, nx=True, px=life)


def clear(hot: Hot, name: str) -> None:
    """First act of the worker that got the message ``name``, before it looks. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        redis.delete(hot.named_key(HINT, name))
