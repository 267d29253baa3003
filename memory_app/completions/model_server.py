"""The server that answers chats, as the settings name it."""

from __future__ import annotations

from dataclasses import dataclass

from memory_app.errors import Conflict, Misconfigured, ProviderUnavailable
from memory_app.providers.provider.wire import Forwarding, forwarding
from memory_app.settings import Settings


@dataclass(slots=True)
class ModelServer:
    """The way there, opened with the first chat in the event loop that serves."""

    settings: Settings
    _forwarding: Forwarding | None = None

    @property
    def default_model(self) -> str | None:
        """The model where a request names none."""
        return self.settings.completions.model or self.settings.chat.model

    def forwarding(self) -> Forwarding:
        """Raises `Conflict` where no server is set, `ProviderUnavailable` where its address is none."""
        if self._forwarding is None:
            self._forwarding = self._open()
        return self._forwarding

    async def close(self) -> None:
        if self._forwarding is not None:
            await self._forwarding.close()

    def _open(self) -> Forwarding:
        own, chat = self.settings.completions, self.settings.chat
        # The key belongs to its server.
        base_url, key = (chat.base_url, chat.key) if own.base_url is None else (own.base_url, own.key)
        if base_url is None:
            raise Conflict(
                "no language model is set for chats; set MEMORY_COMPLETIONS__BASE_URL or MEMORY_CHAT__BASE_URL"
            )
        try:
            return forwarding(
                base_url,
                key,
                provider="the language model",
                connect_seconds=own.connect_seconds,
                silence_seconds=own.silence_seconds,
                limit_bytes=own.response_limit_bytes,
            )
        except Misconfigured as error:
            raise ProviderUnavailable(f"the server that answers chats: {error.message}") from None
