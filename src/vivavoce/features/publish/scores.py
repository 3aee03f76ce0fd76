"""Scores, figures, and labels as other platforms take them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from vivavoce.features.publish.conversation import Conversation, Place, conversations, stable_id
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading, described_targets
from vivavoce.records.score import Score, Usage, to_number
from vivavoce.report.details import target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.run.summary import GraderSummary, Summary

_TARGET = ("kind", "model", "url", "base_url", "function", "agent_id")
_RATES = ("mean", "low", "high", "pass_rate", "pass_low", "pass_high", "raw_pass_rate", "highest_pass_rate")
_COUNTS = ("scored", "errors", "skipped", "samples")


def parameters(graded: GradedRun) -> dict[str, str]:
    """Return what a run was made with: suite, dataset, targets, judges and the fingerprints of its graders."""
    run, spec = graded.run, graded.grading.spec
    known: dict[str, Any] = {
        "suite": run.suite,
        "vivavoce": run.version,
        "driver": run.spec.get("driver"),
        "dataset": _mapping(run.spec.get("dataset")).get("path"),
        "dataset_hash": run.options.get("dataset"),
        "code_hash": run.options.get("code"),
        "trials": run.options.get("trials") or run.spec.get("trials"),
        "partial_of": run.partial_of,
    }
    for target in described_targets(run.spec):
        for name in _TARGET:
            known[f"target/{target.get('name') or target.get('kind')}/{name}"] = target.get(name)
    for name, grader in _mapping(spec.get("graders")).items():
        known[f"grader/{name}/judge"] = _mapping(grader).get("model") or _mapping(grader).get("judge")
        known[f"grader/{name}/fingerprint"] = graded.grading.fingerprints.get(name)
    return {name: _text(value) for name, value in known.items() if value not in (None, "", [])}


def figures(summary: Summary) -> dict[str, float]:
    """Return the figures of a run; with several targets each name begins with the target.

    `said/mean` has its interval in `said/low` and `said/high`, `said/pass_rate` in `said/pass_low` and
    `said/pass_high`. Costs are in US dollars, times in seconds; what is not known is left out.
    """
    return {name: float(value) for name, value in _figures(summary) if value is not None}


def _figures(summary: Summary) -> Iterator[tuple[str, float | None]]:
    several = len(target_names(summary)) > 1
    yield "conversations", summary.attempts
    yield "conversations/failed", summary.failed_attempts
    for grader in summary.graders:
        yield from _of_grader(f"{grader.target}/{grader.name}" if several else grader.name, grader)
    for latency in summary.latency:
        place = f"{latency.target}/latency" if several else "latency"
        yield f"{place}/p50", latency.p50
        yield f"{place}/p95", latency.p95
    for role, used in summary.usage.items():
        yield from _usage_numbers(f"usage/{role}", used)


def _of_grader(name: str, summary: GraderSummary) -> Iterator[tuple[str, float | None]]:
    for field in (*_RATES, *_COUNTS):
        yield f"{name}/{field}", getattr(summary, field)
    if summary.measured is not None:
        yield f"{name}/measured/mean", summary.measured.mean
        yield f"{name}/measured/min", summary.measured.min
        yield f"{name}/measured/max", summary.measured.max
    for k in summary.pass_at:
        yield f"{name}/pass_at_{k}", summary.pass_at[k]
        yield f"{name}/pass_hat_{k}", summary.pass_hat.get(k)


def _usage_numbers(place: str, used: Usage) -> Iterator[tuple[str, float | None]]:
    yield f"{place}/input_tokens", used.input_tokens
    yield f"{place}/output_tokens", used.output_tokens
    yield f"{place}/calls", used.calls
    yield f"{place}/cost", used.cost


def _text(value: object) -> str:
    return value if isinstance(value, str) else strict_json(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


class Published(NamedTuple):
    """One score under its name, with the same `id` whenever the same set of scores is published.

    `place` is what it is about, `about` what is known besides: the run, the sample, whether it passed.
    """

    id: str
    name: str
    score: Score
    place: Place
    about: dict[str, Any]


def published_scores(conversation: Conversation, grading: Grading, left_out: Counter[str]) -> Iterator[Published]:
    """Yield the scores of a conversation, of the whole before its turns; an error and a skip are not scores."""
    scores = dict(conversation.outcome.scores)
    if conversation.outcome.reward is not None:
        scores["reward"] = conversation.outcome.reward
    for name, whole in scores.items():
        for score in (whole, *(whole.turns or ())):
            if score.state == "scored":
                yield _published_score(conversation, grading, name, score)
            elif score.turn is None:
                left_out["score that is an error" if score.state == "error" else "score that was skipped"] += 1


def _published_score(conversation: Conversation, grading: Grading, name: str, score: Score) -> Published:
    key = conversation.outcome.attempt.key
    turn = score.turn
    about: dict[str, Any] = {
        "run": grading.run_id,
        "grading": grading.id,
        "sample": key.sample_id,
        "target": key.target,
        "trial": to_number(key.trial),
        "turn": None if turn is None else to_number(turn),
        "passed": score.passed,
        "raw": score.raw,
        "fingerprint": grading.fingerprints.get(name),
    }
    known = {field: value for field, value in about.items() if value is not None}
    return Published(stable_id(grading.id, *key, name, turn), name, score, conversation.place_of(turn), known)


def is_judged(score: Score) -> bool:
    """Return whether a model decided a score."""
    return bool(score.settings) or score.usage is not None


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
    for conversation in conversations(graded, formats) if labels else ():
        for label in labels[conversation.outcome.attempt.key]:
            yield _published_label(conversation, label)


def _published_label(conversation: Conversation, label: Label) -> PublishedLabel:
    about: dict[str, Any] = {
        "run": conversation.run,
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
        stable_id("label", conversation.run, *label.key, label.grader, label.turn, label.author),
        label.grader or OVERALL,
        label,
        conversation.place_of(label.turn),
        conversation.is_new,
        conversation.outcome.attempt.started_at,
        {name: value for name, value in about.items() if value is not None},
    )
