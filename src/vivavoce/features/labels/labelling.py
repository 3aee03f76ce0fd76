"""Human labels: what people say next to the score of the judge, and how well the two agree."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from vivavoce.metrics.factory import CLASSES, MetricClass, metrics
from vivavoce.records.label import HumanVerdict, Label, LabelAgreement
from vivavoce.records.run import AttemptKey, Grading, Outcome
from vivavoce.records.score import Score
from vivavoce.report.details import score_number
from vivavoce.report.graded_run import grader_names
from vivavoce.report.html.plots import Range, Scale, range_plot
from vivavoce.report.html.score_notes import WORDS, State, state_of
from vivavoce.report.text import score
from vivavoce.safe_text import safe

VERDICTS: Mapping[HumanVerdict, tuple[str, State]] = {
    "pass": ("Pass", "pass"),
    "fail": ("Fail", "fail"),
    "unsure": ("Cannot tell", "skip"),
}
"""The word for each verdict, and its glyph."""

_UPPER = (Scale(0.0, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
_WHOLE = (Scale(-1.0, 1.0), (-1.0, -0.5, 0.0, 0.5, 1.0))
"""The axes of kappa with their ticks: the part below 0 is drawn only if it is needed."""
STROKES = 60
"""Items of a queue that are drawn one by one; a longer queue is one bar."""
_PAUSE = 600.0
"""Seconds between two labels that count as a break."""
_NOT_ASKED = ("kind", "display_name", "scores_errors")
"""Keys of a rule that say nothing about what is asked."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The label of a person; `comparison` says how it relates to the score of the judge."""

    author: str
    grader: str
    word: str
    state: State
    note: str
    at: float
    blind: bool
    comparison: str
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a queue: `strokes` are `d` done, `c` current, `t` to do; empty if there are too many to draw."""

    place: int
    total: int
    done: int
    strokes: str
    minutes: int | None

    @property
    def share(self) -> float:
        """The share that is done, in percent."""
        return round(100 * self.done / self.total, 1) if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Differing:
    """A conversation on which person and judge disagree."""

    title: str
    link: str | None
    word: str


@dataclass(frozen=True, slots=True)
class AgreementShown:
    """The agreement of judge and people, ready to be drawn."""

    labels: LabelAgreement
    plot: Range | None
    ticks: list[tuple[float, str]]
    differing: list[Differing]

    @property
    def same(self) -> int:
        """Pairs in which both agree."""
        return self.labels.both_pass + self.labels.both_fail

    @property
    def wide(self) -> bool:
        """Whether there are too few pairs: the interval covers more than a third of the axis."""
        return (
            self.labels.low is not None and self.labels.high is not None and self.labels.high - self.labels.low > 1 / 3
        )


@dataclass(frozen=True, slots=True)
class Question:
    """The question to people about a grader.

    `definition` says what its metric or function measures, in the words of the suite where it has some, `rubric` has
    the instructions of its judge, and `options` how the suite sets it, as JSON; each is empty where it is not known.
    """

    grader: str
    text: str
    rubric: str
    judged: bool
    definition: str = ""
    options: str = ""


def questions(grading: Grading) -> list[Question]:
    """Return the questions of a set of scores, those of judged graders first."""
    return sorted((question(grading, name) for name in grader_names(grading)), key=lambda item: not item.judged)


def question(grading: Grading, grader: str) -> Question:
    """Return the question about a grader of a set of scores, or the general one without a grader."""
    if not grader:
        return Question("", "Did the assistant do well?", "", judged=False)
    graders: Mapping[str, Mapping[str, Any]] = grading.spec.get("graders") or {}
    spec = graders.get(grader, {})
    name = spec.get("display_name") or grader
    rubric = spec.get("prompt")
    return Question(
        grader,
        f"Does it pass “{safe(str(name))}”?",
        safe(rubric) if isinstance(rubric, str) else "",
        judged=_is_judged(spec),
        definition=_definition(spec),
        options=_options(spec),
    )


def _measure(spec: Mapping[str, Any]) -> MetricClass | None:
    """Return the registered metric or function of a grader; one from a file or from Python is not known here."""
    kind = "rule" if spec.get("kind") == "rule" else spec.get("metric") or spec.get("function")
    name = CLASSES.get(str(kind), str(kind))
    return metrics.get(name) if name in metrics.names() else None


def _is_judged(spec: Mapping[str, Any]) -> bool:
    """Return whether a model judges; of what is not registered, only a model in the suite says so."""
    metric = _measure(spec)
    return spec.get("kind") == "model_judge" or (metric.judged if metric is not None else bool(spec.get("model")))


def _definition(spec: Mapping[str, Any]) -> str:
    """Return what the suite defines itself, or else what the metric measures, in a sentence."""
    config: Mapping[str, Any] = spec.get("config") or {}
    if isinstance(own := config.get("definition"), str):
        return safe(own)
    metric = _measure(spec)
    return "" if metric is None else safe(inspect.cleandoc(metric.__doc__ or "").partition("\n")[0].replace("`", ""))


def _options(spec: Mapping[str, Any]) -> str:
    if spec.get("kind") == "rule":
        options: dict[str, Any] = {key: value for key, value in spec.items() if key not in _NOT_ASKED and value}
    else:
        options = dict(spec.get("config") or {})
        options |= {} if spec.get("threshold") is None else {"threshold": spec["threshold"]}
    return safe(json.dumps(options, ensure_ascii=False, indent=2)) if options else ""


def human_label(label: Label, grade: Score | None) -> HumanLabel:
    """Return the label of a person, compared with the grade that it is about."""
    word, state = VERDICTS[label.verdict]
    return HumanLabel(
        author=safe(label.author),
        grader=safe(label.grader),
        word=word,
        state=state,
        note=safe(label.note or ""),
        at=label.created_at,
        blind=label.blind,
        comparison=_compare_with_judge(label, grade),
        turn=label.turn,
    )


def human_labels(labels: Sequence[Label], outcome: Outcome) -> dict[int | None, list[HumanLabel]]:
    """Return the labels of a conversation by turn; those of the whole conversation are under None."""
    by_turn: dict[int | None, list[HumanLabel]] = {}
    for label in labels:
        grade = outcome.scores.get(label.grader)
        if label.turn is not None and grade is not None:
            grade = next((turn for turn in grade.turns or () if turn.turn == label.turn), None)
        by_turn.setdefault(label.turn, []).append(human_label(label, grade))
    return by_turn


def progress(items: Sequence[AttemptKey], labels: Mapping[AttemptKey, Label], place: int) -> Progress:
    """Return the progress of a queue; `place` is the current item, counted from 1, or 0 for none."""
    done = sum(item in labels for item in items)
    strokes = "".join("c" if at == place else "d" if item in labels else "t" for at, item in enumerate(items, 1))
    left = len(items) - done
    pace = _pace([label.created_at for label in labels.values()])
    minutes = None if pace is None or not left else max(1, round(pace * left / 60))
    return Progress(place, len(items), done, strokes if len(items) <= STROKES else "", minutes)


def agreement_shown(agreement: LabelAgreement, link: Callable[[Label], str | None]) -> AgreementShown:
    """Return the agreement of judge and people; `link` returns the address of a conversation."""
    scale, ticks = _WHOLE if agreement.low is not None and agreement.low < 0 else _UPPER
    plot = range_plot(scale, agreement.kappa, agreement.low, agreement.high)
    differing = [
        Differing(
            safe(disagreement.label.sample_id),
            link(disagreement.label),
            "too lenient" if disagreement.lenient else "too strict",
        )
        for disagreement in agreement.disagreements
    ]
    return AgreementShown(agreement, plot, [(scale.at(tick), f"{tick:g}") for tick in ticks], differing)


def _compare_with_judge(label: Label, grade: Score | None) -> str:
    """Return a comparison of a label with a grade in words; a judge that fails what a person passes is too strict."""
    if not label.grader:
        return ""
    if grade is None:
        return "the judge has no score here"
    state = state_of(grade)
    if state == "measured":
        return f"the judge measures {score_number(grade)}, which neither passes nor fails"
    if state in ("error", "skip"):
        return f"the judge gave no score: {WORDS[state].lower()}"
    passed = state == "pass"
    judge_says = f"the judge says {WORDS[state]}, {score(grade.value)}"
    if label.verdict == "unsure":
        return judge_says
    if passed == (label.verdict == "pass"):
        return f"{judge_says}: they agree"
    return f"{judge_says}: too {'lenient' if passed else 'strict'}"


def _pace(times: Sequence[float]) -> float | None:
    """Return the seconds per label, None if there are too few labels."""
    ordered = sorted(times)
    gaps = [after - before for before, after in pairwise(ordered) if after - before < _PAUSE]
    return median(gaps) if len(gaps) >= 3 else None
