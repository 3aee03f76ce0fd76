"""What it takes to see a change of a suite's figure: samples, trials, labels, calls and money, from earlier runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from vivavoce.records.details import dollars
from vivavoce.records.label import Calibration
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import total
from vivavoce.report.text import count
from vivavoce.report.verdict import gate_of, main_grader
from vivavoce.run.summary import Summary
from vivavoce.run.tallies import Tally, tally
from vivavoce.safe_text import safe
from vivavoce.stats.planning import WORST, components, labels_for, samples_for, seen_by, trial_variance, trials_for
from vivavoce.store.store import Store

TRIALS = (1, 2, 3, 5, 10, 20)
"""Numbers of trials for which the samples are said."""


class Need(BaseModel):
    """What a number of trials takes: samples, conversations of one run, its calls of models and their cost in dollars.

    `samples` are enough as far as the earlier run can tell; `fewest` would be enough if trials varied as little as that
    run allows, None where there is none. All but `trials` are None where not even ten million samples show the
    difference; calls and cost are None as well where they are not known.
    """

    model_config = ConfigDict(frozen=True)

    trials: int
    samples: int | None
    conversations: int | None
    fewest: int | None = None
    calls: int | None = None
    cost: float | None = None


class Variances(BaseModel):
    """How one figure of one run varies: `within` samples, from trial to trial, and `between` them.

    `within` is the upper end of the 80% interval of this variance: the limit that exceeds the true variance in nine of
    ten such runs, so that one plan in ten is too small for this reason; `least` is its lower end, and `estimate` the
    variance that was seen. `measured` says whether trials repeat; where they do not, it is that of all scores, which is
    at least as large.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    grader: str
    target: str
    of_passes: bool
    samples: int
    within: float
    least: float
    estimate: float
    between: float | None
    measured: bool


class Planned(BaseModel):
    """What it takes to see a change of `detect` with a `power`, comparing two runs of the same samples.

    `based_on` is the earlier run, None where there is none and the worst case is assumed. `needs` is by the number of
    trials. `samples` and `trials` are those of the suite, which `sees` a change from this size on, None where they are
    too few to show any; `more_trials` of its samples see `detect`, None where no number does. `labels` give the rate of
    the judge without its errors to within `detect`, None where nobody judges; `wrong` is the share of its verdicts with
    which people disagree, None where no calibration says it.
    """

    model_config = ConfigDict(frozen=True)

    suite: str
    detect: float
    power: float
    based_on: Variances | None
    needs: list[Need]
    samples: int
    trials: int
    sees: float | None
    more_trials: int | None
    labels: int | None
    wrong: float | None


def variances(store: Store, run: Run, grading: Grading, grader: str | None = None) -> Variances | None:
    """Return how the figure of a run varies; that of the gate, else of the reward, else of the first grader.

    None where it has no score. It is the pass rate where the gate is about that, else the mean.
    """
    tallies = tally(store.scores(grading.id))
    summary = Summary.model_validate(grading.summary) if grading.summary is not None else None
    head = None if summary is None else main_grader(summary, grading)
    figure = grader or (None if head is None else head.name)
    key = next((each for each in tallies if each[1] == figure and tallies[each].values), None)
    if key is None:
        return None
    target, name = key
    gate = gate_of(grading)
    of_passes = gate.get("metric_key") == name and gate.get("aggregation") == "accuracy"
    return _split(run.id, target, tallies[key], name, of_passes=of_passes)


def _split(run: str, target: str, tally: Tally, name: str, *, of_passes: bool) -> Variances:
    by_sample: dict[str, list[float]] = {}
    values = [float(has_passed) for has_passed in tally.passed] if of_passes else tally.values
    for sample, value in zip(tally.samples, values, strict=True):
        by_sample.setdefault(sample, []).append(value)
    within = trial_variance(by_sample)
    assert within is not None
    between = components({sample: [[value] for value in trials] for sample, trials in by_sample.items()}).samples
    return Variances(
        run=run,
        grader=name,
        target=target,
        of_passes=of_passes,
        samples=len(by_sample),
        within=within.high,
        least=within.low,
        estimate=within.value,
        between=between if within.repeat else None,
        measured=within.repeat,
    )


def wrong_share(calibrations: Sequence[Calibration]) -> float | None:
    """Return the share of verdicts with which people disagree, by the calibration with the most drawn labels."""
    best = max(calibrations, key=lambda calibration: len(calibration.drawn_labels), default=None)
    if best is None or not best.drawn_labels:
        return None
    weights = [1 / label.drawn for label in best.drawn_labels if label.drawn]
    wrong = sum(w for w, label in zip(weights, best.drawn_labels, strict=True) if label.good != label.passed)
    # one more of each kind: a judge that was never wrong in a few labels may well be
    return (wrong / sum(weights) * len(weights) + 1) / (len(weights) + 2)


def make_plan(
    suite: str,
    size: tuple[int, int, int],
    based_on: Variances | None,
    before: Summary | None,
    *,
    detect: float,
    power: float,
    judged: bool,
    wrong: float | None,
) -> Planned:
    """Return what it takes; `size` is samples, trials and targets, `before` how the earlier run came out."""
    samples, trials, targets = size
    within = WORST if based_on is None else based_on.within
    least = None if based_on is None else based_on.least

    def need(trials: int) -> Need:
        fewest = None if least is None else samples_for(detect, least, trials, power)
        return _need(trials, samples_for(detect, within, trials, power), fewest, targets, before)

    return Planned(
        suite=suite,
        detect=detect,
        power=power,
        based_on=based_on,
        needs=[need(trials) for trials in TRIALS],
        samples=samples,
        trials=trials,
        sees=seen_by(samples, within, trials, power),
        more_trials=trials_for(detect, within, samples, power),
        labels=labels_for(detect, WORST if wrong is None else min(WORST, wrong)) if judged else None,
        wrong=wrong,
    )


def _need(trials: int, samples: int | None, fewest: int | None, targets: int, before: Summary | None) -> Need:
    if samples is None:
        return Need(trials=trials, samples=None, conversations=None)
    conversations = samples * trials * max(1, targets)
    spent = None if before is None or not before.attempts else total(before.usage.values())
    used = None if before is None or spent is None else spent.times(conversations / before.attempts)
    return Need(
        trials=trials,
        samples=samples,
        conversations=conversations,
        fewest=fewest,
        calls=None if used is None else used.calls,
        cost=None if used is None else used.cost,
    )


def basis(plan: Planned) -> str:
    """Return what a plan rests on, in words."""
    on = plan.based_on
    if on is None:
        return "no earlier run: assuming the largest possible variance between trials"
    figure = f"the {'pass rate' if on.of_passes else 'mean'} of {safe(on.grader)}"
    learned = f"{figure} in run {on.run} ({count(on.samples, 'sample')})"
    variance = f"variance {on.estimate:.3g}, upper limit {on.within:.3g} with 90% confidence"
    if on.within >= WORST > 2 * on.estimate:
        return f"{learned} is too small to estimate the variance between trials ({variance}): assuming the worst case"
    if on.measured:
        return f"as {learned} varies from trial to trial: {variance}"
    return f"{learned} has one trial per sample: assuming that trials vary as much as samples: {variance}"


ASSUMPTION = (
    "this assumes that all flips go one way; if some go back, more samples are needed; graded scores may need fewer"
)
"""What every number of samples rests on: see `spread`."""


def outlook(plan: Planned) -> Iterator[str]:
    """Yield what is assumed, what the suite would see and lacks, and how many labels its judge takes, a line each."""
    yield ASSUMPTION
    size = f"{count(plan.samples, 'sample')} × {count(plan.trials, 'trial')}"
    yield f"the suite has {size}: {_describe_detectable(plan.sees)}"
    if plan.sees is None or plan.sees > plan.detect:
        more = plan.more_trials
        instead = "; more trials cannot replace them" if more is None else f", or {count(more, 'trial')} of each"
        yield f"{plan.detect:g} needs more samples{instead}"
    if plan.labels is None:
        return
    known = (
        "the judge is not calibrated: assuming as many labels as without a judge"
        if plan.wrong is None
        else f"people disagree with {plan.wrong:.0%} of its verdicts"
    )
    labels = count(plan.labels, "label")
    yield f"{labels} by people give the corrected rate within ±{plan.detect:g}: {known}"


def _describe_detectable(sees: float | None) -> str:
    return "too few to show a change" if sees is None or sees >= 1 else f"it detects a change of {sees:.2g} or more"


def cost_of(need: Need) -> str:
    """Return the cost of a run in words; empty where it is not known."""
    return "" if need.cost is None else dollars(need.cost)
