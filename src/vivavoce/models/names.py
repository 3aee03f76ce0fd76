"""Models by name: `openai:gpt-4.1-mini`, `anthropic:…`, or `http://localhost:8000/v1#NAME` for one of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.models.endpoints import ENDPOINTS, key_of
from vivavoce.models.model import Model
from vivavoce.models.modes import Mode
from vivavoce.models.openai import BASE_URL, OpenAIModel, Pacing
from vivavoce.plugins import lazy
from vivavoce.wire.http import Limits


@dataclass(frozen=True, slots=True)
class _Library:
    """A provider behind pydantic-ai: its name there, and the variables that may hold the key.

    Without such a variable the provider's own tools find the credentials.
    """

    provider: str
    keys_in: tuple[str, ...] = ()


_LIBRARY: Mapping[str, _Library] = {
    "anthropic": _Library("anthropic", ("ANTHROPIC_API_KEY",)),
    "bedrock": _Library("bedrock"),
    "cohere": _Library("cohere", ("CO_API_KEY",)),
    "deepseek": _Library("deepseek", ("DEEPSEEK_API_KEY",)),
    "google": _Library("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "groq": _Library("groq", ("GROQ_API_KEY",)),
    "mistral": _Library("mistral", ("MISTRAL_API_KEY",)),
    "vertex": _Library("google-cloud"),
}
PROVIDERS = sorted({*ENDPOINTS, *_LIBRARY})
"""What may stand before the colon."""


def open_model(
    name: str,
    *,
    api_key: str | None = None,
    settings: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    structured: Mode | None = None,
    **pacing: Unpack[Pacing],
) -> Model:
    """Return the model of a name; nothing is sent before it is asked something.

    `PROVIDER:NAME` or `PROVIDER/NAME` takes address and key from the environment, where they have the names that the
    providers' own tools use. `http://host/v1#NAME` asks that endpoint with `api_key`; no key of the environment is sent
    there, for it belongs to somebody else. `structured` is the way to ask for JSON, found out unless it is given.

    Raises:
        UsageError: the name has no known form, an address or a key is missing, or `structured` is asked of a provider
            whose way is not ours to choose.
        MissingExtra: the provider needs `vivavoce[providers]`.
    """
    provider, model = _read(name)
    how: dict[str, Any] = {"settings": settings, "limits": limits, **pacing}
    if provider in _LIBRARY:
        if structured is not None:
            raise UsageError(f"model '{name}': the way to structured answers is that of the provider; leave it out")
        library = _LIBRARY[provider]
        key = api_key or key_of(name, library.keys_in)
        access = lazy("vivavoce.models.providers.pydantic_ai.access:Access")(library.provider, model, key)
        return lazy("vivavoce.models.providers.pydantic_ai.model:PydanticAIModel")(model_name(name), access, **how)
    base_url = _base_url(name, provider)
    if provider in ENDPOINTS and not api_key:
        api_key = ENDPOINTS[provider].key(name, base_url)
    return OpenAIModel(model, base_url=base_url, api_key=api_key, structured=structured, name=model_name(name), **how)


def model_name(name: str) -> str:
    """Return what the model of a name is called in records, however it was spelled; no key is needed to know it.

    It is `PROVIDER:NAME` wherever the provider's address is, for the weights are the same. Only `openai:NAME` at
    another address is called by that address, since what answers there is hardly ever OpenAI's.

    Raises:
        UsageError: the name has no known form.
    """
    provider, model = _read(name)
    if provider == "openai" or provider not in PROVIDERS:
        base_url = _base_url(name, provider)
        return f"openai:{model}" if base_url == BASE_URL else f"{base_url}#{model}"
    return f"{provider}:{model}"


def _base_url(name: str, provider: str) -> str:
    return ENDPOINTS[provider].base_url(name) if provider in ENDPOINTS else provider.rstrip("/")


def _read(name: str) -> tuple[str, str]:
    """Return the provider, or the address that stands in its place, and the provider's own name of the model."""
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        if not model:
            raise UsageError(f"model '{name}': the model is missing; write {base_url}#NAME")
        return base_url, model
    provider, _, model = name.partition(":" if ":" in name.partition("/")[0] else "/")
    if not (provider and model):
        forms = "openai:NAME, anthropic:NAME and so on, or http://host/v1#NAME"
        raise UsageError(f"model '{name}': a name has the form {forms}")
    if provider not in PROVIDERS:
        raise UsageError(f"model '{name}': no provider '{provider}'{did_you_mean(provider, PROVIDERS)}")
    return provider, model
