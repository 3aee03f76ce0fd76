"""What people said of a conversation, as a tool keeps it beside the scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import to_number
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.publish.conversation import Conversation, Place, conversations, stable_id

OVERALL = "label"
"""The name of a label that answers the question of no grader."""
VALUES = {"pass": 1.0, "fail": 0.0, "unsure": None}


class PublishedLabel(NamedTuple):
    """One label under the name of its grader, with the same `id` whenever the run is published.

    `place` is what it is about, `started_at` when that was begun, `about` what is known besides: the run, the sample,
    who said it and when.
    """

    id: str
    name: str
    label: Label
    place: Place
    is_new: bool
    started_at: float
    about: dict[str, Any]


def published_labels(graded: GradedRun, formats: frozenset[str]) -> Iterator[PublishedLabel]:
    """Yield the labels of a run, conversation by conversation; rows of these formats were imported from the tool."""
    labels: defaultdict[AttemptKey, list[Label]] = defaultdict(list)
    for label in graded.store.labels.all(graded.run.id):
        labels[label.key].append(label)
    for one in conversations(graded, formats) if labels else ():
        for label in labels[one.outcome.attempt.key]:
            yield _published(one, label)


def _published(one: Conversation, label: Label) -> PublishedLabel:
    about: dict[str, Any] = {
        "run": one.run,
        "sample": label.sample_id,
        "target": label.target,
        "trial": to_number(label.trial),
        "turn": None if label.turn is None else to_number(label.turn),
        "grader": label.grader or None,
        "author": label.author,
        "blind": label.blind,
        "labelled_at": label.created_at,
    }
    return PublishedLabel(
        stable_id("label", one.run, *label.key, label.grader, label.turn, label.author),
        label.grader or OVERALL,
        label,
        one.place_of(label.turn),
        one.is_new,
        one.outcome.attempt.started_at,
        {name: value for name, value in about.items() if value is not None},
    )
