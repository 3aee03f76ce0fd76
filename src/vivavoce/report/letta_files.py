"""A graded run in the files that letta-evals writes, for programs that read those."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from vivavoce.errors import UsageError
from vivavoce.grading.functions import metadata_of, turn_grade
from vivavoce.records.run import Attempt, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, Usage
from vivavoce.records.trajectory import Trajectory
from vivavoce.report.export import file_names
from vivavoce.report.text import strict_json
from vivavoce.stats.intervals import percentile
from vivavoce.store.store import Store
from vivavoce.targets.letta_rows import letta_turns

Category = Literal["target", "extraction", "grading", "reward", "unknown"]


def error_of(outcome: Outcome) -> dict[str, str] | None:
    """Return the first error of an attempt, None if there is none."""
    first_failure = _first_failure(outcome)
    if first_failure is None:
        return None
    category, failure, message = first_failure
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

        `reward` and `per_metric` are means over everything that was scored; next to them `per_metric_states` counts
        what was scored, what was an error and what was skipped. The deviations are those of the means of the trials.
        """
        runs = [self.runs[trial] for trial in sorted(self.runs)]
        whole = _merge(runs)
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


def _merge(runs: list[_Scores]) -> _Scores:
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
        "per_metric_std": {name: stdev(scores) for name, scores in means.items() if len(scores) > 1},
    }


SUITE, SUMMARY = "suite.json", "summary.json"


def write_letta_layout(store: Store, run: Run, grading: Grading, directory: Path) -> None:
    """Write a graded run into a folder, which is made where it is missing.

    Everything is written next to it first and moved in place at the end, file by file; files of other names stay.

    Raises:
        UsageError: the files cannot be written.
    """
    place = directory.resolve()
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        beside.mkdir(parents=True)
        try:
            _write(store, run, grading, beside)
            _move(beside, place)
        finally:
            shutil.rmtree(beside)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written: {error.strerror or error}") from error


def sample_result(outcome: Outcome) -> dict[str, Any]:
    """Return a conversation with its grades as one line of letta-evals; what is not there is left out.

    In `grades` a score is a number there: results without one are under `unscored`, which letta-evals skips.
    """
    attempt, reward = outcome.attempt, outcome.reward
    seconds = attempt.trajectory.seconds or 0.0
    scores = outcome.scores if reward is None else {**outcome.scores, "reward": reward}
    data: dict[str, Any] = {
        "sample_id": attempt.key.sample_id,
        "agent_id": attempt.trajectory.session_id,
        "model_handle": attempt.key.target,
        "trajectory": _trajectory(attempt.trajectory),
        "submissions": {name: _submission(score) for name, score in outcome.scores.items()},
        "grades": {name: _grade(score) for name, score in outcome.scores.items() if score.value is not None},
        "unscored": {name: _grade(score) for name, score in scores.items() if score.value is None} or None,
        "reward": None if reward is None or reward.value is None else {"score": reward.value, "metadata": reward.extra},
        "usage": _usage(attempt),
        "timing": {"total": seconds, "target": seconds},
        "error": error_of(outcome),
    }
    return {name: value for name, value in data.items() if value is not None}


def _write(store: Store, run: Run, grading: Grading, directory: Path) -> None:
    models: dict[str, Model] = {}
    seen: set[str] = set()
    with (directory / SUITE).open("w", encoding="utf-8") as suite:
        suite.write(f'{{"suite":{strict_json(run.suite)},\n"config":{strict_json(grading.spec)},\n"samples":[')
        for outcome in store.outcomes(grading.id):
            key = outcome.attempt.key
            if key.sample_id not in seen:
                suite.write((",\n" if seen else "\n") + strict_json(json.loads(outcome.attempt.sample)))
                seen.add(key.sample_id)
            model = models.setdefault(key.target, Model(key.target, len(models)))
            model.add(outcome)
            _append(directory / _unnamed_prefix(model, key.trial), sample_result(outcome))
        suite.write("\n]}\n")
    _name(directory, models)
    summaries = [model.summary(with_runs=False) for model in models.values()]
    _dump(directory / SUMMARY, {"suite": run.suite, "models": summaries})


def _name(directory: Path, models: dict[str, Model]) -> None:
    """Give the files their names, which depend on all the targets and on whether any has several trials."""
    several = any(model.trials > 1 for model in models.values())
    names = file_names(models, used_names=(SUITE, SUMMARY))
    for model in models.values():
        folder = directory / names[model.name]
        for trial in model.runs:
            file = folder / f"run_{trial + 1}.jsonl" if several else Path(f"{folder}.jsonl")
            file.parent.mkdir(exist_ok=True)
            (directory / _unnamed_prefix(model, trial)).rename(file)
        if several:
            _dump(folder / SUMMARY, model.summary(with_runs=True))


def _unnamed_prefix(model: Model, trial: int) -> str:
    return f"{model.number}~{trial}~"


def _append(file: Path, row: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as lines:  # not held open: there may be more trials than files may be open
        lines.write(strict_json(row) + "\n")


def _dump(file: Path, data: dict[str, Any]) -> None:
    file.write_text(json.dumps(json.loads(strict_json(data)), indent=2, ensure_ascii=True) + "\n", encoding="utf-8")


def _move(source: Path, place: Path) -> None:
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        goal = place / file.relative_to(source)
        goal.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, goal)


def _trajectory(talk: Trajectory) -> list[list[dict[str, Any]]]:
    """Return the messages of each turn; what stands before the first user message belongs to the first."""
    turns = [[message.to_dict() for message in turn.messages] for turn in talk.turns]
    opening = [message.to_dict() for message in talk.opening]
    return letta_turns([opening + turns[0], *turns[1:]] if turns else [opening] if opening else [])


def _submission(score: Score) -> str:
    if score.turns is None:
        return score.submission
    return " | ".join(f"[Turn {turn.turn}] {turn.submission}" for turn in score.turns)


def _grade(score: Score) -> dict[str, Any]:
    metadata = metadata_of(score)
    if score.failure is not None:
        metadata["error"] = str(score.failure)
    data: dict[str, Any] = {
        "score": score.value,
        "rationale": score.reason,
        "state": score.state,
        "passed": score.passed,
        "metadata": metadata,
    }
    if score.turns is not None:
        data["per_turn_grades"] = [turn_grade(turn) for turn in score.turns if turn.value is not None]
    return data


def _usage(attempt: Attempt) -> dict[str, Any] | None:
    known: list[Usage] = [turn.usage for turn in attempt.trajectory.turns if turn.usage is not None]
    return usage_data(sum(known, Usage())) if known else None
