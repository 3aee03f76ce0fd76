"""A graded run in the files that letta-evals writes, for programs that read those.

`suite.json` is the suite with its samples, `<target>.jsonl` a conversation per line, `summary.json` the numbers. With
several trials there is a folder for each target, with `run_1.jsonl` and so on and a `summary.json` of its own.

Source of the format: letta-evals 0.26, https://github.com/letta-ai/letta-evals (letta_evals/models/results.py).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.exchange.letta_messages import letta_turns
from vivavoce.grading.functions import metadata_of, turn_grade
from vivavoce.records.run import Attempt, Grading, Outcome, Run
from vivavoce.records.score import Score, Usage
from vivavoce.records.trajectory import Trajectory
from vivavoce.report.export import file_names
from vivavoce.report.letta_summary import Model, error_of, usage_data
from vivavoce.report.strict_json import strict_json
from vivavoce.store.store import Store

SUITE, SUMMARY = "suite.json", "summary.json"


def write_letta_layout(store: Store, run: Run, grading: Grading, directory: Path) -> None:
    """Write a graded run into a folder, which is made where it is missing.

    Everything is written beside it first and moved in place at the end, file by file; files of other names stay.

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
            _append(directory / _unnamed(model, key.trial), sample_result(outcome))
        suite.write("\n]}\n")
    _name(directory, models)
    summaries = [model.summary(with_runs=False) for model in models.values()]
    _dump(directory / SUMMARY, {"suite": run.suite, "models": summaries})


def _name(directory: Path, models: dict[str, Model]) -> None:
    """Give the files their names, which depend on all the targets and on whether any has several trials."""
    several = any(model.trials > 1 for model in models.values())
    names = file_names(models, taken=(SUITE, SUMMARY))
    for model in models.values():
        folder = directory / names[model.name]
        for trial in model.runs:
            file = folder / f"run_{trial + 1}.jsonl" if several else Path(f"{folder}.jsonl")
            file.parent.mkdir(exist_ok=True)
            (directory / _unnamed(model, trial)).rename(file)
        if several:
            _dump(folder / SUMMARY, model.summary(with_runs=True))


def _unnamed(model: Model, trial: int) -> str:
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
