"""The forecast of a run of a suite: how many calls it would make, counted before anything is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vivavoce.samples.rows import SampleCount
from vivavoce.samples.sample import Sample
from vivavoce.suites.grader_spec import AnyGraderSpec, JudgeGraderSpec, MetricGraderSpec, RecordingGraderSpec
from vivavoce.suites.load import Suite
from vivavoce.suites.plan import Plan
from vivavoce.suites.spec import TesterSpec
from vivavoce.suites.targets import at_most


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many calls a run would make: `messages` to targets and `verdicts` of judges, without retries.

    `fewer` are the targets with fewer conversations at a time than the others, and how many.
    For conversations led by a tester both are upper limits, and the tester is called at least once for each message.
    Where a second judge is asked depending on the first, or the recorded side of a conversation is judged where it
    differs (`depends`), `verdicts` is one; where trials may end `early`,
    all but `samples` and `targets` are.
    """

    samples: int
    targets: int
    trials: int
    conversations: int
    turns: int
    messages: int
    verdicts: int
    concurrency: int
    led: bool = False
    fewer: Mapping[str, int] = field(default_factory=dict[str, int])
    depends: bool = False
    early: bool = False


def forecast(
    suite: Suite, plan: Plan, verdicts_on: Callable[[Sample, int], int] | None, counted: SampleCount
) -> Forecast:
    """Return how many calls a run would make.

    `verdicts_on` gives the number of verdicts for a number of turns, None where nobody judges: then what was counted in
    the dataset says all, if every sample of it runs as it is written.
    """
    samples = turns = verdicts = 0
    tester = (suite.spec.tester or TesterSpec()) if suite.spec.driver == "penelope" else None
    known = tester is None and verdicts_on is None and plan.takes_all
    if known:
        samples, turns = counted.samples, counted.turns
    for sample in () if known else plan.samples():
        samples += 1
        scripted = sample.turn_count - sample.history_turns
        most = scripted if tester is None else sample.max_turns or tester.max_turns
        turns += most
        verdicts += 0 if verdicts_on is None else verdicts_on(sample, most)
        verdicts += 0 if tester is None else -(-most // tester.evaluate_every)
    specs = suite.spec.all_targets.values()
    at_once = {name: at_most(spec, plan.concurrency) for spec in specs for name, _ in spec.named}
    times = max(len(at_once), 1) * plan.trials
    graders = suite.spec.graders.values()
    compares = suite.spec.recording is not None or any(isinstance(grader, RecordingGraderSpec) for grader in graders)
    return Forecast(
        samples=samples,
        targets=len(at_once),
        trials=plan.trials,
        conversations=samples * times,
        turns=turns * times,
        messages=0 if plan.replays else turns * times,
        verdicts=verdicts * times,
        concurrency=plan.concurrency,
        led=tester is not None,
        fewer={name: most for name, most in at_once.items() if most < plan.concurrency},
        depends=any(_depends(grader) for grader in suite.spec.graders.values()) or (compares and verdicts > 0),
        early=plan.until is not None,
    )


def _depends(grader: AnyGraderSpec) -> bool:
    judged = isinstance(grader, JudgeGraderSpec | MetricGraderSpec)
    return judged and (grader.confirm is not None or grader.cascade is not None)
