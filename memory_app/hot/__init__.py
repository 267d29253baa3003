"""Hot memory: what is kept in Redis to be quick. The only importer of redis.

Everything here can be flushed at any moment without losing knowledge, and nothing here is what a person said:
values are ids, numbers, times and one-word labels. Each call may raise `HotUnavailable`; callers go on
without it.
"""

from memory_app.hot.client import Hot, connect
from memory_app.hot.faults import HotRefused, HotUnavailable

__all__ = ["Hot", "HotRefused", "HotUnavailable", "connect"]
