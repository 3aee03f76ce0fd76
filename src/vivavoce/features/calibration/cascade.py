"""Cascades of judges: which one answers first, when the next is asked, and what that costs and keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from vivavoce.errors import NotFound, UsageError
from vivavoce.features.calibration.calibration import MIN_LABELS, Figure, figures_of
from vivavoce.features.calibration.thresholds import Choice, Floats, Labelled, Thresholds, choose_thresholds
from vivavoce.metrics.composition import how_good, may_decide
from vivavoce.records.label import Calibration, LabelledVerdict
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import Score, Usage
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import count

_OWN = {"model", "api_key_env", "display_name", "threshold", "confirm", "cascade"}
"""Keys in which the first grader may differ from the other, and still be the same metric under another model."""
_ALONE = {"confirm", "cascade"}
"""Keys of a procedure that a cascade cannot ask first."""
_METRIC = {"kind", "metric", "function", "config", *_OWN}


def cascade_line(
    spec: Mapping[str, Any], first: str, then: str, scores: Sequence[Score], thresholds: Thresholds
) -> str | None:
    """Return what to write into a suite under the grader `then`; None where a suite cannot say it.

    `spec` is the suite as data; `scores` of the first grader name its judge where the suite does not.
    """
    graders: Mapping[str, Any] = spec.get("graders") or {}
    cheap, dear = _stated_keys(graders.get(first)), _stated_keys(graders.get(then))
    if cheap is None or dear is None or dear.keys() & _ALONE or cheap.keys() & _ALONE:
        return None
    judge = cheap.get("model") or next((score.settings["model"] for score in scores if "model" in score.settings), None)
    if _without(cheap, _OWN) == _without(dear, _OWN) and judge is not None:
        cheap_keys: dict[str, Any] = {"model": judge}
    elif (name := cheap.get("metric") or cheap.get("function")) and cheap.keys() <= _METRIC:
        cheap_keys = {"metric": name}
        cheap_keys |= {"config": cheap["config"]} if cheap.get("config") else {}
        cheap_keys |= {"model": judge} if judge is not None else {}
    else:
        return None
    fails, passes = thresholds.fails_below, thresholds.passes_from
    limits = {"fails_below": fails, "passes_from": passes}
    keys = {**cheap_keys, **{key: value for key, value in limits.items() if value is not None}}
    return (
        "cascade: {" + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()) + "}"
    )


def _stated_keys(spec: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the keys of a grader that say something; a suite that is kept as data has those left out, too."""
    return None if spec is None else {key: value for key, value in spec.items() if value not in (None, {}, [])}


def _without(spec: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in keys}


Unit = Literal["cost", "tokens", "verdicts"]
"""What costs are counted in: money, or where a price is unknown the tokens, or the verdicts, of the expensive judge."""


class CascadeRow(BaseModel):
    """What one way to judge comes to: the share that the expensive judge decides (`asked`), and that of its cost.

    What the first one costs is counted in money only, so that without a price its own cost is None.
    """

    model_config = ConfigDict(frozen=True)

    name: Literal["first", "then", "cascade"]
    asked: float
    cost: float | None
    accuracy: Figure
    kappa: Figure


class CascadeReport(BaseModel):
    """The thresholds of a cascade of two graders, chosen on one half of the labels, and its figures on the other half.

    Where `why` says why no thresholds are chosen, they are None, and `rows` has the two judges alone, if anything.
    `held` says whether the agreement of the cascade on the other half is within the interval of `then`. `line` is what
    to write into the suite under `then`, None where a suite cannot say it.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    first: str
    then: str
    labels: int
    chosen_on: int
    reported_on: int
    unit: Unit
    fails_below: float | None = None
    passes_from: float | None = None
    held: bool | None = None
    why: str | None = None
    line: str | None = None
    rows: list[CascadeRow]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Both:
    """A label with the scores of both judges."""

    label: LabelledVerdict
    first: Score
    then: Score


@dataclass(frozen=True, slots=True)
class _Prices:
    """What each score cost, in one unit; `besides` are the tokens of the first as a share of those of the other."""

    unit: Unit
    first: Sequence[float]
    then: Sequence[float]
    besides: float | None = None


def cascade_report(graded: GradedRun, first: str, calibration: Calibration, most: float = 1.0) -> CascadeReport:
    """Return the cheapest cascade of a first grader and the one of a calibration that agrees with people as that does.

    It may cost at most the share `most` of that one alone. Only drawn labels count.

    Raises:
        UsageError: both are one judge. NotFound: there is no such first grader.
    """
    then, prints = calibration.grader, graded.grading.fingerprints
    if first not in prints:
        raise NotFound("grader", first, within=f"grading {graded.grading.id}", known=sorted(prints))
    if prints[first] == prints[then]:
        raise UsageError(f"{first} and {then} are the same judge; a cascade needs two different judges")
    both = list(_both(graded, first, calibration))
    prices = _prices(both)
    cases = _build_cases(both, prices)
    choosing = np.array([_chooses(pair.label.sample_id) for pair in both], dtype=np.bool_)
    half, other = cases.part(choosing), cases.part(~choosing)
    why = _hopeless(both, half, other, first, then)
    choice = None if why else choose_thresholds(half, most)
    if why is None and choice is None:
        why = _none(half, first, then, most)
    reported = [pair for pair, chooses in zip(both, choosing, strict=True) if not chooses]
    rows = list(_rows(reported, other, choice, prices.unit))
    line = None
    if choice is not None:
        scores = [pair.first for pair in both]
        line = cascade_line(graded.grading.spec, first, then, scores, choice.thresholds)
    return CascadeReport(
        run=graded.run.id,
        first=first,
        then=then,
        labels=len(both),
        chosen_on=len(half.good),
        reported_on=len(other.good),
        unit=prices.unit,
        fails_below=choice and choice.thresholds.fails_below,
        passes_from=choice and choice.thresholds.passes_from,
        held=_holds(rows),
        why=why,
        line=line,
        rows=rows,
        notes=list(_notes(calibration, both, prices, rows, first, then)),
    )


def _both(graded: GradedRun, first: str, calibration: Calibration) -> Iterator[_Both]:
    labels = {label.key: label for label in calibration.drawn_labels}
    for outcome in graded.outcomes() if labels else ():
        label = labels.get(AttemptKey(*outcome.attempt.key))
        scores = outcome.scores
        if label is not None and first in scores and calibration.grader in scores:
            yield _Both(label, scores[first], scores[calibration.grader])


def _chooses(sample_id: str) -> bool:
    """Say whether the labels of a sample are those to choose by: half of all samples, always the same."""
    return blake2b(sample_id.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == 0


def _build_cases(both: Sequence[_Both], prices: _Prices) -> Labelled:
    goods = [how_good(pair.first) for pair in both]
    known = list(zip(both, goods, strict=True))

    def side(passes: bool, never: float) -> Floats:
        bounds = [never if g is None or not may_decide(pair.first, passes=passes) else g for pair, g in known]
        return np.array(bounds, dtype=np.float64)

    return Labelled(
        good=np.array([pair.label.good for pair in both], dtype=np.bool_),
        low=side(passes=False, never=np.inf),
        high=side(passes=True, never=-np.inf),
        then=np.array([pair.label.passed for pair in both], dtype=np.bool_),
        first_cost=np.array(prices.first, dtype=np.float64),
        then_cost=np.array(prices.then, dtype=np.float64),
        samples=[pair.label.sample_id for pair in both],
        weights=np.array([1 / (pair.label.drawn or 1.0) for pair in both], dtype=np.float64),
    )


def _prices(both: Sequence[_Both]) -> _Prices:
    """Return what the scores cost: in money where every call has a price, else what the expensive judge alone uses.

    Tokens of two models have different prices, and are not added up.
    """
    firsts, thens = [pair.first for pair in both], [pair.then for pair in both]
    cheap, dear = _spent(firsts, "cost"), _spent(thens, "cost")
    if cheap is not None and dear is not None and sum(dear) > 0:
        return _Prices("cost", cheap, dear)
    nothing = [0.0] * len(both)
    cheap, dear = _spent(firsts, "tokens"), _spent(thens, "tokens")
    if dear is not None and sum(dear) > 0:
        return _Prices("tokens", nothing, dear, None if cheap is None else sum(cheap) / sum(dear))
    return _Prices("verdicts", nothing, [1.0] * len(both))


def _spent(scores: Sequence[Score], unit: Unit) -> list[float] | None:
    """Return what each score cost, None where that is unknown; one without a call of its own costs what others do."""
    if not _asks(scores):
        return [0.0] * len(scores)
    used = [score.usage if score.usage is not None and score.usage.calls else None for score in scores]
    known = [_amount(usage, unit) for usage in used if usage is not None]
    if not known or None in known:
        return None
    mean = sum(amount for amount in known if amount is not None) / len(known)
    return [mean if usage is None else _amount(usage, unit) or 0.0 for usage in used]


def _asks(scores: Sequence[Score]) -> bool:
    """Say whether a model was asked: then there are its settings."""
    return any(score.settings or score.usage for score in scores)


def _amount(used: Usage, unit: Unit) -> float | None:
    return used.cost if unit == "cost" else float(used.input_tokens + used.output_tokens)


def _hopeless(both: Sequence[_Both], half: Labelled, other: Labelled, first: str, then: str) -> str | None:
    """Return why nothing can be chosen, whatever the thresholds."""
    if not both:
        problem = f"no randomly sampled conversation has a label and scores from both {first} and {then}"
        return f"{problem}; --label and --labels name labels, --random says that they are a random sample"
    fewest = min(len(half.good), len(other.good))
    if fewest < MIN_LABELS:
        parts = f"{len(half.good)} to choose thresholds and {len(other.good)} to report"
        return f"too few labels, {len(both):,}: {parts}, and each half needs {MIN_LABELS}"
    if len(set(half.good.tolist())) == 1:
        verdict = "pass" if half.good[0] else "fail"
        return (
            f"people {verdict} every conversation used to choose thresholds, so the judge's errors on the others are "
            "unknown"
        )
    if not _asks([pair.then for pair in both]):
        return f"{then} uses no model, so it costs nothing: use it for everything, or first"
    first_scores = {good for pair in both if (good := how_good(pair.first)) is not None}
    if not first_scores:
        return f"{first} has no score for any labelled conversation"
    if len(first_scores) == 1:
        return (
            f"{first} gives {next(iter(first_scores)):g} for every labelled conversation, so no threshold separates "
            "sure from unsure"
        )
    if all(pair.first.passed is pair.label.passed for pair in both):
        return f"{first} and {then} give the same verdict on every labelled conversation: {first} alone is enough"
    if float(np.dot(half.weights, half.first_cost)) >= float(np.dot(half.weights, half.then_cost)):
        return f"{first} costs as much as {then}: calling it first saves nothing"
    return None


def _none(half: Labelled, first: str, then: str, most: float) -> str:
    """Return why no thresholds were found."""
    dearer = choose_thresholds(half) if most < 1 else None
    if dearer is not None:
        return (
            f"no thresholds that agree as well as {then} cost {most:.0%} of it or less; the cheapest cost "
            f"{dearer.cost:.0%}; raise --cost, or add labels"
        )
    return (
        f"no thresholds keep the agreement of {then} for less than its cost: use {then} for everything, or label more"
    )


def _rows(reported: Sequence[_Both], cases: Labelled, choice: Choice | None, unit: Unit) -> Iterator[CascadeRow]:
    if not reported:
        return
    labels = [pair.label for pair in reported]
    alone = float(np.dot(cases.weights, cases.first_cost) / np.dot(cases.weights, cases.then_cost))
    own = [
        pair.label.model_copy(update={"passed": pair.first.passed})
        for pair in reported
        if pair.first.passed is not None
    ]
    yield _row("first", own, 0.0, alone if unit == "cost" else None)
    yield _row("then", labels, 1.0, 1.0)
    if choice is not None:
        applied = choice.thresholds.of(cases)
        decided = [
            label.model_copy(update={"passed": passed})
            for label, passed in zip(labels, applied.passed.tolist(), strict=True)
        ]
        yield _row("cascade", decided, float(np.average(applied.uncertain, weights=cases.weights)), applied.cost)


def _row(
    name: Literal["first", "then", "cascade"], labels: Sequence[LabelledVerdict], asked_share: float, cost: float | None
) -> CascadeRow:
    figures = {figure.name: figure for figure in figures_of(labels)}
    accuracy = figures.get("accuracy") or Figure(name="accuracy", n=0)
    return CascadeRow(
        name=name,
        asked=asked_share,
        cost=cost,
        accuracy=accuracy,
        kappa=figures.get("kappa") or Figure(name="kappa", n=0),
    )


def _holds(rows: Sequence[CascadeRow]) -> bool | None:
    by_name = {row.name: row for row in rows}
    if "cascade" not in by_name:
        return None
    return all(
        mine.value is None or its.low is None or mine.value >= its.low
        for mine, its in (
            (by_name["cascade"].accuracy, by_name["then"].accuracy),
            (by_name["cascade"].kappa, by_name["then"].kappa),
        )
    )


def _notes(
    calibration: Calibration,
    both: Sequence[_Both],
    prices: _Prices,
    rows: Sequence[CascadeRow],
    first: str,
    then: str,
) -> Iterator[str]:
    if not_random := len(calibration.labels) - len(calibration.drawn_labels):
        yield f"{count(not_random, 'label')} of conversations that were not randomly sampled: not counted"
    if unscored := sum(how_good(pair.first) is None for pair in both):
        yield f"{first} has no score for {count(unscored, 'labelled conversation')}: {then} decides these"
    if both and prices.unit == "tokens":
        many = "an unknown number of" if prices.besides is None else f"{prices.besides:.0%} as many"
        yield f"a price is unknown, so costs are shares of the tokens of {then}; {first} also uses {many} tokens"
    if both and prices.unit == "verdicts":
        yield f"no usage was recorded, so costs are shares of the verdicts of {then}, without the cost of {first}"
    if _holds(rows) is False:
        yield f"on the held-out labels, the agreement is below the interval of {then}: label more before you use it"
    alone = {row.name: row.accuracy for row in rows}
    if _holds(rows):
        yield f"on the held-out labels, the agreement of the cascade is within the 95% intervals of {then}"
    if "cascade" in alone and _reaches(alone["first"], alone["then"]):
        yield f"{first} alone is within the interval of {then} on the held-out labels: label more to distinguish them"


def _reaches(mine: Figure, other: Figure) -> bool:
    """Say whether a judge has a verdict wherever the other has one, and is as often right as in its interval."""
    return mine.n == other.n and mine.value is not None and other.low is not None and mine.value >= other.low
