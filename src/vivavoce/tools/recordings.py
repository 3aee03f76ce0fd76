"""Recordings: what was answered once, as a file, so that it can be answered again.

It is JSONL. The first line says what it is, `{"vivavoce_recording": 1}`; each other one is an answer of a `kind`. One
of a tool is `{"kind": "tool", "sample", "name", "arguments", "result" or "error", "seconds"}`; they stand in the order
of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_serializer, model_validator

from vivavoce.errors import Problem, SuiteFault, UsageError
from vivavoce.files.rows import read_rows
from vivavoce.messages import ToolCall, ToolMessage, describe
from vivavoce.metrics.exact.arguments import show
from vivavoce.metrics.exact.matchers import typed_equal
from vivavoce.records.answered import was_made
from vivavoce.tools.answer import FAILED, Answer, Asked, failure, written

FORMAT = 1
HEAD = "vivavoce_recording"


class RecordedCall(BaseModel):
    """A call of a tool and what came back; `sample` is the row in which it was made, `seconds` how long it took."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["tool"] = "tool"
    sample: str | None = None
    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    result: JsonValue = None
    error: str | None = None
    seconds: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError("needs either result or error")
        return self

    @model_serializer
    def _line(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        outcome = "result" if self.error is None else "error"
        return {name: value for name, value in fields.items() if value is not None or name == outcome}

    @property
    def answer(self) -> Answer:
        """What the model reads."""
        return Answer(written(self.result), "recording") if self.error is None else failure(self.error, "recording")


def recorded_call(sample: str, call: ToolCall, answer: ToolMessage) -> RecordedCall | None:
    """Return a call with its answer as a recording, None where no tool was called."""
    notes = answer.metadata or {}
    try:
        arguments = call.args
    except (ValueError, RecursionError):
        return None
    if not was_made(answer):
        return None
    failed = notes.get("failed") is True and answer.text.startswith(FAILED)
    outcome = {"error": answer.text.removeprefix(FAILED)} if failed else {"result": answer.text}
    about = {"sample": sample, "name": call.name, "arguments": arguments, "seconds": notes.get("seconds")}
    return RecordedCall.model_validate({**about, **outcome})


class Recordings:
    """The recorded calls of a file."""

    def __init__(self, calls: Iterable[RecordedCall], place: str) -> None:
        self.place = place
        self._by_tool: dict[str, list[RecordedCall]] = {}
        for one in calls:
            self._by_tool.setdefault(one.name, []).append(one)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            UsageError: it cannot be read, or a line is broken; it names file and line.
        """
        return cls(_calls(path), path.name)

    async def answer(self, asked: Asked) -> Answer:
        """Return what was recorded for a tool and these arguments, preferably in the same row.

        Of several, one after the other is returned, and then the last one again.

        Raises:
            SuiteFault: there is nothing.
        """
        fitting = [
            one for one in self._by_tool.get(asked.name, ()) if typed_equal(one.arguments, dict(asked.arguments))
        ]
        fitting = [one for one in fitting if one.sample == asked.opening.sample_id] or fitting
        if not fitting:
            raise SuiteFault(
                f"{self.place} has no result of {asked.name}({show(asked.arguments)}); record it: let the tool be "
                f"answered in a run, and write that with: viva export RUN --format recordings --output {self.place}",
                kind="unrecorded",
                evidence=_nearest(self._by_tool.get(asked.name, ())),
            )
        key = f"{self.place} {asked.name}({show(asked.arguments, 100_000)})"
        number = asked.world.counts[key]
        asked.world.counts[key] += 1
        return fitting[min(number, len(fitting) - 1)].answer


def _nearest(calls: Sequence[RecordedCall]) -> str:
    lines = [f"recorded: {one.name}({show(one.arguments)})" for one in calls[:20]]
    return "\n".join(lines) or "no call of this tool is recorded"


def _calls(path: Path) -> Iterator[RecordedCall]:
    rows = read_rows(path, "jsonl")
    line, head = next(rows, (1, dict[str, Any]()))
    version = head.get(HEAD)
    if not isinstance(version, int):
        raise UsageError(Problem(f'is not a recording: its first line is not {{"{HEAD}": {FORMAT}}}', path, line))
    if version > FORMAT:
        raise UsageError(Problem("is of a newer vivavoce; upgrade it: pip install --upgrade vivavoce", path, line))
    for line, row in rows:
        if row.get("kind") != "tool":
            raise UsageError(Problem(f"kind: must be 'tool', got {row.get('kind')!r:.60}", path, line))
        yield _read(row, path, line)


def _read(row: Mapping[str, Any], path: Path, line: int) -> RecordedCall:
    try:
        return RecordedCall.model_validate(row)
    except ValidationError as error:
        raise UsageError(Problem(describe(error), path, line)) from error
