"""The numbers of one target in the words of letta-evals: `ModelSummary`, and the categories of its errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal

from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure, Usage
from vivavoce.stats.intervals import percentile

Category = Literal["target", "extraction", "grading", "reward", "unknown"]


def error_of(outcome: Outcome) -> dict[str, str] | None:
    """Return the first error of an attempt, None if there is none."""
    found = _first_failure(outcome)
    if found is None:
        return None
    category, failure, message = found
    kind = "Unknown" if failure is None else failure.exception or failure.kind
    return {"category": category, "exception_type": kind, "message": message}


def _first_failure(outcome: Outcome) -> tuple[Category, Failure | None, str] | None:
    if (failure := outcome.attempt.failure) is not None:
        return "target" if failure.blame in ("target", "environment") else "unknown", failure, failure.message
    for name, score in outcome.scores.items():
        if score.state == "error":
            return "grading", score.failure, f"{name}: {score.reason or 'no reason'}"
    reward = outcome.reward
    if reward is not None and reward.state == "error":
        return "reward", reward.failure, reward.reason or "no reason"
    return None


def usage_data(usage: Usage) -> dict[str, int | float]:
    """Return tokens and money by the names of letta-evals; an unknown cost is left out."""
    data: dict[str, int | float] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    return data if usage.cost is None else {**data, "cost": usage.cost}


@dataclass(slots=True)
class _Scores:
    """The results of one trial of all samples: the rewards, and by grader the scores and the states."""

    rewards: list[float] = field(default_factory=list[float])
    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict[str, list[float]](list))
    states: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict[str, Counter[str]](Counter))
    seconds: list[float] = field(default_factory=list[float])
    usage: Usage = field(default_factory=Usage)
    total: int = 0
    failed: int = 0

    def add(self, outcome: Outcome, failed: bool) -> None:
        self.total += 1
        self.failed += failed
        talk = outcome.attempt.trajectory
        self.usage += talk.usage
        if talk.seconds is not None:
            self.seconds.append(talk.seconds)
        if outcome.reward is not None and outcome.reward.value is not None:
            self.rewards.append(outcome.reward.value)
        for name, score in outcome.scores.items():
            self.states[name][score.state] += 1
            if score.value is not None:
                self.scores[name].append(score.value)

    def summary(self) -> dict[str, Any]:
        return {
            "n_total": self.total,
            "n_attempted": self.total - self.failed,
            "reward": fmean(self.rewards) if self.rewards else None,
            "per_metric": {name: fmean(scores) for name, scores in self.scores.items() if scores},
            "usage": usage_data(self.usage),
            "timing": self._timing(),
        }

    def _timing(self) -> dict[str, float]:
        """Return the seconds of the conversations; those that were replayed took none."""
        seconds = self.seconds or [0.0]
        return {
            "mean_total": fmean(seconds),
            "mean_target": fmean(seconds),
            "p50_total": percentile(seconds, 50) or 0.0,
            "p95_total": percentile(seconds, 95) or 0.0,
        }


@dataclass(slots=True)
class Model:
    """One target's numbers, as its conversations come in; it keeps numbers only."""

    name: str
    number: int
    runs: dict[int, _Scores] = field(default_factory=dict[int, _Scores])
    categories: Counter[str] = field(default_factory=Counter[str])
    exceptions: Counter[str] = field(default_factory=Counter[str])

    @property
    def trials(self) -> int:
        """How many trials there are, by the highest number."""
        return max(self.runs, default=-1) + 1

    def add(self, outcome: Outcome) -> None:
        """Count one conversation."""
        error = error_of(outcome)
        self.runs.setdefault(outcome.attempt.key.trial, _Scores()).add(outcome, error is not None)
        if error is not None:
            self.categories[error["category"]] += 1
            self.exceptions[error["exception_type"]] += 1

    def summary(self, *, with_runs: bool) -> dict[str, Any]:
        """Return the model's summary.

        `reward` and `per_metric` are means over everything that was scored; beside them `per_metric_states` counts what
        was scored, what was an error and what was skipped. The deviations are those of the means of the trials.
        """
        runs = [self.runs[trial] for trial in sorted(self.runs)]
        whole = _merged(runs)
        data = {
            "model": self.name,
            **whole.summary(),
            "per_metric_states": {name: dict(states) for name, states in whole.states.items()},
            "errors": {
                "total_errors": self.categories.total(),
                "by_category": dict(self.categories),
                "by_exception_type": dict(self.exceptions),
            },
        }
        if len(runs) > 1:
            data |= _deviations([run.summary() for run in runs])
        if with_runs:
            data["runs"] = [{"run": trial + 1, **self.runs[trial].summary()} for trial in sorted(self.runs)]
        return data


def _merged(runs: list[_Scores]) -> _Scores:
    whole = _Scores()
    for run in runs:
        whole.total += run.total
        whole.failed += run.failed
        whole.rewards += run.rewards
        whole.seconds += run.seconds
        whole.usage += run.usage
        for name, states in run.states.items():
            whole.states[name] += states
            whole.scores[name] += run.scores.get(name, [])
    return whole


def _deviations(runs: list[dict[str, Any]]) -> dict[str, Any]:
    rewards = [run["reward"] for run in runs if run["reward"] is not None]
    names = dict.fromkeys(name for run in runs for name in run["per_metric"])
    means = {name: [run["per_metric"][name] for run in runs if name in run["per_metric"]] for name in names}
    return {
        "reward_std": stdev(rewards) if len(rewards) > 1 else None,
        "per_metric_std": {name: stdev(found) for name, found in means.items() if len(found) > 1},
    }
