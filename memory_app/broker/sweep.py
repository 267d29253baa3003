"""Clearing a queue of garbage many pieces at a time.

Taken one by one, a hundred thousand pieces hold up what stands behind them for minutes. So whenever one is met, those
next in turn are looked at where they are. Only what is garbage is taken out, wherever it stands by then: nothing good
is moved, and a worker that dies meanwhile loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import structlog
from redis import Redis
from redis.exceptions import RedisError

from memory_app.broker.message import DropReason

log = structlog.get_logger(__name__)

MESSAGES = 500
BYTES = 1_000_000
"""Most messages looked at in one go, and their size together: none is read into memory because it is next."""

# The next messages of a queue, first to be taken first. KEYS[1] the queue; ARGV most messages, most bytes.
# A script instead of LRANGE, which would hand over 500 messages of any size.
NEXT = """
local values, bytes = {}, 0
for place = 1, tonumber(ARGV[1]) do
  local value = redis.call('LINDEX', KEYS[1], -place)
  if not value then break end
  bytes = bytes + #value
  if bytes > tonumber(ARGV[2]) then break end
  values[place] = value
end
return values
"""


def sweep(redis: Redis, queue: str, fault_of: Callable[[bytes], DropReason | None]) -> Counter[DropReason]:
    """Take garbage out of the end of ``queue`` that is taken from; how many of each kind. Never raises."""
    removed: Counter[DropReason] = Counter()
    try:
        values = Counter(redis.register_script(NEXT)([queue], [MESSAGES, BYTES]))
        # Without a transaction: each LREM stands for itself, and others may take from the queue in between.
        pipeline = redis.pipeline(transaction=False)
        faults: list[DropReason] = []
        for value, count in values.items():
            fault = fault_of(value)
            if fault is not None:
                faults.append(fault)
                # Negative: from the end that is taken from. Only as many as were looked at.
                pipeline.lrem(queue, -count, value)
        # What Redis removed is counted, not what was looked at: another worker may have swept the same.
        for fault, count in zip(faults, pipeline.execute(), strict=True):
            removed[fault] += count
    except (RedisError, OSError) as error:
        log.warning("queue_not_swept", error=type(error).__name__)
    return removed
