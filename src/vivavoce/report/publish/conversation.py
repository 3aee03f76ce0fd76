"""A conversation of a run as a tool for traces knows it: the trace that it came from, or a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

from vivavoce.exchange.conversion import SOURCE
from vivavoce.records.run import Outcome
from vivavoce.report.graded_run import GradedRun

TRACES = "traces"
"""The key in the metadata of an imported row that has the ids of its traces."""


def stable_id(*parts: object, length: int = 32) -> str:
    """Return an id of so many hexadecimal digits that the same parts always get."""
    text = json.dumps([str(part) for part in parts])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=length // 2).hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """What a score is about in a tool: a trace, or one span of it; or a session, which has several traces."""

    trace: str | None = None
    span: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its scores.

    Attributes:
        run: the id of its run.
        outcome: what came out.
        row: its sample, as the dataset has it.
        sources: the traces that its sample was made of in this tool, none if it came from elsewhere.
        is_new: whether the tool does not have it: it was held in the run, or it came from elsewhere.
    """

    run: str
    outcome: Outcome
    row: Mapping[str, Any]
    sources: Sequence[str]
    is_new: bool

    @property
    def trace(self) -> str:
        """The id of its new trace."""
        return stable_id(self.run, *self.outcome.attempt.key)

    @property
    def root(self) -> str:
        """The id of the span of the whole conversation in its new trace."""
        return stable_id(self.trace, "conversation", length=16)

    def span_of(self, turn: int) -> str:
        """Return the id of the span of a turn in its new trace."""
        return stable_id(self.trace, "turn", turn, length=16)

    def place_of(self, turn: int | None) -> Place:
        """Return what a score is about, that of the whole conversation or of a turn.

        A recorded conversation of several traces is a session; its turns are traces if it has as many.
        """
        if self.is_new:
            return Place(self.trace, None if turn is None else self.span_of(turn))
        if len(self.sources) == 1:
            return Place(self.sources[0])
        if turn is not None and len(self.sources) == len(self.outcome.attempt.trajectory.turns):
            return Place(self.sources[turn])
        return Place(session=_session(self.row))


def conversations(graded: GradedRun, formats: frozenset[str]) -> Iterator[Conversation]:
    """Yield the conversations of a run; rows of these formats were imported from the tool."""
    recorded = graded.run.spec.get("driver") == "replay"
    for outcome in graded.outcomes():
        row = cast("dict[str, Any]", json.loads(outcome.attempt.sample))
        sources = _sources(row, formats)
        yield Conversation(graded.run.id, outcome, row, sources, not (recorded and sources))


def _sources(row: Mapping[str, Any], formats: frozenset[str]) -> list[str]:
    """Return the traces that a row was made of, none if it says that it came from elsewhere."""
    metadata = _mapping(row.get("metadata"))
    source = _mapping(metadata.get(SOURCE)).get("format")
    listed: object = metadata.get(TRACES)
    if not isinstance(listed, list) or (source is not None and source not in formats):
        return []
    return [one for one in cast("list[object]", listed) if isinstance(one, str) and one]


def _session(row: Mapping[str, Any]) -> str:
    named = _mapping(_mapping(row.get("metadata")).get(SOURCE)).get("id")
    return str(row["id"] if named is None else named)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
