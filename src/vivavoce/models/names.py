"""Models by name: `openai:gpt-4.1-mini`, an address, or the judge of VIVAVOCE_JUDGE."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Unpack, cast

from vivavoce.errors import UsageError, VivavoceError, did_you_mean
from vivavoce.models.endpoints import ENDPOINTS, OPENAI, identity_at, key_of
from vivavoce.models.model import Model, Pacing
from vivavoce.models.modes import Mode
from vivavoce.pacing.limits import Budget
from vivavoce.plugins import Registry, lazy
from vivavoce.settings import settings
from vivavoce.user_code import foreign_code
from vivavoce.validation import shows_options
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
"""The suffix by which a provider names the version of a model that answered."""
PROVIDERS = sorted({*ENDPOINTS, *_LIBRARY})
"""The names of built-in providers that may come before the colon."""
UNUSED_KEY = "unused"
"""The API key of a model that is opened for a check alone, and never asked."""

_openers: Registry[Callable[..., Any]] = Registry("model provider", dict.fromkeys(PROVIDERS, ""))
"""The providers; what a plugin adds takes the name of a model and options of `open_model`, and returns the model."""


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
    """Return the model of a name; nothing is sent until its first request.

    `PROVIDER:NAME` or `PROVIDER/NAME` takes address and key from the environment, where they have the names that the
    providers' own tools use. `http://host/v1#NAME` asks that endpoint with `api_key`; no key of the environment is sent
    there, as it belongs to another service. `structured` is the way to ask for JSON, found by trying unless given.
    A provider of a plugin gets the options that its function names.

    Raises:
        UsageError: the name has no known form, an address or a key is missing, `structured` is given for a provider
            that decides it itself, or a plugin's function fails or does not take an option.
        MissingExtra: the provider needs `vivavoce[providers]`.
    """
    provider, model = _split_name(name)
    if _is_of_plugin(provider):
        return _open_of_plugin(
            provider,
            model,
            {"api_key": api_key, "settings": settings, "limits": limits, "structured": structured, **pacing},
        )
    how: dict[str, Any] = {"settings": settings, "limits": limits, **pacing}
    if provider in _LIBRARY:
        if structured is not None:
            raise UsageError(
                f"model '{name}': the provider decides how to request structured answers; leave that option out"
            )
        library = _LIBRARY[provider]
        key = api_key or key_of(name, library.keys_in)
        access = lazy("vivavoce.models.providers.pydantic_ai.model:Access")(library.provider, model, key)
        opened = lazy("vivavoce.models.providers.pydantic_ai.model:PydanticAIModel")(model_name(name), access, **how)
        opened.identity = model_identity(name)
        return opened
    base_url = _base_url(name, provider)
    if provider in ENDPOINTS and not api_key:
        api_key = ENDPOINTS[provider].key(name, base_url)
    return lazy("vivavoce.models.openai:OpenAIModel")(
        model, base_url=base_url, api_key=api_key, structured=structured, name=model_name(name), **how
    )


def model_name(name: str) -> str:
    """Return the name of a model in records, whichever form of it was given; no key is needed.

    It is `PROVIDER:NAME` wherever the provider's address is; `model_identity` says that too. Only `openai:NAME` at
    another address is called by that address, since the models there are hardly ever OpenAI's.

    Raises:
        UsageError: the name has no known form.
    """
    provider, model = _split_name(name)
    if provider == "openai" or _is_address(provider):
        base_url = _base_url(name, provider)
        return f"openai:{model}" if base_url == OPENAI else f"{base_url}#{model}"
    return f"{provider}:{model}"


def model_identity(name: str) -> str:
    """Return the unique identity of the model of a name; no key is needed.

    It is `PROVIDER:NAME` for a provider of a plugin and at an address that the provider fixed for everybody, and
    otherwise `ADDRESS#NAME`: what one machine calls `vllm:judge`, and one account `azure:chat`, is another model
    elsewhere.

    Raises:
        UsageError: the name has no known form, or an address is missing.
    """
    provider, model = _split_name(name)
    if _is_of_plugin(provider):
        return f"{provider}:{model}"
    if provider not in _LIBRARY:
        return identity_at(checked_url(_base_url(name, provider), f"model '{name}'"), model)
    address_variable = next(
        (variable for variable in _LIBRARY[provider].addresses_in if os.environ.get(variable)), None
    )
    if address_variable is None:
        return f"{provider}:{model}"
    return identity_at(checked_url(os.environ[address_variable], address_variable), model)


def is_version_of(answered: str, requested: str) -> bool:
    """Say whether the model that answered, as the provider names it, is the requested one or a version of it.

    `gpt-4.1-mini-2025-04-14` is a version of `gpt-4.1-mini` and of `gpt-4.1-mini-latest`.
    """
    answered_name, requested_name = answered.lower().rpartition("/")[2], requested.lower().rpartition("/")[2]
    return answered_name == requested_name or _VERSION.sub("", answered_name) == requested_name.removesuffix("-latest")


def _base_url(name: str, provider: str) -> str:
    return ENDPOINTS[provider].base_url(name) if provider in ENDPOINTS else provider.rstrip("/")


def _is_address(provider: str) -> bool:
    return provider.startswith(("http://", "https://"))


def _is_of_plugin(provider: str) -> bool:
    return provider not in PROVIDERS and not _is_address(provider)


def _open_of_plugin(provider: str, model: str, options: Mapping[str, Any]) -> Model:
    """Return a model of a provider that a plugin adds.

    Raises:
        UsageError: its function fails, does not take an option that matters, or returns no model of this name.
    """
    name, function = f"{provider}:{model}", _openers.get(provider)
    label = f"model '{name}': the provider '{provider}' of a plugin"
    parameters = list(inspect.signature(function).parameters.values())[1:]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    known = {parameter.name for parameter in parameters}
    passed = {key: value for key, value in options.items() if value is not None and (takes_any or key in known)}
    if ignored := next((key for key in _needed(options) if key not in passed), None):
        raise UsageError(f"{label} takes no {_OPTION_WORDS[ignored]}; leave it out, or choose another provider")
    try:
        with foreign_code():
            opened: object = function(model, **passed)
    except VivavoceError:
        raise
    except Exception as error:
        raise UsageError(f"{label} failed: {type(error).__name__}: {' '.join(str(error).split())}") from error
    return cast("Model", lazy("vivavoce.models.custom:as_named_model")(opened, name, label))


_OPTION_WORDS = {
    "api_key": "API key (api_key)",
    "settings": "settings",
    "structured": "way to structured answers (structured)",
    "rate": "rate limit (rate)",
    "budget": "limit on calls or cost (budget)",
}
"""The options that a model may not ignore, in words."""


def _needed(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that change what is asked, what it costs or how often, so that none may be ignored."""
    budget: Budget | None = options.get("budget")
    if options.get("api_key") not in (None, UNUSED_KEY):
        yield "api_key"
    if options.get("settings"):
        yield "settings"
    yield from (key for key in ("structured", "rate") if options.get(key) is not None)
    if budget is not None and (budget.limits_calls or budget.limits_cost):
        yield "budget"


def _split_name(name: str) -> tuple[str, str]:
    """Return the provider, or an address in its place, and the provider's own name of the model."""
    if _is_address(name):
        base_url, _, model = name.partition("#")
        if not model:
            raise UsageError(f"model '{name}': the model is missing; write {base_url}#NAME")
        return base_url, model
    provider, _, model = name.partition(":" if ":" in name.partition("/")[0] else "/")
    if not (provider and model):
        forms = "openai:NAME, anthropic:NAME and so on, or http://host/v1#NAME"
        raise UsageError(f"model '{name}': a name has the form {forms}")
    if provider not in PROVIDERS and provider not in _openers.plugin_names():
        raise UsageError(f"model '{name}': no provider '{provider}'{did_you_mean(provider, _openers.names())}")
    return provider, model


class DefaultJudge:
    """The model that VIVAVOCE_JUDGE names when it is needed; an opened model is used until it is closed."""

    def __init__(self) -> None:
        self._opened: dict[str, Model] = {}

    @property
    def identity(self) -> str | None:
        """The identity of the model that is named now, None where none is; no key is needed to know it.

        Raises:
            UsageError: the name has no known form, or an address is missing.
        """
        name = settings().judge
        return None if name is None else model_identity(name)

    @property
    def model(self) -> Model | None:
        """The model that is named now, None where none is.

        Raises:
            UsageError: it cannot be opened, as where its key is missing.
        """
        name, identity = settings().judge, self.identity
        if name is None or identity is None:
            return None
        if identity not in self._opened:
            self._opened[identity] = open_model(name)
        return self._opened[identity]

    async def close(self) -> None:
        """Close the opened models; a later question opens the model that is named then."""
        opened, self._opened = self._opened, {}
        for model in opened.values():
            await model.close()
