"""What a notebook shows: a run, a conversation, a sample, a score, a report, or a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from markupsafe import Markup

from vivavoce.errors import VivavoceError
from vivavoce.messages import AIMessage, AnyMessage, ConversationHistory
from vivavoce.metrics.evaluation import EvaluationReport
from vivavoce.records.run import Grading, Outcome, Run
from vivavoce.records.score import Evidence, Score, conversation_label, shorten, turn_label, turn_title
from vivavoce.records.trajectory import Trajectory
from vivavoce.report.comparison.comparison import Comparison, GraderComparison
from vivavoce.report.comparison.regressions import reason_lines
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.rendering import STATIC, render_template
from vivavoce.report.html.run import head
from vivavoce.report.html.samples import Line, line
from vivavoce.report.text import count
from vivavoce.run.summary import RunResult, Summary
from vivavoce.safe_text import safe
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store

MAX_SAMPLES = 5
"""Samples that are shown."""


def result_html(result: RunResult) -> str:
    """Return a result as a piece of HTML; if its store cannot be read any more, it says so."""
    try:
        with closing(Store.open(result.place, create=False)) as store:
            return _html(result.run, result.grading, result.summary, _worst(store, result.grading))
    except VivavoceError as error:
        return _html(result.run, result.grading, result.summary, [], safe(str(error)))


def graded_html(graded: GradedRun) -> str:
    """Return a graded run as a piece of HTML."""
    return _html(graded.run, graded.grading, graded.summary(), _worst(graded.store, graded.grading))


def _worst(store: Store, grading: Grading) -> list[Line]:
    samples = [
        line(sample, "", ()) for sample in store.browse.samples(grading.id, sort="worst", limit=MAX_SAMPLES).samples
    ]
    return [sample for sample in samples if sample.state not in ("pass", "measured", "skip")]


def _html(run: Run, grading: Grading, summary: Summary, worst: list[Line], problem: str = "") -> str:
    values = {
        **head(run, grading, summary),
        "worst": worst,
        "problem": problem,
        "style": Markup((STATIC / "notebook.css").read_text("utf-8")),
    }
    return render_template("notebook.html", values).decode()


MAX_ROWS = 50
"""Rows of a table that are shown."""
MAX_CHARS = 2_000
"""Characters of a text that are shown."""

_SCORES = ("", "score", "passed", "why")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of texts."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown: a title, lines below it, then tables."""

    title: str
    lines: Sequence[str]
    tables: Sequence[Rows]


def conversation_html(conversation: ConversationHistory) -> str:
    """Return a conversation with who said what."""
    name = conversation.conversation_id or "Conversation"
    lines = [count(len(conversation.messages), "message")]
    return _card_html(Card(name, lines, [Rows(("", "message"), list(_messages(conversation.messages)))]))


def trajectory_html(trajectory: Trajectory) -> str:
    """Return the conversation of an attempt, turn by turn."""
    return _card_html(Card(count(len(trajectory.turns), "turn"), _failures(trajectory), [_turns(trajectory)]))


def outcome_html(outcome: Outcome) -> str:
    """Return a conversation with its scores."""
    key, talk = outcome.attempt.key, outcome.attempt.trajectory
    scores = outcome.scores if outcome.reward is None else {**outcome.scores, "reward": outcome.reward}
    name = f"{conversation_label(key.sample_id, key.trial)} · {key.target}"
    return _card_html(Card(name, _failures(talk), [Rows(_SCORES, _scores(scores)), _turns(talk)]))


def sample_html(sample: Sample) -> str:
    """Return a sample with the fields that it holds, a recorded conversation last."""
    fields = sample.model_dump(mode="json", exclude={"id", "messages"}, exclude_defaults=True)
    tables = [Rows(("", "value"), [(name, _value(value)) for name, value in fields.items()])]
    if sample.messages is not None:
        tables.append(Rows(("", "message"), list(_messages(sample.messages))))
    return _card_html(Card(sample.id, [], tables))


def score_html(score: Score) -> str:
    """Return a score with its reason and what it rests on."""
    findings = [
        (finding.what, finding.verdict, _place(finding.turn), _quotes(finding.evidence)) for finding in score.findings
    ]
    turns = {turn_label(turn.turn): turn for turn in score.turns or () if turn.turn is not None}
    evidence = [(_place(quote.turn), _quotes([quote])) for quote in score.other_evidence]
    tables = [
        Rows(("finding", "verdict", "turn", "evidence"), findings),
        Rows(("turn", "evidence"), evidence),
        Rows(("turn", *_SCORES[1:]), _scores(turns)),
    ]
    passed = _verdict_text(score)
    title = f"{score.name or 'score'}: {_number(score)}{f' · {passed}' if passed else ''}"
    failure = str(score.failure or "")
    reason = score.reason if score.reason and score.reason not in failure else ""
    return _card_html(Card(title, [line for line in (reason, failure) if line], tables))


def report_html(report: EvaluationReport) -> str:
    """Return the results of several metrics for one conversation."""
    return _card_html(Card(count(len(report), "metric"), [], [Rows(_SCORES, _scores(report))]))


def comparison_html(comparison: Comparison) -> str:
    """Return what changed from one run to another: each grader, then the samples that fail now."""
    graders = [
        (grader.name, target.target_b, str(grader.n), *_change(grader))
        for target in comparison.targets
        for grader in target.graders
    ]
    worse = [
        (grader.name, flip.sample_b, f"{flip.score_a:.2f} → {flip.score_b:.2f}", flip.why)
        for target in comparison.targets
        for grader in target.graders
        for flip in grader.worsened
    ]
    tables = [
        Rows(("grader", "target", "n", "before", "after", "difference", "95% interval"), graders),
        Rows(("passed before, fails now", "sample", "score", "why"), worse),
    ]
    ruling = [] if comparison.ruling is None else [comparison.ruling.sentence, *reason_lines(comparison.ruling)]
    notes = [*ruling, *(change.sentence for change in comparison.changes)]
    notes += [
        f"{grader.name}: {grader.note}" for target in comparison.targets for grader in target.graders if grader.note
    ]
    return _card_html(Card(f"{comparison.run_b} after {comparison.run_a}", notes, tables))


def _card_html(card: Card) -> str:
    style = Markup((STATIC / "notebook.css").read_text("utf-8"))
    return render_template("notebook_card.html", {"card": card, "style": style, "most": MAX_ROWS}).decode()


def _messages(messages: Iterable[AnyMessage]) -> Iterator[tuple[str, str]]:
    for message in messages:
        calls = message.tool_calls or () if isinstance(message, AIMessage) else ()
        texts = [message.text, *(f"→ {call.function.name}({call.function.arguments})" for call in calls)]
        yield message.role, _short("\n".join(filter(None, texts)))


def _turns(talk: Trajectory) -> Rows:
    rows = [("", role, text) for role, text in _messages(talk.opening)]
    for turn in talk.turns:
        messages = [*_messages(turn.messages), *([("error", str(turn.failure))] if turn.failure else [])]
        rows += [
            (turn_title(turn.index, turn.mark) if place == 0 else "", *message)
            for place, message in enumerate(messages)
        ]
    return Rows(("", "", "message"), rows)


def _failures(talk: Trajectory) -> list[str]:
    return [] if talk.failure is None else [str(talk.failure)]


def _scores(scores: Mapping[str, Score]) -> list[tuple[str, ...]]:
    return [(name, _number(score), _verdict_text(score), _short(score.reason or "")) for name, score in scores.items()]


def _number(score: Score) -> str:
    """Return the score in the metric's own terms, or why there is none."""
    scored_value = score.value if score.raw is None else score.raw
    if score.state != "scored" or scored_value is None:
        return score.state
    return f"{scored_value:.3f}" if isinstance(scored_value, float) else str(scored_value)


def _verdict_text(score: Score) -> str:
    return {True: "passed", False: "failed", None: ""}[score.passed]


def _change(grader: GraderComparison) -> tuple[str, str, str, str]:
    interval = "" if grader.low is None or grader.high is None else f"{grader.low:+.3f} to {grader.high:+.3f}"
    means = ["" if number is None else f"{number:.3f}" for number in (grader.mean_a, grader.mean_b)]
    return means[0], means[1], "" if grader.difference is None else f"{grader.difference:+.3f}", interval


def _place(turn: int | None) -> str:
    return "" if turn is None else turn_label(turn)


def _quotes(evidence: Iterable[Evidence]) -> str:
    return _short(" · ".join(quote.text for quote in evidence))


def _value(value: object) -> str:
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return shorten(text, MAX_CHARS) or ""
