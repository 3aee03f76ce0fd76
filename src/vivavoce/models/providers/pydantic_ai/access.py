"""`Access`: which model of which provider, and the key to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from httpx2 import AsyncBaseTransport, AsyncClient
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from vivavoce.errors import UsageError


@dataclass(frozen=True, slots=True)
class Access:
    """A provider and its model, as the library calls them; without a key the provider's own tools look for one.

    The key is in no repr.
    """

    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Find out whether the provider can be asked at all; nothing is sent.

        Raises:
            UsageError: its own package is not installed.
        """
        self._provider_class()

    def connect(self, transport: AsyncBaseTransport | None = None) -> Model:
        """Return the library's model with connections of its own, for one event loop, or with those of a transport.

        Raises:
            UsageError: its package or something in its configuration is missing.
        """
        provider = self._provider_class()
        try:
            over = {} if transport is None else {"http_client": AsyncClient(transport=transport)}
            opened = provider(api_key=self.api_key, **over) if self.api_key else provider(**over)
            return infer_model(f"{self.provider}:{self.model}", lambda _: opened)
        except (UserError, ValueError) as error:
            raise UsageError(f"a model of {self.provider} cannot be asked: {error}") from error

    def hide_key(self, text: str) -> str:
        """Return a text with the key cut out."""
        return text.replace(self.api_key, "***") if self.api_key else text

    def _provider_class(self) -> Callable[..., Provider[Any]]:
        try:
            return infer_provider_class(self.provider)
        except ImportError as error:
            extra = self.provider.partition("-")[0]
            hint = f"pip install 'pydantic-ai-slim[{extra}]'"
            raise UsageError(f"a model of {self.provider} needs another package; install it with: {hint}") from error
