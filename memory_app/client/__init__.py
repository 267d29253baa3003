"""Clients of the HTTP API: `MemoryClient`, and `AsyncMemoryClient` for asyncio.

They need nothing of the server: only httpx2 and pydantic. Methods have the names and parameters of `MemoryApp`, answers
are the objects of the API, and errors are those of `memory_app.errors`.

The names below are loaded at their first use: who has no event loop need not wait for the import of asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_app.client.async_client import AsyncMemoryClient
    from memory_app.client.openai_wrapper import wrap_async_openai, wrap_openai
    from memory_app.client.retries import Retries
    from memory_app.client.sync_client import MemoryClient
    from memory_app.events.webhooks.signature import InvalidSignature, verify_webhook
    from memory_app.records.scope import Scope

__all__ = [
    "AsyncMemoryClient",
    "InvalidSignature",
    "MemoryClient",
    "Retries",
    "Scope",
    "verify_webhook",
    "wrap_async_openai",
    "wrap_openai",
]

_HOME = {
    "AsyncMemoryClient": "memory_app.client.async_client",
    "InvalidSignature": "memory_app.events.webhooks.signature",
    "MemoryClient": "memory_app.client.sync_client",
    "Retries": "memory_app.client.retries",
    "Scope": "memory_app.records.scope",
    "verify_webhook": "memory_app.events.webhooks.signature",
    "wrap_async_openai": "memory_app.client.openai_wrapper",
    "wrap_openai": "memory_app.client.openai_wrapper",
}
"""The module in which each name is defined."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
