"""Models by name: `openai:gpt-4.1-mini`, `anthropic:…`, or `http://localhost:8000/v1#NAME` for one of your own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.models.addresses import OPENAI, identity_at
from vivavoce.models.endpoints import ENDPOINTS, key_of
from vivavoce.models.model import Model
from vivavoce.models.modes import Mode
from vivavoce.models.openai import OpenAIModel, Pacing
from vivavoce.plugins import lazy
from vivavoce.signatures import shows_options
from vivavoce.wire.http import Limits, checked_url


@dataclass(frozen=True, slots=True)
class _Library:
    """A provider behind pydantic-ai: its name there, and the variables that may hold the key or another address.

    Without a variable for the key the provider's own tools find the credentials.
    """

    provider: str
    keys_in: tuple[str, ...] = ()
    addresses_in: tuple[str, ...] = ()


_LIBRARY: Mapping[str, _Library] = {
    "anthropic": _Library("anthropic", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",)),
    "bedrock": _Library("bedrock", (), ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")),
    "cohere": _Library("cohere", ("CO_API_KEY",), ("CO_BASE_URL",)),
    "deepseek": _Library("deepseek", ("DEEPSEEK_API_KEY",)),
    "google": _Library("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL",)),
    "groq": _Library("groq", ("GROQ_API_KEY",), ("GROQ_BASE_URL",)),
    "mistral": _Library("mistral", ("MISTRAL_API_KEY",)),
    "vertex": _Library("google-cloud", (), ("GOOGLE_VERTEX_BASE_URL",)),
}
_VERSION = re.compile(r"(?:[-@](?:\d{4}-\d\d-\d\d|\d{8}|\d{3,4}))?(?:-preview|-latest)?$")
"""What a provider adds to the name of a model to say which version of it answered."""
PROVIDERS = sorted({*ENDPOINTS, *_LIBRARY})
"""What may stand before the colon."""


@shows_options
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
        opened = lazy("vivavoce.models.providers.pydantic_ai.model:PydanticAIModel")(model_name(name), access, **how)
        opened.identity = model_identity(name)
        return opened
    base_url = _base_url(name, provider)
    if provider in ENDPOINTS and not api_key:
        api_key = ENDPOINTS[provider].key(name, base_url)
    return OpenAIModel(model, base_url=base_url, api_key=api_key, structured=structured, name=model_name(name), **how)


def model_name(name: str) -> str:
    """Return what the model of a name is called in records, however it was spelled; no key is needed to know it.

    It is `PROVIDER:NAME` wherever the provider's address is; `model_identity` says that too. Only `openai:NAME` at
    another address is called by that address, since what answers there is hardly ever OpenAI's.

    Raises:
        UsageError: the name has no known form.
    """
    provider, model = _read(name)
    if provider == "openai" or provider not in PROVIDERS:
        base_url = _base_url(name, provider)
        return f"openai:{model}" if base_url == OPENAI else f"{base_url}#{model}"
    return f"{provider}:{model}"


def model_identity(name: str) -> str:
    """Return what tells the model of a name from all others; no key is needed to know it.

    It is `PROVIDER:NAME` at an address that the provider fixed for everybody, and otherwise `ADDRESS#NAME`: what one
    machine calls `vllm:judge`, and one account `azure:chat`, is another model elsewhere.

    Raises:
        UsageError: the name has no known form, or an address is missing.
    """
    provider, model = _read(name)
    if provider not in _LIBRARY:
        return identity_at(checked_url(_base_url(name, provider), f"model '{name}'"), model)
    elsewhere = next((one for one in _LIBRARY[provider].addresses_in if os.environ.get(one)), None)
    if elsewhere is None:
        return f"{provider}:{model}"
    return identity_at(checked_url(os.environ[elsewhere], elsewhere), model)


def is_version_of(answered: str, asked: str) -> bool:
    """Say whether the model that a provider says answered is the one that was asked, or the version that it stands for.

    `gpt-4.1-mini-2025-04-14` is what `gpt-4.1-mini` and `gpt-4.1-mini-latest` stand for.
    """
    named, wanted = answered.lower().rpartition("/")[2], asked.lower().rpartition("/")[2]
    return named == wanted or _VERSION.sub("", named) == wanted.removesuffix("-latest")


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
