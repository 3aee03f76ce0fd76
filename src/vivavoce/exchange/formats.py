"""The formats that we know, by their names; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.exchange.format import Format
from vivavoce.plugins import lazy

NATIVE = "vivavoce"
TABLE = "turns"

_MODULES = {
    NATIVE: "native",
    "openai": "openai_chat",
    "otel": "otel",
    "openinference": "phoenix",
    "langfuse": "langfuse",
    "langsmith": "langsmith",
    "langchain": "langchain",
    "openai-responses": "openai_responses",
    "openai-agents": "openai_agents",
    "openai-agents-traces": "openai_traces",
    "anthropic": "anthropic",
    "vercel": "vercel",
    "gemini": "gemini",
    "google-adk": "google_adk",
    "pydantic-ai": "pydantic_ai",
    "sharegpt": "sharegpt",
    "ragas": "ragas",
    "deepeval": "deepeval",
    "promptfoo": "promptfoo",
    "letta-evals": "letta_evals",
    "openai-tuning": "openai_tuning:TUNING",
    "openai-preference": "openai_tuning:PREFERENCE",
    "anthropic-tuning": "anthropic_tuning",
    "gemini-tuning": "gemini_tuning:TUNING",
    "gemini-preference": "gemini_tuning:PREFERENCE",
    "atif": "atif",
    "letta": "letta",
    "autogen": "autogen",
    "inspect": "inspect_log",
    "crewai": "crewai",
    "livekit": "livekit",
    "pipecat": "pipecat",
    "tau": "tau",
    TABLE: "turns",
}
"""The module of each format, in which it is called `FORMAT` unless the name follows; in the order of their use."""


def names() -> list[str]:
    """Return the names of all formats."""
    return list(_MODULES)


def format_named(name: str) -> Format:
    """Return the format of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in _MODULES:
        raise UsageError(no_format(name))
    module, _, attribute = _MODULES[name].partition(":")
    return cast("Format", lazy(f"vivavoce.exchange.{module}:{attribute or 'FORMAT'}"))


def no_format(name: str) -> str:
    """Return what an error says of an unknown name."""
    return f"no format '{name}'{did_you_mean(name, _MODULES)} (see viva list formats)"


def all_formats() -> Iterator[Format]:
    """Yield every format."""
    return map(format_named, _MODULES)
