"""A comparison with what was asked and said in the samples that flipped between pass and fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vivavoce.records.run import Grading, Outcome
from vivavoce.records.score import Score
from vivavoce.report.comparison.comparison import Comparison, Flip, GraderComparison, TargetComparison
from vivavoce.report.worst_samples import Exchange, exchange_of
from vivavoce.store.store import Store

FLIPS = 10
"""Flips of one kind of a grader that are quoted: those that are shown."""


def with_words(store: Store, comparison: Comparison, a: Grading | None, b: Grading) -> Comparison:
    """Return a comparison with what was asked and said in the flips that are shown; a baseline has no words."""
    targets = [_target(store, target, a, b) for target in comparison.targets]
    return comparison.model_copy(update={"targets": targets})


def _target(store: Store, comparison: TargetComparison, a: Grading | None, b: Grading) -> TargetComparison:
    def add_quotes(grader_comparison: GraderComparison, flip: Flip) -> Flip:
        before = (
            _of_sample(store, a, flip.sample_a, comparison.target_a, grader_comparison.name) if a is not None else None
        )
        after = _of_sample(store, b, flip.sample_b, comparison.target_b, grader_comparison.name)
        exchange = after or before
        texts = {
            "asked": exchange.question if exchange else "",
            "said_a": before.answer if before else "",
            "said_b": after.answer if after else "",
        }
        return flip.model_copy(update=texts)

    graders = [
        grader.model_copy(
            update={
                kind: [add_quotes(grader, flip) if i < FLIPS else flip for i, flip in enumerate(flips)]
                for kind, flips in (("worsened", grader.worsened), ("improved", grader.improved))
            }
        )
        for grader in comparison.graders
    ]
    return comparison.model_copy(update={"graders": graders})


def _of_sample(store: Store, grading: Grading, sample: str, target: str, grader: str) -> Exchange | None:
    """Return the exchange of the trial of a sample that scored lowest."""
    outcomes = [
        outcome for outcome in store.outcomes(grading.id, sample_id=sample) if outcome.attempt.key.target == target
    ]
    scored = [
        (score.value, place)
        for place, outcome in enumerate(outcomes)
        if (score := _score(outcome, grader)) is not None and score.value is not None
    ]
    if not scored:
        return None
    outcome = outcomes[min(scored)[1]]
    return exchange_of(outcome.attempt, _score(outcome, grader))


def _score(outcome: Outcome, grader: str) -> Score | None:
    return outcome.reward if grader == "reward" else outcome.scores.get(grader)


def lines_of(flip: Flip) -> Sequence[tuple[str, str]]:
    """Return the words of a flip with what they are: asked, said before, said now; without those that are unknown."""
    known: Mapping[str, str] = {"asked": flip.asked, "before": flip.said_a, "now": flip.said_b}
    return [(name, text) for name, text in known.items() if text]
