"""A step that a model writes as JSON, where it calls no tools: a message, a reason to leave, or the use of a tool."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from vivavoce.penelope.tools.end_conversation import NAME as END
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.records.trajectory import Step


class WrittenStep(BaseModel):
    """One step: exactly one of `message`, `leave` and `tool` is given; `step_shape` has the fields."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        ways = [name for name in ("message", "leave", "tool") if name in type(self).model_fields]
        if sum(bool(self._text(name)) for name in ways) != 1:
            raise ValueError(f"give exactly one of {', '.join(ways)}")
        return self

    @property
    def call(self) -> tuple[str, dict[str, Any], str]:
        """The call of a tool that means the same: its name, its arguments, and why."""
        given, why = self.model_dump(exclude_none=True), self._text("reasoning")
        if self._text("message"):
            return SEND, {name: given[name] for name in ("message", "files") if given.get(name)}, why
        if self._text("leave"):
            return END, {"reason": given["leave"]}, why
        return given["tool"], given.get("arguments", {}), why

    def _text(self, name: str) -> str:
        return (getattr(self, name, None) or "").strip()


@lru_cache(maxsize=256)
def step_shape(tools: tuple[str, ...], files: tuple[str, ...], reasoning: bool) -> type[WrittenStep]:
    """Return the shape of a step in a test with these tools, besides sending and leaving, and these files."""
    fields: dict[str, Any] = {"reasoning": (str, ...)} if reasoning else {}
    fields |= {"message": (str | None, None), "leave": (str | None, None)}
    if files:
        file: Any = Literal[files]
        fields["files"] = (list[file] | None, None)
    if tools:
        tool: Any = Literal[tools]
        fields |= {"tool": (tool | None, None), "arguments": (dict[str, Any] | None, None)}
    return create_model("Step", __base__=WrittenStep, **fields)


def written(step: Step) -> dict[str, Any]:
    """Return a step as a model writes it."""
    reasoning = {"reasoning": step.reasoning} if step.reasoning else {}
    arguments = step.tool_arguments
    if step.tool_name == SEND:
        return {**reasoning, **arguments}
    if step.tool_name == END:
        return {**reasoning, "leave": arguments.get("reason", "")}
    return {**reasoning, "tool": step.tool_name, "arguments": arguments}
