"""The target of a suite: what each kind of system under test is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_core.core_schema import CoreSchema

from vivavoce.plugins import Registry
from vivavoce.records.trajectory import CallVisibility, default_calls
from vivavoce.suites.document import SECRET, Address, SettingsOfModel, Spec
from vivavoce.tools.answer import Approvals, HandlerForm

_FROM_OUTSIDE = re.compile(r"([\w.-]+[ =])?\$\{\w+\}")
"""A value that is an environment variable, optionally after a word such as `Bearer`."""


def _no_keys(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if SECRET.fullmatch(name) and not _FROM_OUTSIDE.fullmatch(value):
            raise ValueError(
                f"{name} contains a key, which would be stored; write ${{NAME}} and set NAME in the environment"
            )
    return headers


Headers = Annotated[dict[str, str], AfterValidator(_no_keys)]
"""Headers of a request without a secret."""


class TargetSpec(Spec):
    """Fields of every kind of target: the timeout of a reply in seconds, and how often a failed call is retried.

    `max_concurrent` is the maximum number of conversations with it at a time, if fewer than those of the suite. `name`
    is its name in the results. `calls` says how many of its tool calls its record shows. With `all`, what has no call
    was not done. With `some` or `none`, the judge of a tester believes a plain statement that it was done. The default
    depends on the kind; where the kind says nothing, the record shows all where it has any call, and none where it has
    none.
    """

    timeout: float = Field(default=300.0, gt=0)
    max_retries: int = Field(default=2, ge=0, le=20)
    max_concurrent: int | None = Field(default=None, ge=1)
    name: str | None = Field(default=None, min_length=1)
    calls: CallVisibility | None = None

    @property
    def default_calls(self) -> CallVisibility | None:
        """How many calls the record of its kind shows, None where the record decides."""
        return default_calls(str(getattr(self, "kind", "")))

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """The name of each target it stands for, with its model if that is chosen here."""
        raise NotImplementedError


def _by_model(name: str | None, handles: Sequence[str], otherwise: str = "") -> list[tuple[str, str | None]]:
    """Return a target for each model; of several, each has a `name` in front of its model."""
    if not handles:
        return [(name or otherwise, None)]
    if name is None or len(handles) == 1:
        return [(name or handle, handle) for handle in handles]
    return [(f"{name}/{handle}", handle) for handle in handles]


class FunctionTargetSpec(TargetSpec):
    """A Python function, or an object of a framework of agents, `file.py:name`.

    With `stream` the framework is asked for the pieces of a reply, and the time to the first is recorded.
    """

    kind: Literal["function"]
    function: str
    stream: bool | None = None

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or that of its file and function."""
        path, _, function = self.function.rpartition(":")
        return [(self.name or f"{Path(path).stem}.{function}", None)]


class McpSpec(Spec):
    """An MCP server whose tools are offered and answered: a `command` to start, or the `url` of one that runs.

    `env` names the environment variables that the command gets; `headers` are sent to the url.
    """

    command: Annotated[list[str], Field(min_length=1)] | None = None
    env: list[str] = Field(default_factory=list)
    url: Address | None = None
    headers: Headers = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either command or url")
        if self.command is None and self.env:
            raise ValueError("env is only for command; for url, use headers")
        if self.url is None and self.headers:
            raise ValueError("headers are only for url; for command, use env")
        return self


class OpenAITargetSpec(TargetSpec):
    """An OpenAI-compatible chat completions endpoint.

    `tools` are offered to the model; `handlers` answer their calls, and so does an `mcp` server that offers its own.
    `approvals` is what the user says to the tools in `needs_approval`. A turn has at most `max_steps` rounds of calls.
    """

    kind: Literal["openai"]
    base_url: Address
    model_handles: list[str] = Field(min_length=1)
    api_key_env: str = "OPENAI_API_KEY"
    system_prompt: str | None = None
    settings: SettingsOfModel = Field(default_factory=dict)
    tools: list[dict[str, Any]] | None = None
    handlers: dict[str, HandlerForm] | None = None
    mcp: McpSpec | None = None
    needs_approval: list[str] | None = None
    approvals: Approvals | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)

    @property
    def default_calls(self) -> CallVisibility | None:
        """All where the model is offered tools, else none, for then it can call nothing."""
        return default_calls(self.kind, offers_tools=bool(self.tools or self.handlers or self.mcp))

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """A target for each model."""
        return _by_model(self.name, self.model_handles)


class HttpTargetSpec(TargetSpec):
    """Any HTTP service: a request template, and where the reply is in the response."""

    kind: Literal["http"]
    url: Address
    method: Literal["GET", "POST", "PUT", "PATCH"] = "POST"
    headers: Headers = Field(default_factory=dict)
    body: Any = None
    reply: str = ""
    session: str | None = None

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or `http`."""
        return [(self.name or "http", None)]


class WebSocketTargetSpec(TargetSpec):
    """A bot behind a WebSocket: the frame for a message, and where in its frames the reply is.

    `first` is a frame that is sent after connecting. `piece` is the path of a piece of the reply, and `end` what stands
    where in the frame that ends the turn; without it the first reply is the turn.
    """

    kind: Literal["websocket"]
    url: Address
    headers: Headers = Field(default_factory=dict)
    message: Any = "{{ message }}"
    first: Any = None
    reply: str = ""
    piece: str | None = None
    end: dict[str, Any] | None = Field(default=None, min_length=1)
    error: str | None = None
    session: str | None = None

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or `websocket`."""
        return [(self.name or "websocket", None)]


class A2ATargetSpec(TargetSpec):
    """An agent that speaks the Agent2Agent protocol; `url` is where its card is."""

    kind: Literal["a2a"]
    url: Address
    headers: Headers = Field(default_factory=dict)

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or `a2a`."""
        return [(self.name or "a2a", None)]


class McpTargetSpec(TargetSpec, McpSpec):
    """A tool of an MCP server that is the bot; `arguments` are those of the tool.

    Without them the only argument that the tool requires gets the text of the message.
    """

    kind: Literal["mcp"]
    tool: str = Field(min_length=1)
    arguments: dict[str, Any] | None = Field(default=None, min_length=1)

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or that of the tool."""
        return [(self.name or self.tool, None)]


class TerminalTargetSpec(TargetSpec):
    """A person who answers in the terminal, one conversation at a time; a reply may take an hour."""

    kind: Literal["terminal"]
    timeout: float = Field(default=3600.0, gt=0)
    max_concurrent: int | None = Field(default=1, ge=1, le=1)

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or `terminal`."""
        return [(self.name or "terminal", None)]


class RecordingTargetSpec(TargetSpec):
    """What a target answered when it was recorded, from the file at `path`, which viva export wrote.

    `recorded_target` says whose replies are given, where the file has those of several targets.
    """

    kind: Literal["recording"]
    path: str
    recorded_target: str | None = None

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or `recording`."""
        return [(self.name or "recording", None)]


class LettaTargetSpec(TargetSpec):
    """An agent on a Letta server; exactly one of `agent_id`, `agent_file`, `agent_script`."""

    kind: Literal["letta"]
    base_url: Address | None = None
    api_key: SecretStr | None = None
    project_id: str | None = None
    agent_id: str | None = None
    agent_file: str | None = None
    agent_script: str | None = None
    model_handles: list[str] = Field(default_factory=list)
    cleanup: bool = True

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """A target for each model, or one with the model of the agent."""
        return _by_model(self.name, self.model_handles, "letta")

    @model_validator(mode="after")
    def _one_agent(self) -> Self:
        sources = [name for name in ("agent_id", "agent_file", "agent_script") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"needs exactly one of agent_id, agent_file and agent_script, got {sources or 'none'}")
        return self


class LettaCodeTargetSpec(TargetSpec):
    """The Letta Code command line, one process and one conversation per sample.

    It runs in `working_dir`, which is made where it is missing; `{model}` in it is the last part of the model's handle.
    """

    kind: Literal["letta_code"]
    base_url: Address | None = None
    api_key: SecretStr | None = None
    model_handles: list[str] = Field(default_factory=list)
    backend: Literal["local", "cloud"] | None = None
    flags: str = ""
    permission_mode: str | None = None
    agent_script: str | None = None
    working_dir: str | None = None
    memory_dir: str | None = None
    project_id: str | None = None
    command: str = "letta"

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """A target for each model, or one with the model of the agent."""
        return _by_model(self.name, self.model_handles, "letta_code")


class PluginTargetSpec(TargetSpec):
    """A system under test of a kind that a plugin adds; `config` has the options of that kind."""

    kind: str
    config: dict[str, Any] = Field(default_factory=dict)

    @property
    def names_and_models(self) -> list[tuple[str, str | None]]:
        """Its name, or its kind."""
        return [(self.name or self.kind, None)]

    @field_validator("config")
    @classmethod
    def _no_secrets(cls, config: dict[str, Any]) -> dict[str, Any]:
        _check_secrets(config, "")
        return config


def _check_secrets(value: object, place: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[object, object]", value).items():
            name = f"{place}{key}"
            if isinstance(inner, str) and SECRET.fullmatch(str(key)) and not _FROM_OUTSIDE.fullmatch(inner):
                raise ValueError(
                    f"{name} contains a key, which would be stored; write ${{NAME}} and set NAME in the environment"
                )
            _check_secrets(inner, f"{name}.")
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            _check_secrets(inner, f"{place}{index}.")


_BuiltInSpec = (
    FunctionTargetSpec
    | OpenAITargetSpec
    | HttpTargetSpec
    | WebSocketTargetSpec
    | A2ATargetSpec
    | McpTargetSpec
    | TerminalTargetSpec
    | RecordingTargetSpec
    | LettaTargetSpec
    | LettaCodeTargetSpec
)
BUILT_IN_TARGETS: Mapping[str, type[TargetSpec]] = {
    get_args(spec.model_fields["kind"].annotation)[0]: spec for spec in get_args(_BuiltInSpec)
}
"""What a suite says of each built-in kind of target."""

target_kinds: Registry[Callable[..., Any]] = Registry("target kind", dict.fromkeys(BUILT_IN_TARGETS, ""))
"""The kinds of target; what a plugin adds takes the name of a target and its options, and returns the target."""

PLUGIN_KIND = "(plugin)"
"""A step of the schema, not of the file: a target of a kind that a plugin adds."""


def _kind_of(value: object) -> str | None:
    """Return the tag of a target: its kind, or `PLUGIN_KIND`; None where it has no kind."""
    fields = (
        cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {"kind": getattr(value, "kind", None)}
    )
    kind = fields.get("kind")
    if isinstance(kind, str) and kind not in BUILT_IN_TARGETS and kind in target_kinds.plugin_names():
        return PLUGIN_KIND
    return None if kind is None else str(kind)


class _TargetSchema:
    """The JSON Schema of a target: of the built-in kinds, and of those of plugins where there are any."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        built_in = TypeAdapter[Any](Annotated[_BuiltInSpec, Field(discriminator="kind")]).core_schema
        described = handler(built_in)
        if kinds := target_kinds.plugin_names():
            own = handler(PluginTargetSpec.__pydantic_core_schema__)
            kind = {"properties": {"kind": {"enum": kinds}}}
            return {"oneOf": [described, {"allOf": [own, kind]}]}
        return described


AnyTargetSpec = Annotated[
    Annotated[FunctionTargetSpec, Tag("function")]
    | Annotated[OpenAITargetSpec, Tag("openai")]
    | Annotated[HttpTargetSpec, Tag("http")]
    | Annotated[WebSocketTargetSpec, Tag("websocket")]
    | Annotated[A2ATargetSpec, Tag("a2a")]
    | Annotated[McpTargetSpec, Tag("mcp")]
    | Annotated[TerminalTargetSpec, Tag("terminal")]
    | Annotated[RecordingTargetSpec, Tag("recording")]
    | Annotated[LettaTargetSpec, Tag("letta")]
    | Annotated[LettaCodeTargetSpec, Tag("letta_code")]
    | Annotated[PluginTargetSpec, Tag(PLUGIN_KIND)],
    Discriminator(_kind_of),
    _TargetSchema(),
]
