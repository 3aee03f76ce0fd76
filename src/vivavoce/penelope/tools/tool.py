"""`Tool`: something the tester may do between hearing the target and answering it."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast, overload

from pydantic import BaseModel, ConfigDict, Field, create_model

from vivavoce.errors import UsageError
from vivavoce.pacing.loops import call
from vivavoce.penelope.context import TestState
from vivavoce.penelope.words import snake_case
from vivavoce.records.score import shorten
from vivavoce.user_code import name_of

FINDING_LIMIT = 300
"""Characters of a finding that says what a tool returned."""

OUTPUT_LIMIT = 20_000
"""Characters of an output, of an error, and of all findings of one call that go into a request and into the record."""


class ToolResult(BaseModel):
    """What a tool returned; `error` says why it did not succeed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    success: bool
    output: Any = None
    error: str | None = None


class Tool(ABC):
    """Something the tester may do. The tester's model reads its name, `documentation` and the schema of its arguments.

    A user-defined tool acts in `execute`, or in its async twin, and describes itself in these attributes. Those that it
    does not set are read from the class: its name without `Tool`, its docstring, and the arguments of `execute`. Its
    exceptions become error results, and the model continues.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON schema of the arguments, an object."""
    when_to_use: str = ""
    when_not_to_use: str = ""
    examples: str = ""

    @abstractmethod
    def execute(self, **arguments: Any) -> ToolResult:
        """Carry out a call; anything other than a `ToolResult` becomes the output of one."""

    async def aexecute(self, **arguments: Any) -> ToolResult:
        """Carry out a call without blocking the event loop."""
        return _result(await call(self.execute, **arguments))

    def begin(self, state: TestState) -> Tool:
        """Return the tool for one test; one that reads the test's state returns a copy that has it."""
        del state
        return self

    def findings(self, result: ToolResult) -> list[str]:
        """Return the findings of a result as texts, for the judge and the report."""
        output: object = result.output
        if isinstance(output, Mapping):
            findings = cast("Mapping[str, object]", output).get("findings")
            if isinstance(findings, list):
                return [str(finding) for finding in cast("list[object]", findings)]
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
        return [f"{self.name}: {shorten(text, FINDING_LIMIT)}"] if result.success and output is not None else []

    @property
    def documentation(self) -> str:
        """What the tester's model reads: what it does, when to use it, when not, examples."""
        parts = [self.description]
        parts += [f"Use it {self.when_to_use}"] if self.when_to_use else []
        parts += [f"Do not use it {self.when_not_to_use}"] if self.when_not_to_use else []
        parts += [f"Examples: {self.examples}"] if self.examples else []
        return "\n".join(parts)


class FunctionTool(Tool):
    """A function as a tool: its docstring is the description, its parameters are the arguments.

    It returns a `ToolResult`, or anything that JSON can hold; it may be async.

    Raises:
        UsageError: it has no docstring, or takes arguments without names.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.name = name or name_of(function)
        self.description = inspect.getdoc(function) or ""
        if not self.description:
            raise UsageError(f"the tool {self.name} needs a docstring, which tells the tester what it does")
        self._function = function
        self.parameters = _schema(function, self.name)

    def execute(self, **arguments: Any) -> ToolResult:
        """Call the function."""
        return _result(self._function(**arguments))

    async def aexecute(self, **arguments: Any) -> ToolResult:
        """Call the function, in a thread of its own where it is not async."""
        return _result(await call(self._function, **arguments))


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(*, name: str) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function: `@tool`, or `@tool(name="…")`."""
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, name)


def cut(text: str) -> str:
    """Return a text, cut after `OUTPUT_LIMIT` characters; one that is cut says so."""
    return text if len(text) <= OUTPUT_LIMIT else f"{text[:OUTPUT_LIMIT]}… cut after {OUTPUT_LIMIT:,} characters"


def cut_result(result: ToolResult) -> ToolResult:
    """Return a result whose output and error are not too long; an output that is, becomes the beginning of its text."""
    output: object = result.output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    short_output = output if len(text) <= OUTPUT_LIMIT else cut(text)
    return result.model_copy(
        update={"output": short_output, "error": None if result.error is None else cut(result.error)}
    )


def cut_findings(findings: Iterable[object]) -> list[str]:
    """Return the findings of one call up to `OUTPUT_LIMIT` characters; where some are left out, a last one says so."""
    short_findings: list[str] = []
    size = 0
    for finding in findings:
        text = cut(str(finding))
        size += len(text)
        if short_findings and size > OUTPUT_LIMIT:
            return [*short_findings, f"… cut after {OUTPUT_LIMIT:,} characters"]
        short_findings.append(text)
    return short_findings


def as_tool(thing: Tool | Callable[..., Any]) -> Tool:
    """Return a tool; a function is made one.

    Raises:
        UsageError: it is neither a tool nor a function, or nothing describes it.
    """
    if isinstance(thing, Tool):
        return _describe_tool(thing)
    if callable(thing) and not isinstance(thing, type):
        return FunctionTool(thing)
    raise UsageError(f"a tool is a Tool or a function with a docstring, got {thing!r}")


def _describe_tool(own: Tool) -> Tool:
    """Return a tool; where it does not describe itself, its class does."""
    kind = type(own)
    if not hasattr(own, "name"):
        own.name = snake_case(kind.__name__.removesuffix("Tool"))
    if not hasattr(own, "description"):
        if not kind.__doc__:
            raise UsageError(
                f"the tool {own.name} needs a docstring or a description, which tells the tester what it does"
            )
        own.description = inspect.getdoc(kind) or ""
    if not hasattr(own, "parameters"):
        own.parameters = _schema(own.execute, own.name)
    return own


def _result(returned: Any) -> ToolResult:
    return returned if isinstance(returned, ToolResult) else ToolResult(success=True, output=returned)


def _schema(function: Callable[..., Any], name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"the tool {name} takes '{parameter}'; give each argument a name")
        kind = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[parameter.name] = (kind, ... if parameter.default is parameter.empty else Field(parameter.default))
    shape = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    return shape.model_json_schema()
