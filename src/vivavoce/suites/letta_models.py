"""The models that letta-evals names in ways of its own: files of its package, and providers of judges.

Source of the handles: `letta_evals/llm_model_configs/*.json` and the suites of its own leaderboard that list handles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vivavoce.models.names import PROVIDERS

MODEL_CONFIGS: Mapping[str, str] = {
    "claude-4-1-opus": "anthropic/claude-opus-4-1-20250805",
    "claude-4-5-haiku": "anthropic/claude-haiku-4-5-20251001",
    "claude-4-5-opus": "anthropic/claude-opus-4-5-20251101",
    "claude-4-5-sonnet": "anthropic/claude-sonnet-4-5-20250929",
    "claude-4-6-opus": "anthropic/claude-opus-4-6",
    "claude-4-6-sonnet": "anthropic/claude-sonnet-4-6",
    "deepseek-chat": "deepseek/deepseek-chat",
    "deepseek-reasoner": "deepseek/deepseek-reasoner",
    "gemini-3-flash": "google_ai/gemini-3-flash-preview",
    "gemini-3-pro": "google_ai/gemini-3-pro-preview",
    "openrouter-deepseek-v3.1": "openrouter/deepseek/deepseek-chat-v3.1",
    "openrouter-glm-4.6": "openrouter/z-ai/glm-4.6",
    "openrouter-kimi-k2-0905": "openrouter/moonshotai/kimi-k2-0905",
    "openrouter-kimi-k2-thinking": "openrouter/moonshotai/kimi-k2-thinking",
    "openrouter-minimax-m2": "openrouter/minimax/minimax-m2",
    "openrouter-mistral-large-3": "openrouter/mistralai/mistral-large-2512",
    "together-deepseek-v3": "together/deepseek-ai/DeepSeek-V3",
    "together-glm-4.5-air": "together/zai-org/GLM-4.5-Air-FP8",
    "together-gpt-oss-120b": "together/openai/gpt-oss-120b",
    "together-gpt-oss-20b": "together/openai/gpt-oss-20b",
    "together-kimi-k2": "together/moonshotai/Kimi-K2-Instruct-0905",
}
"""The handle of the model in each file of `model_configs` whose name does not tell it."""
_OPENAI = re.compile(r"openai-(gpt-.+?)(?:-(?:minimal|low|medium|high|xhigh))?")

_OTHER_NAMES = {"google_ai": "google", "google_vertex": "vertex"}
"""Providers that Letta calls otherwise."""


def handle_of(config: str) -> str | None:
    """Return the handle of the model in a file of `model_configs`, None if there is no such file."""
    if found := _OPENAI.fullmatch(config):
        return f"openai/{found[1]}"
    return MODEL_CONFIGS.get(config)


def judge_provider(name: str) -> str | None:
    """Return our name of a provider that letta-evals or Letta names, None if there is none here."""
    found = _OTHER_NAMES.get(name, name)
    return found if found in PROVIDERS else None


def judge_of_handle(handle: str) -> str | None:
    """Return the judge of a Letta handle such as `anthropic/claude-haiku-4-5`, None if its provider is unknown."""
    provider, _, model = handle.partition("/")
    known = judge_provider(provider)
    return f"{known}:{model}" if known and model else None
