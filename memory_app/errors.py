"""Every error the product raises, in one tree.

    MemoryAppError
    ├── InvalidInput            the caller must change the request (names the field); also a ValueError
    │   └── TooLarge            a limit was passed
    ├── RequestTooSlow          the request did not arrive in time; the same may be sent again
    ├── Unauthorized            no key, or an unknown, revoked or expired one
    ├── Forbidden               the key is known but lacks the right
    ├── NotFound                no such thing for this tenant
    ├── Conflict                the request contradicts what is stored
    │   └── Erased              it would bring back what was erased
    ├── Transient               try again later; workers retry exactly this
    │   ├── RateLimited         a limit of ours or of a provider
    │   │   └── QuotaExceeded   no more may be stored until something is erased or the quota is raised
    │   ├── CircuitOpen         a provider failed too often; waiting for its probe
    │   ├── ProviderUnavailable a provider did not answer, or answered 5xx
    │   ├── CapReached          a tenant spent what it may spend today; the work waits for tomorrow and has not failed
    │   ├── HotUnavailable      Redis is away; hot memory is left out, nothing is lost (in `memory_app.hot.faults`)
    │   │   └── HotRefused      Redis refuses until a person acts: a wrong password, a missing right, a cluster
    │   ├── ServerUnavailable   to a client: the API did not answer, so nobody knows whether it acted
    │   ├── NotSent             to a client: the API was not reached, so nothing was done
    │   ├── Moved               the rows of a user are in another shard than the one that was asked
    │   └── StoreUnavailable    Postgres is away, or the outcome of a commit is unknown
    │       ├── StoreBusy       somebody else holds the rows; who can wait takes a turn
    │       └── StoreRefused    Postgres turns us away until a person mends it; a part refuses to start on this
    └── Permanent               never retried; the run or turn says failed and why
        ├── BadModelOutput      an answer, or a request, that is of no use
        │   └── UnreadableAnswer a language model's answer in which nothing could be read, after one repair
        ├── UnknownAnswer       to a client: an answer that it cannot read
        ├── DimensionMismatch   the embedder does not fit what is stored
        └── Misconfigured       settings or servers that cannot work together

A message says what happened, with which id, and what to do. It never quotes what a person said.
"""

from __future__ import annotations


class MemoryAppError(Exception):
    """Base of the tree. ``kind`` is the stable name that answers and logs carry."""

    kind = "error"

    def __init__(self, message: str, *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after = retry_after
        self.request_id: str | None = None
        """To a client: what the API calls the request, in its log and in ``memory trace``."""


class InvalidInput(MemoryAppError, ValueError):
    """The request cannot be taken as it is; ``field`` names what to change."""

    kind = "invalid_input"


class TooLarge(InvalidInput):
    """A size limit was passed; the message says the limit and its unit."""

    kind = "too_large"


class RequestTooSlow(MemoryAppError):
    """The headers or the body came so slowly that they were given up."""

    kind = "request_too_slow"


class Unauthorized(MemoryAppError):
    kind = "unauthorized"


class Forbidden(MemoryAppError):
    kind = "forbidden"


class NotFound(MemoryAppError):
    kind = "not_found"


class Conflict(MemoryAppError):
    kind = "conflict"


class Erased(Conflict):
    """The request would bring back what was erased, and was perhaps sent before that."""

    kind = "erased"

    def __init__(self, message: str, *, field: str, reason: str | None = None) -> None:
        super().__init__(message, field=field)
        self.reason = reason


class Transient(MemoryAppError):
    """Passes by itself. ``retry_after`` is in seconds where the other side named one."""

    kind = "transient"


class RateLimited(Transient):
    kind = "rate_limited"


class QuotaExceeded(RateLimited):
    """As much is stored as may be; ``field`` names the quota."""

    kind = "quota_exceeded"


class CircuitOpen(Transient):
    kind = "circuit_open"


class TooSlow(CircuitOpen):
    """The provider answers, but so slowly that it is not asked for what can be done without."""

    kind = "too_slow"


class ProviderUnavailable(Transient):
    kind = "provider_unavailable"


class CapReached(Transient):
    kind = "cap_reached"


class Moved(Transient):
    """The rows of a user are in another shard than the one that was asked. Mostly the right one is asked at once."""

    kind = "moved"

    def __init__(self, shard: int) -> None:
        super().__init__("the data of this user moves at this moment; send the same again", retry_after=1)
        self.shard = shard


class ServerUnavailable(Transient):
    kind = "server_unavailable"


class NotSent(Transient):
    kind = "not_sent"


class StoreUnavailable(Transient):
    kind = "store_unavailable"


class StoreBusy(StoreUnavailable):
    """Others hold the rows, or the statement took too long. Nothing was changed."""


class ReferenceGone(StoreUnavailable):
    """A row refers to one that was forgotten, or moved to another shard, a moment before. Nothing was stored."""


class ShardMissing(StoreUnavailable):
    """The shard is not there, or this code cannot work in it. Nothing was tried."""


class StoreRefused(StoreUnavailable):
    """A wrong password, a missing role and the like: waiting is in vain, and once mended nothing needs a restart."""

    kind = "store_refused"


class Permanent(MemoryAppError):
    kind = "permanent"


class BadModelOutput(Permanent):
    kind = "bad_model_output"


class UnreadableAnswer(BadModelOutput):
    """The model does not answer in the form that it was asked for. Asked again about less, it would not either."""

    kind = "unreadable_answer"


class UnknownAnswer(Permanent):
    kind = "unknown_answer"


class DimensionMismatch(Permanent):
    kind = "dimension_mismatch"


class Misconfigured(Permanent):
    kind = "misconfigured"
