"""The conversations of a run as rows of a dataset, labelled with what graders and people said of them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, TextIO

from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json

_NOT_RECORDED = ("id", "input", "trial", "labels", "metadata")
OVERALL = "conversation"
"""What a label about no grader's question is called."""


def write_conversations(graded: GradedRun, out: TextIO) -> None:
    """Write a row for each conversation that was held, in the order of the run.

    `labels` has `passed`, whether everything that was decided passed; `graders` with score and verdict by name; and
    `people` with the verdict of people on each grader's question, where they agree or somebody decided.
    """
    people = _people(graded)
    several = len({one.attempt.key.target for one in graded.outcomes()}) > 1
    for outcome in graded.outcomes():
        if outcome.attempt.trajectory.messages:
            out.write(strict_json(_row(graded, outcome, people[outcome.attempt.key], several)) + "\n")


def _row(graded: GradedRun, outcome: Outcome, people: dict[str, list[str]], several: bool) -> dict[str, Any]:
    key, known = outcome.attempt.key, json.loads(outcome.attempt.sample)
    rest = {name: value for name, value in known.items() if name not in _NOT_RECORDED}
    said = [message.to_dict() for message in outcome.attempt.trajectory.messages]
    metadata = {**known.get("metadata", {}), "run": graded.run.id, "target": key.target}
    identity = f"{key.sample_id}@{key.target}" if several else key.sample_id
    trial = {"trial": key.trial} if key.trial else {}
    labels = {**known.get("labels", {}), **_labels(outcome, people)}
    return {"id": identity, **trial, **rest, "messages": said, "labels": labels, "metadata": metadata}


def _labels(outcome: Outcome, people: dict[str, list[str]]) -> dict[str, Any]:
    decided = [score.passed for score in outcome.scores.values() if score.passed is not None]
    labels: dict[str, Any] = {"passed": None if not decided or outcome.attempt.failure is not None else all(decided)}
    labels["graders"] = {name: _verdict(score) for name, score in outcome.scores.items()}
    agreed = {name: found[0] for name, found in people.items() if len(set(found)) == 1}
    return {**labels, "people": agreed} if agreed else labels


def _verdict(score: Score) -> dict[str, Any]:
    """Return a score as a label; a measurement has its number and no verdict."""
    if score.measured is not None:
        return {"measured": score.measured}
    return {"score": score.value, "passed": score.passed}


def _people(graded: GradedRun) -> defaultdict[AttemptKey, dict[str, list[str]]]:
    found: defaultdict[AttemptKey, dict[str, list[str]]] = defaultdict(dict)
    for label in graded.store.labels.all(graded.run.id):
        if label.turn is None and label.verdict != "unsure":
            found[label.key].setdefault(_question(label), []).append(label.verdict)
    for decision in graded.store.decisions.all(graded.run.id):
        if decision.turn is None:
            found[decision.key][_question(decision)] = [decision.verdict]
    return found


def _question(label: Label) -> str:
    return label.grader or OVERALL
