"""`Clusters`: the groups of failures of a graded run, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.records.score import Usage

Kind = Literal["error", "tool", "expectation", "reason"]
"""Errors alike, a tool's errors alike, one violated expectation, or reasons that say the same."""


class Example(BaseModel):
    """One failure: its conversation, the turn from 0 if it is about one, the grader, and what was said of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_id: str
    trial: int
    target: str
    turn: int | None
    grader: str | None
    reason: str


class Cluster(BaseModel):
    """Failures that have something in common.

    `title` is the signature, or of reasons the most frequent one. `name` is what a model calls it, None where none was
    asked or gave a usable one; it groups nothing. `words` are the most telling words of the reasons.
    `conversations` counts each conversation once, and `failures` each turn of it. `share` is the part of all
    conversations of the run, from 0 to 1, with its 95% interval; the ends are None where nothing can be said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: Kind
    title: str
    name: str | None = None
    words: tuple[str, ...]
    graders: tuple[str, ...]
    conversations: int
    failures: int
    share: float
    low: float | None
    high: float | None
    examples: tuple[Example, ...]


class Naming(BaseModel):
    """The model that named clusters, how many it was `asked` for and `named`, and what its calls used.

    `notes` say which clusters have no name, and why.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    asked: int
    named: int
    usage: Usage | None
    notes: tuple[str, ...] = ()


class Clusters(BaseModel):
    """The clusters of a graded run, those with the most conversations first.

    A failure with several signatures is in several clusters. `conversations` is how many the run has, `failed` how many
    of them have a failure or an error, `failures` how many of these there are. `method` says how reasons were compared,
    `naming` who gave the names, if somebody did.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    grading: str
    grader: str | None
    conversations: int
    failed: int
    failures: int
    method: str
    naming: Naming | None = None
    clusters: tuple[Cluster, ...]
