"""What a watch of production leaves in a store: its state, its hours, and conversations judged at some time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from vivavoce.features.watch.state import Alert, GraderCount, HourFigures, Spending, WatchState
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.pacing.loops import wait_for
from vivavoce.records.run import WATCHED, Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.runs import naming
from vivavoce.store.store import Store
from vivavoce.store.watches import WatchRow

HOUR = 3600


def told(store: Store, name: str, heard_at: float, hours: dict[int, HourFigures] | None = None, **state: Any) -> None:
    """Keep what a watch tells."""
    state_fields = WatchState(began_at=heard_at - 60, **state).model_dump(mode="json")
    figures = {hour: figure.model_dump(mode="json") for hour, figure in (hours or {}).items()}
    store.watches.put(WatchRow(name, heard_at, state_fields), figures)


def figures(passed: int, failed: int, *, arrived: int = 0, errors: int = 0, grader: str = "polite") -> HourFigures:
    """Return what was seen in an hour; of what arrived, only what was judged is sampled."""
    judged = passed + failed + errors
    counts = {"conversations": judged, "not sampled": max(0, arrived - judged)}
    graders = {grader: GraderCount(passed=passed, failed=failed, errors=errors)}
    return HourFigures(counts=counts, judged=judged, broken=errors, graders=graders)


def spending(**more: Any) -> Spending:
    return Spending(run="live-1", ends=1e9, **more)


def alert(state: str, **more: Any) -> Alert:
    known = {"since": 1e9, "at": 1e9, "window": 86_400.0, "least": 30, "conversations": 60}
    return Alert.model_validate({"state": state, **known, **more})


def judge(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    scores: Sequence[tuple[str, float, Score]],
    *,
    name: str = "live",
    run: str = "live-1",
    dataset: str = WATCHED,
) -> str:
    """Keep a run of a watch with conversations that were judged at some times; return the id of its scores."""
    began = min(at for _, at, _ in scores)
    run_record = Run(
        id=run, suite=name, spec={}, base="/s", options={"dataset": dataset}, started_at=began, version="1"
    )
    grading = Grading(id=f"{run}-g1", run_id=run, spec={}, fingerprints={"polite": "p"}, created_at=began)
    store.add_run(run_record, grading)
    wait_for(_write(store, grading, scores, monkeypatch))
    return grading.id


async def _write(
    store: Store, grading: Grading, scores: Sequence[tuple[str, float, Score]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        async with store.writer(grading.run_id, grading.id, grading.fingerprints) as writer:
            for position, (sample, at, score) in enumerate(scores):
                patch.setattr(naming, "time", SimpleNamespace(time_ns=lambda at=at: round(at * 1e9)))
                turn = Turn(index=0, messages=[HumanMessage(content="Hi"), AIMessage(content=f"Yes {sample}")])
                attempt = Attempt(
                    key=AttemptKey(sample, "recorded", 0),
                    scenario=sample,
                    sample=json.dumps({"id": sample}),
                    trajectory=Trajectory(turns=[turn]),
                    started_at=at,
                    position=position,
                )
                await writer.put(Outcome(attempt=attempt, scores={"polite": score}, reward=None))
                await writer.drain()


def good() -> Score:
    return Score(name="polite", fingerprint="p", value=1.0, passed=True, reason="so it is")


def bad(why: str = "it is rude") -> Score:
    return Score(name="polite", fingerprint="p", value=0.0, passed=False, reason=why)
