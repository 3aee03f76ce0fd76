"""Models of Anthropic, Google, Bedrock and others; here alone the library pydantic-ai enters."""

from __future__ import annotations

from vivavoce.errors import MissingExtra

try:
    import pydantic_ai  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise MissingExtra("a model of this provider", "providers") from error
