"""The forecast of a run of a suite: how many calls it would make, counted before anything is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vivavoce.samples.sample import Sample
from vivavoce.suites.load import Suite
from vivavoce.suites.plan import Plan
from vivavoce.suites.tester_spec import TesterSpec


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many calls a run would make: `messages` to targets and `verdicts` of judges, without retries.

    For conversations led by a tester both are upper limits, and the tester is called at least once for each message.
    Where a grader confirms failures (`confirms`), `verdicts` is one.
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
    confirms: bool = False


def forecast(suite: Suite, plan: Plan, verdicts_on: Callable[[Sample, int], int]) -> Forecast:
    """Return how many calls a run would make; `verdicts_on` gives the number of verdicts for a number of turns."""
    samples = turns = verdicts = 0
    tester = (suite.spec.tester or TesterSpec()) if suite.spec.driver == "penelope" else None
    for sample in plan.samples():
        samples += 1
        most = sample.turn_count if tester is None else sample.max_turns or tester.max_turns
        turns += most
        verdicts += verdicts_on(sample, most) + (0 if tester is None else -(-most // tester.evaluate_every))
    targets = 0 if plan.replays else len(getattr(suite.spec.target, "model_handles", None) or [None])
    times = max(targets, 1) * plan.trials
    return Forecast(
        samples=samples,
        targets=targets,
        trials=plan.trials,
        conversations=samples * times,
        turns=turns * times,
        messages=0 if plan.replays else turns * times,
        verdicts=verdicts * times,
        concurrency=plan.concurrency,
        led=tester is not None,
        confirms=any(getattr(grader, "confirm", None) is not None for grader in suite.spec.graders.values()),
    )
