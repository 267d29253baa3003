"""Translate an error of a provider into one of ours, by what it means for the work that waits for it.

The question is whom it concerns. What every request would meet (no answer, a key that was rotated, a model that is
not there yet) is `Transient`: the work waits and nothing is parked, because somebody mends it. What only this
request meets is `Permanent`.

    429                                     RateLimited, with the provider's Retry-After
    no answer, 408, 409, 425, 5xx, cut      ProviderUnavailable
    401, 402, 403                           ProviderUnavailable: the key or the account
    3xx, 404, 405, 410                      ProviderUnavailable: the address or the model's name
    400, 422                                Refused, which a simpler request may mend
    404, 500 that name a part of a request  Refused as well
    413 and other 4xx                       BadModelOutput: the provider does not take this request
    200 with an error in the body           as its code says

Messages hold a status and what to look at, never a body: providers repeat keys and requests in theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import openai

from memory_app.errors import BadModelOutput, MemoryAppError, ProviderUnavailable, RateLimited
from memory_app.providers.provider.retry_after import retry_after
from memory_app.providers.provider.wire import Refused

KEY_REFUSED = (401, 402, 403)
ADDRESS_WRONG = (404, 405, 410)
ASK_AGAIN = (408, 409, 425)
NOT_TAKEN = (400, 422)

_PARTS_OF_REQUESTS = ("response_format", "json_schema", "grammar", "requested parameters")
"""Words by which a server that answers 404 or 500 says that it is the form of the answer it cannot do: llama.cpp with a
schema beyond its grammar, OpenRouter where no provider behind it takes one."""

_FILTER = "content_filter"
_STREAM = re.compile(r"\bstream(?:ing)?\b")

ONLY_STREAMS = (
    "{provider} only answers as a stream, which cannot be used: "
    "choose a model or a server that answers in one piece"
)


def failure_of(error: openai.OpenAIError, *, provider: str, now: datetime) -> MemoryAppError:
    """Return the error of our tree for one of the SDK's. ``provider`` is what messages call it."""
    ours = _raised_by_us(error)
    if ours is not None:
        return ours
    if isinstance(error, openai.APITimeoutError):
        return ProviderUnavailable(f"{provider} did not answer in time")
    if isinstance(error, openai.APIStatusError):
        refusal = _refusal(error, provider=provider)
        if refusal is not None:
            return refusal
        return failure_of_status(error.status_code, error.response.headers, provider=provider, now=now)
    return ProviderUnavailable(f"{provider} could not be reached, or broke off its answer")


def failure_in(body: Mapping[str, object], *, provider: str) -> MemoryAppError | None:
    """Return the error that stands in the body of an answer with status 200, or None.

    Routers send it where the provider behind them failed after they had begun to answer.
    """
    error = body.get("error")
    if not isinstance(error, Mapping) or body.get("choices") or body.get("data"):
        return None
    code = error.get("code")
    status = code if isinstance(code, int) else 502
    return failure_of_status(status, {}, provider=provider, now=datetime.now(UTC))


def _refusal(error: openai.APIStatusError, *, provider: str) -> MemoryAppError | None:
    """What is wrong with the request, as far as its words say so; None where they say nothing of it."""
    # The body as well: where its error is a text and no object, the SDK leaves it out of the message.
    hint = f"{error.message} {error.body}".lower()
    status = error.status_code
    names_part = any(words in hint for words in _PARTS_OF_REQUESTS)
    if status not in NOT_TAKEN and not (status in (404, 500) and names_part):
        return None
    if _FILTER in hint:
        return BadModelOutput(f"the filter of {provider} refused the question ({status})")
    # Whatever else is taken out of the request, it would be refused again.
    if _STREAM.search(hint) and not names_part:
        return ProviderUnavailable(ONLY_STREAMS.format(provider=provider))
    return Refused(f"{provider} does not take this request ({status})", hint)


def _raised_by_us(error: BaseException) -> MemoryAppError | None:
    """A limit of ours that the SDK wrapped on its way up."""
    # Raised while the body is read, inside of the SDK, which takes it for a broken connection.
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryAppError):
        cause = cause.__cause__
    return cause


def failure_of_status(
    status: int, headers: Mapping[str, str], *, provider: str, now: datetime
) -> MemoryAppError:
    """Return the error that an answer with this status stands for. ``headers`` may name a Retry-After."""
    wait = retry_after(headers, now=now)
    if status == 429:
        return RateLimited(f"{provider} allows no more requests for now (429)", retry_after=wait)
    if status in KEY_REFUSED:
        return ProviderUnavailable(
            f"{provider} refused the key ({status}); check the key and the account", retry_after=wait
        )
    if status in ADDRESS_WRONG or 300 <= status < 400:
        return ProviderUnavailable(
            f"{provider} does not know this address or model ({status}); check the base URL and the model's name",
            retry_after=wait,
        )
    if status in ASK_AGAIN or status >= 500:
        return ProviderUnavailable(f"{provider} failed ({status})", retry_after=wait)
    return BadModelOutput(f"{provider} does not take this request ({status})")
