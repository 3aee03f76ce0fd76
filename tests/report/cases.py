"""Records for these tests, written through the real store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vivavoce.grading.gates import Gate, SimpleGate, Threshold
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, Usage
from vivavoce.records.score import mean_of_turns as per_turn
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.store import Store

TIMEOUT = Failure(blame="target", kind="timeout", message="no answer within 5 s", evidence="<html>")
BROKEN_JUDGE = Failure(blame="judge", kind="format", message="no verdict", exception="ValueError")
EASY_GATE = SimpleGate("exact", Threshold("avg_score", "gte", 0.5))
EASY_SPEC = {"gate": {"kind": "simple", "metric_key": "exact", "op": "gte", "value": 0.5}}
FINGERPRINTS = {"exact": "f1", "judge": "f2", "correctness": "f3"}


def grade(score: float, rationale: str | None = None, **more: Any) -> Score:
    return Score(value=score, reason=rationale, **more)


def capitals() -> Score:
    """Return a per-turn grade as a grader makes it: two of three turns pass."""
    texts, truths = ["Paris", "It is Berlin.", "Madrid"], ["Paris", "Berlin", "Rome"]
    turns = [
        Score(turn=i, value=float(i < 2), reason=f"turn {i}", submission=texts[i], ground_truth=truths[i])
        for i in range(3)
    ]
    return per_turn(turns)


def outcome(
    sample: str = "one",
    grades: Mapping[str, Score | float] | None = None,
    *,
    target: str = "bot",
    trial: int = 0,
    scenario: str | None = None,
    texts: Sequence[str] = ("Hello!",),
    failure: Failure | None = None,
    reward: Score | None = None,
) -> Outcome:
    """Return an outcome; its scenario is made from the sample's id unless one is given."""
    turns = [_turn(i, text) for i, text in enumerate(texts)]
    attempt = Attempt(
        key=AttemptKey(sample, target, trial),
        scenario=scenario or f"scenario of {sample}",
        sample=f'{{"id":"{sample}","input":"Hi"}}',
        trajectory=Trajectory(turns=turns, session_id="session", failure=failure, seconds=1.5),
        started_at=1000.0,
    )
    given_grades = {"exact": 1.0} if grades is None else grades
    return Outcome(
        attempt=attempt,
        scores={
            name: value if isinstance(value, Score) else grade(value, "why") for name, value in given_grades.items()
        },
        reward=reward,
    )


def _turn(index: int, text: str) -> Turn:
    messages: list[AnyMessage] = [HumanMessage(content="Hi"), AIMessage(content=text)]
    return Turn(index=index, messages=messages, seconds=0.5, usage=Usage(input_tokens=3, output_tokens=2, calls=1))


async def keep(
    store: Store,
    outcomes: Iterable[Outcome],
    name: str = "run-1",
    *,
    spec: Mapping[str, Any] = EASY_SPEC,
    gate: Gate | None = EASY_GATE,
    fingerprints: Mapping[str, str] = FINGERPRINTS,
    ended: bool = True,
    **about: Any,
) -> GradedRun:
    """Store a run with its outcomes; one that has not ended lacks its summary, and `about` are other fields of it."""
    fields = {"suite": "support", "spec": dict(spec), "base": "/suites", "started_at": 1000.0, "version": "0.1.0"}
    run = Run.model_validate({"id": name, **fields, **about})
    grading = Grading(id=f"{name}-g1", run_id=name, spec=dict(spec), fingerprints=dict(fingerprints), created_at=1000.0)
    store.add_run(run)
    store.add_grading(grading)
    attempts = failed = 0
    async with store.writer(run.id, grading.id, grading.fingerprints) as writer:
        for outcome in outcomes:
            await writer.put(outcome)
            attempts, failed = attempts + 1, failed + (outcome.attempt.failure is not None)
    if not ended:
        return GradedRun(store, run, grading)
    summary = summarise(tally(store.scores(grading.id)), attempts=attempts, failed=failed, rules=Rules(gate=gate))
    run = run.model_copy(update={"status": "finished", "finished_at": 1010.0})
    updates = {"verdict": summary.verdict, "summary": summary.model_dump(mode="json"), "finished_at": 1010.0}
    grading = grading.model_copy(update=updates)
    store.update_run(run)
    store.update_grading(grading)
    return GradedRun(store, store.run(run.id), store.grading(run.id))
