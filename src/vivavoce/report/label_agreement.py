"""Agreement with labels: of graded conversations with a label of their dataset, and of people with each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.records.label import (
    Decision,
    DifferingLabels,
    Disputed,
    HumanVerdict,
    Label,
    LabelAgreement,
    PeopleAgreement,
)
from vivavoce.records.run import Attempt, AttemptKey, Outcome
from vivavoce.records.score import Finding, Score, Usage, conversation_label, turn_label
from vivavoce.records.trajectory import answer_of_turn
from vivavoce.report.terminal import number
from vivavoce.safe_text import safe
from vivavoce.stats.agreement import agreement
from vivavoce.stats.raters import Counts, Ratings, counts_of, fleiss, krippendorff, krippendorff_interval, ratings_at
from vivavoce.store.labels import LISTED, Paired, agreement_with, decided


def agreement_of_all(pairs: Sequence[Paired], decisions: Sequence[Decision] = ()) -> LabelAgreement:
    """Return the agreement of a judge with labels, and of their authors with each other.

    Where there is a decision, the judge is compared with it in place of the labels.
    """
    people, compared = people_agreement([pair.label for pair in pairs]), decided(pairs, decisions)
    number = sum(isinstance(pair.label, Decision) for pair in compared)
    return agreement_with(compared).model_copy(update={"people": people, "decided": number})


def people_agreement(labels: Sequence[Label]) -> PeopleAgreement | None:
    """Return the agreement between the authors of labels for one grader, None where no place has labels of two."""
    places: dict[tuple[AttemptKey, int | None], dict[str, HumanVerdict]] = {}
    for label in labels:
        if label.verdict != "unsure":
            places.setdefault((label.key, label.turn), {})[label.author] = label.verdict
    several = {place: verdicts for place, verdicts in places.items() if len(verdicts) > 1}
    if not several:
        return None
    counts = counts_of([list(verdicts.values()) for verdicts in several.values()], ("pass", "fail"))
    people = sorted({author for verdicts in several.values() for author in verdicts})
    differing = [(place, verdicts) for place, verdicts in several.items() if len(set(verdicts.values())) > 1]
    low, high = krippendorff_interval(counts, [key.sample_id for key, _ in several]) or (None, None)
    return PeopleAgreement(
        people=people,
        n=len(several),
        same=len(several) - len(differing),
        alpha=krippendorff(counts),
        low=low,
        high=high,
        kappa=_cohen(people, list(several.values())) if len(people) == 2 else _fleiss(counts, people),
        disputed=[
            Disputed(**key._asdict(), turn=turn, verdicts=verdicts) for (key, turn), verdicts in differing[:LISTED]
        ],
    )


def _cohen(people: Sequence[str], verdicts: Sequence[Mapping[str, HumanVerdict]]) -> float | None:
    first, other = ([by_author[author] == "pass" for by_author in verdicts] for author in people)
    # of two people neither is the truth: there is a kappa if either gave both verdicts
    kappa = agreement(first, other).kappa
    return agreement(other, first).kappa if kappa is None else kappa


def _fleiss(counts: Counts, people: Sequence[str]) -> float | None:
    return fleiss(counts) if (counts.sum(axis=1) == len(people)).all() else None


@dataclass(frozen=True, slots=True)
class Case:
    """A scored conversation with its ratings; `length` is the number of characters of the last reply."""

    key: AttemptKey
    passed: bool | None
    order: tuple[float, float]
    """Sorts cases by the score, and those of equal score by how sure the judge is."""
    confidence: float | None
    ratings: Ratings
    length: int
    findings: tuple[Finding, ...] = ()

    @property
    def sample_id(self) -> str:
        """The sample of the conversation."""
        return self.key.sample_id


@dataclass(slots=True)
class Rated:
    """The scores of one grader next to a label; what cannot be compared is counted.

    `errors` counts by the kind of failure: `format` is an answer outside the shape that was asked for.
    """

    grader: str
    label: str
    cases: list[Case] = field(default_factory=list[Case])
    errors: Counter[str] = field(default_factory=Counter[str])
    skipped: int = 0
    unlabelled: int = 0
    usage: Usage = field(default_factory=Usage)


def collect_rated(
    outcomes: Iterable[Outcome], graders: Sequence[str], label: str, tag: str | None = None
) -> list[Rated]:
    """Return the scores of graders next to the label at a dotted path of each row's `labels`.

    With a `tag`, only rows that have it count.

    Raises:
        UsageError: no row has the label, or it is neither a number nor a yes or no.
    """
    results = [Rated(grader, label) for grader in graders]
    labelled = selected_count = 0
    for outcome in outcomes:
        row = cast("dict[str, Any]", json.loads(outcome.attempt.sample))
        if tag is not None and tag not in row.get("tags", ()):
            continue
        selected_count += 1
        ratings = _ratings(row.get("labels"), label, outcome.attempt)
        labelled += ratings is not None
        for result in results:
            if (score := outcome.scores.get(result.grader)) is not None:
                _add(result, outcome.attempt, score, ratings)
    if not selected_count:
        raise UsageError(f"no row has the tag '{tag}'" if tag else "the run has no conversations")
    if not labelled:
        raise UsageError(f"no row has labels.{label}; name a label of the dataset, as in --label good")
    return results


def _add(rated: Rated, attempt: Attempt, score: Score, ratings: Ratings | None) -> None:
    rated.usage += score.usage or Usage()
    if score.state == "error":
        rated.errors["unknown" if score.failure is None else score.failure.kind] += 1
    elif score.value is None:
        rated.skipped += 1
    elif ratings is None:
        rated.unlabelled += 1
    else:
        length = len(answer_of_turn(attempt.trajectory.messages))
        what = (score.passed, _order(score.value, score), score.confidence)
        rated.cases.append(Case(attempt.key, *what, ratings, length, score.findings))


def _order(value: float, score: Score) -> tuple[float, float]:
    sure = score.confidence or 0.0
    return value, sure if score.passed else -sure


def _ratings(labels: object, path: str, attempt: Attempt) -> Ratings | None:
    """Return the ratings at a path of the labels of a row, None where there are none."""
    try:
        return ratings_at(labels, path)
    except ValueError as error:
        raise UsageError(f"{conversation_label(attempt.key.sample_id, attempt.key.trial)}: {error}") from error


def people_lines(agreement: PeopleAgreement | None) -> Iterator[str]:
    """Yield how far people agree, and a line for each place where they do not; nothing without two people."""
    if agreement is None:
        return
    yield f"{len(agreement.people)} people: {agreement.same} of {agreement.n} with the same label"
    figures = [f"Krippendorff's α {number(agreement.alpha)}"] if agreement.alpha is not None else []
    if agreement.low is not None and agreement.high is not None:
        figures.append(f"95% interval {number(agreement.low)} to {number(agreement.high)}")
    if agreement.kappa is not None:
        name = "Cohen's" if len(agreement.people) == 2 else "Fleiss'"
        figures.append(f"{name} κ {number(agreement.kappa)}")
    if figures:
        yield ", ".join(figures)
    yield from map(disputed_line, agreement.disputed)


def place_text(place: Disputed | DifferingLabels) -> str:
    """Return which conversation or turn people differ on."""
    turn = "" if place.turn is None else f" {turn_label(place.turn)}"
    return f"{conversation_label(place.sample_id, place.trial)}{turn}"


def disputed_line(disputed: Disputed) -> str:
    """Return a place where people disagree, with what each of them says."""
    verdicts = ", ".join(f"{author} says {verdict}" for author, verdict in sorted(disputed.verdicts.items()))
    return safe(f"people differ  {place_text(disputed)}  {verdicts}")
