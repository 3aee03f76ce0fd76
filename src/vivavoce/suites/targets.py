"""From the target of a suite to the systems under test, one for each model handle."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.plugins import load_object
from vivavoce.suites.load import Suite
from vivavoce.suites.target_spec import (
    FunctionTargetSpec,
    HttpTargetSpec,
    LettaCodeTargetSpec,
    LettaTargetSpec,
    OpenAITargetSpec,
    TargetSpec,
)
from vivavoce.targets.environment import from_environment
from vivavoce.targets.function import FunctionTarget
from vivavoce.targets.http import HttpTarget
from vivavoce.targets.letta import AgentSource, LettaTarget
from vivavoce.targets.letta_code import LettaCodeOptions, LettaCodeTarget
from vivavoce.targets.letta_server import LettaAccess
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Target
from vivavoce.wire.http import Limits, is_loopback


@dataclass(frozen=True, slots=True)
class _Context:
    suite: Suite
    limits: Limits
    keys_needed: bool

    def key(self, variable: str, base_url: str) -> str | None:
        """Return an API key from the environment; a local address needs none."""
        found = os.environ.get(variable) or None
        if found is None and self.keys_needed and not is_loopback(base_url):
            raise UsageError(f"{base_url} needs a key: set the environment variable {variable}")
        return found

    def load(self, reference: str | None) -> Any:
        return None if reference is None else load_object(reference, self.suite.base)

    def file(self, path: str | None) -> Path | None:
        return None if path is None else self.suite.base / path


def build_targets(suite: Suite, concurrency: int, *, keys_needed: bool = True) -> list[Target]:
    """Return the systems under test of a suite; nothing is sent yet. A check does not need their API keys.

    Raises:
        UsageError: a file, a key or a name is missing; the problem names its place in the suite.
    """
    spec = suite.spec.target
    if spec is None:
        return []
    context = _Context(suite, Limits(concurrency=concurrency, timeout=spec.timeout), keys_needed)
    try:
        targets = _BUILDERS[type(spec)](spec, context)
    except UsageError as error:
        raise UsageError(*suite.document.placed(("target",), error)) from error
    names = [target.name for target in targets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(suite.document.problem(("target", "model_handles"), f"'{twice}' is listed twice"))
    return targets


def _function(spec: FunctionTargetSpec, context: _Context) -> list[Target]:
    path, _, function = spec.function.rpartition(":")
    return [FunctionTarget(context.load(spec.function), spec.name or f"{Path(path).stem}.{function}")]


def _openai(spec: OpenAITargetSpec, context: _Context) -> list[Target]:
    base_url = from_environment(spec.base_url, "base_url")
    settings = from_environment(spec.settings, "settings")
    return [
        OpenAITarget(
            handle,
            base_url,
            handle,
            api_key=context.key(spec.api_key_env, base_url),
            system_prompt=spec.system_prompt,
            settings=settings,
            tools=spec.tools or (),
            limits=context.limits,
        )
        for handle in spec.model_handles
    ]


def _http(spec: HttpTargetSpec, context: _Context) -> list[Target]:
    return [
        HttpTarget(
            spec.name or "http",
            spec.url,
            body=spec.body,
            reply=spec.reply,
            method=spec.method,
            headers=spec.headers,
            session=spec.session,
            limits=context.limits,
        )
    ]


def _letta(spec: LettaTargetSpec, context: _Context) -> list[Target]:
    source = AgentSource(spec.agent_id, context.file(spec.agent_file), context.load(spec.agent_script))
    access = _access(spec)
    if not access.api_key:
        context.key("LETTA_API_KEY", access.base_url)
    return [LettaTarget(source, access, model=handle, cleanup=spec.cleanup) for handle in spec.model_handles or [None]]


def _letta_code(spec: LettaCodeTargetSpec, context: _Context) -> list[Target]:
    options = LettaCodeOptions(
        command=spec.command,
        backend=spec.backend,
        flags=spec.flags,
        permission_mode=spec.permission_mode,
        directory=context.suite.base,
        memory_dir=context.file(spec.memory_dir),
    )
    access = None
    if spec.backend != "local":
        access = _access(spec)
        if not access.api_key:
            context.key("LETTA_API_KEY", access.base_url)
    factory = context.load(spec.agent_script)
    return [
        LettaCodeTarget(options, model=handle, access=access, factory=factory)
        for handle in spec.model_handles or [None]
    ]


def _access(spec: LettaTargetSpec | LettaCodeTargetSpec) -> LettaAccess:
    key = None if spec.api_key is None else from_environment(spec.api_key.get_secret_value(), "api_key")
    return LettaAccess.find(from_environment(spec.base_url, "base_url"), key, spec.project_id)


_Build = Callable[[Any, _Context], list[Target]]
_BUILDERS: dict[type[TargetSpec], _Build] = {
    FunctionTargetSpec: _function,
    OpenAITargetSpec: _openai,
    HttpTargetSpec: _http,
    LettaTargetSpec: _letta,
    LettaCodeTargetSpec: _letta_code,
}

TIMED = (OpenAITargetSpec, HttpTargetSpec)
"""Targets that keep to `timeout` themselves; nobody else limits the time of their calls."""
