"""Models by name: `openai:gpt-4.1-mini`, or `http://localhost:8000/v1#NAME` for one of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.models.model import Model
from vivavoce.models.openai import BASE_URL, OpenAIModel
from vivavoce.pacing.budget import Budget
from vivavoce.wire.http import Limits, is_loopback


def open_model(
    name: str,
    *,
    api_key: str | None = None,
    settings: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    budget: Budget | None = None,
    tries: int = 4,
) -> Model:
    """Return the model of a name; nothing is sent before it is asked something.

    `openai:NAME` or `openai/NAME` asks the endpoint of `OPENAI_BASE_URL` (OpenAI itself by default) with the key of
    `OPENAI_API_KEY`. `http://host/v1#NAME` asks that endpoint with `api_key`; no key of the environment is sent there,
    for it belongs to somebody else.

    Raises:
        UsageError: the name has no known form, or a key is missing.
    """
    model, base_url = _openai_name(name), os.environ.get("OPENAI_BASE_URL") or BASE_URL
    if model is None:
        base_url, model = _address(name)
    else:
        api_key = api_key or os.environ.get("OPENAI_API_KEY")
        if not api_key and not is_loopback(base_url):
            raise UsageError(f"model '{name}' needs a key: set the environment variable OPENAI_API_KEY")
    return OpenAIModel(
        model,
        base_url=base_url.rstrip("/"),
        api_key=api_key,
        settings=settings,
        limits=limits,
        budget=budget,
        tries=tries,
    )


def _openai_name(name: str) -> str | None:
    for prefix in ("openai:", "openai/"):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return None


def _address(name: str) -> tuple[str, str]:
    """Return the base URL and the model of `http://host/v1#NAME`."""
    base_url, _, model = name.partition("#")
    if not name.startswith(("http://", "https://")):
        raise UsageError(f"model '{name}': a name has the form openai:NAME or http://host/v1#NAME")
    if not model:
        raise UsageError(f"model '{name}': the model is missing; write {base_url}#NAME")
    return base_url, model
