"""The graders of a suite of letta-evals that ask a model, under our keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from vivavoce.suites.document import KeyPath
from vivavoce.suites.letta_models import judge_of_handle, judge_provider
from vivavoce.suites.translation import Translation, section

DEFAULT_JUDGE = "anthropic/claude-haiku-4-5-20251001"
"""The model of the agent that judges in letta-evals where a suite names no other."""
_OF_AGENT = ("agent_file", "agent_id", "judge_tool_name")
_INERT = {"kind": "function", "function": "ascii_printable_only"}
"""Stands for a grader that was refused, so that the rest of the suite is checked."""


def translate_judge(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    """Give the model of a judge our name, and make a judge of a Letta agent one of its model."""
    if grader.get("kind") == "letta_judge":
        handle = _model_of_agent(work, at, grader)
        if handle is None:
            section(work.data, "graders")[str(at[1])] = dict(_INERT)
            return
        for key in _OF_AGENT:
            grader.pop(key, None)
        grader |= {"kind": "model_judge", "model": handle}
        work.note(
            (*at, "kind"), f"'letta_judge' is judged by the model of its agent, {handle}, without its tools and memory"
        )
    _name_model(work, at, grader)
    if work.era in ("A", "B"):
        grader.setdefault("rubric_vars", [])


def _name_model(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    named = grader.pop("provider", None)
    if work.era is None and named is None:
        return
    provider = judge_provider(str(named or "openai"))
    if provider is None:
        work.refuse((*at, "provider"), f"no provider '{named}'; write model: http://host/v1#NAME for an endpoint")
        provider = "openai"
    model = grader.get("model", "gpt-4o-mini")
    if isinstance(model, str) and not model.startswith(("http://", "https://")) and _provider_in(model) is None:
        grader["model"] = f"{provider}:{model}"


def _provider_in(model: str) -> str | None:
    """Return the provider that a model's name begins with, None if it begins with none."""
    return judge_provider(model.partition(":" if ":" in model.partition("/")[0] else "/")[0])


def _model_of_agent(work: Translation, at: KeyPath, grader: dict[str, Any]) -> str | None:
    """Return the model of the agent that judges, None and a problem where it is not known."""
    if grader.get("agent_id") is not None:
        work.refuse(
            (*at, "agent_id"), "the model of a judge on a server is not known here; use kind: model_judge and its model"
        )
        return None
    handle, file = DEFAULT_JUDGE, grader.get("agent_file")
    if file is not None:
        try:
            handle = _handle_in(work.document.path.parent / str(file))
        except (OSError, ValueError, LookupError, TypeError) as error:
            work.refuse((*at, "agent_file"), f"'{file}' has no agent whose model can be read: {error}")
            return None
    judge = judge_of_handle(handle)
    if judge is None:
        work.refuse((*at, "kind"), f"the provider of the agent's model '{handle}' is not known here; use model_judge")
    return judge


def _handle_in(path: Path) -> str:
    data: Any = json.loads(path.read_text(encoding="utf-8"))
    agent = cast("dict[str, Any]", data["agents"][0])
    config = cast("dict[str, Any]", agent.get("llm_config") or {})
    handle = agent.get("model") or config.get("handle") or f"{config['model_endpoint_type']}/{config['model']}"
    return str(handle)
