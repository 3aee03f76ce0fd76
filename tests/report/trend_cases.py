"""Runs of a suite with their summaries, written through the real store; no conversation is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.records.run import Grading, Run, Status
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.store.store import Store

SPEC: dict[str, Any] = {
    "dataset": {"path": "rows.jsonl"},
    "target": {
        "kind": "openai",
        "base_url": "https://bot.example",
        "model_handles": ["small"],
        "system_prompt": "Be kind.",
    },
    "graders": {"goal": {"kind": "metric", "model": "judge-1"}, "tone": {"kind": "metric", "model": "judge-1"}},
    "gate": {"kind": "simple", "metric_key": "goal", "op": "gte", "value": 0.75},
}
PRINTS = {"goal": "g1", "tone": "t1"}


def says(
    name: str, mean: float | None, *, half: float | None = 0.05, target: str = "bot", n: int = 10
) -> GraderSummary:
    """Return what a grader says, with an interval `half` as wide on each side; without a mean all were errors."""
    ends = (None, None) if mean is None or half is None else (max(mean - half, 0.0), min(mean + half, 1.0))
    counts = (n, 0) if mean is not None else (0, n)
    return GraderSummary(
        name=name,
        target=target,
        scored=counts[0],
        errors=counts[1],
        skipped=0,
        samples=n,
        mean=mean,
        low=ends[0],
        high=ends[1],
    )


def keep(
    store: Store,
    number: int,
    *graders: GraderSummary,
    spec: Mapping[str, Any] = SPEC,
    prints: Mapping[str, str] = PRINTS,
    options: Mapping[str, Any] | None = None,
    status: Status = "finished",
    suite: str = "shop",
    **more: Any,
) -> str:
    """Keep the run of a suite that began `number` days after the first, and return its id; no graders: no summary."""
    name = more.pop("id", f"{suite}-{number:03}")
    at = 1_700_000_000.0 + 86_400 * number
    run = Run(
        id=name, suite=suite, spec=dict(spec), base="/s", options=dict(options or {}), status=status, started_at=at
    )
    summary = (
        Summary(attempts=10, failed_attempts=0, graders=list(graders)).model_dump(mode="json") if graders else None
    )
    fields = {key: more.pop(key) for key in ("reasons", "stopped", "attempts") if key in more}
    grading = Grading(
        id=f"{name}-g1",
        run_id=name,
        spec=dict(spec),
        fingerprints=dict(prints),
        created_at=at,
        finished_at=at + 9 if summary else None,
        summary=summary and {**summary, **fields},
    )
    store.add_run(run.model_copy(update=more))
    store.add_grading(grading)
    return name
