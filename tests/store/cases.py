"""Records for these tests; as a script, a process that writes until it is done or killed."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from vivavoce.messages import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Evidence, Failure, Finding, Score, Usage, failed, skipped
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.store import Store

RUN, GRADING = "20261120-2145-abcd", "20261120-2145-abcd.1"
FINGERPRINTS = {"exact": "f1", "judge": "f2"}
BROKEN = Failure(blame="target", kind="timeout", message="no answer within 5 s", evidence="<html>")


def run(run_id: str = RUN, started_at: float = 1000.5) -> Run:
    return Run(
        id=run_id,
        suite="support",
        spec={"seed": 7},
        base="/suites",
        status="interrupted",
        started_at=started_at,
        version="0.1.0",
    )


def grading(grading_id: str = GRADING, run_id: str = RUN, created_at: float = 1000.5) -> Grading:
    return Grading(id=grading_id, run_id=run_id, spec={}, fingerprints=FINGERPRINTS, created_at=created_at)


def outcome(number: int, position: int = 0) -> Outcome:
    """Return an outcome that its number decides: a tool call, usage, and both kinds of scores in it."""
    call = ToolCall(id="c1", name="seats", args={"flight": number})
    turns = [
        Turn(index=0, messages=[HumanMessage(content=f"Flight {number}?"), AIMessage(tool_calls=[call])], seconds=0.5),
        Turn(
            index=1,
            messages=[HumanMessage(content="Grüße 🎓"), ToolMessage(content="2", tool_call_id="c1")],
            started_at=2000.25,
            usage=Usage(input_tokens=number, calls=1, cost=0.25),
        ),
    ]
    talk = Trajectory(opening=[SystemMessage(content="Be kind.")], turns=turns, session_id="s", seconds=1.5)
    held = attempt(number, talk, position=position)
    return Outcome(attempt=held, scores=scores(number), reward=Score(name="reward", value=0.5, extra={"w": 1}))


def attempt(number: int, talk: Trajectory, target: str = "bot", position: int = 0) -> Attempt:
    return Attempt(
        key=AttemptKey(f"sample-{number}", target, 0),
        scenario="hash",
        sample='{"id": "x"}',
        trajectory=talk,
        started_at=1001.5,
        position=position,
    )


def scores(number: int) -> dict[str, Score]:
    turn = score("exact", turn=0, value=1, reason="as asked", submission="2", ground_truth=[number, {"a": None}])
    said = Evidence(text="Flight", turn=0, verified=True)
    seen = Finding(kind="criterion", what="names the day", verdict="not met", state="fail", turn=0, evidence=(said,))
    judged = score("judge", value=0.25, raw=2, reason="too short", submission="2", findings=(seen,), confidence=0.5)
    return {
        "exact": score("exact", value=1, extra={"odd": 1}, turns=(turn,)),
        "judge": judged.model_copy(update={"usage": Usage(calls=1)}),
    }


def score(name: str, **known: Any) -> Score:
    """Return a score of a grader as it is read from a store: with its name and its fingerprint."""
    return Score(name=name, fingerprint=FINGERPRINTS[name], **known)


def unfortunate(number: int) -> Outcome:
    """Return an outcome in which everything went wrong."""
    turn = Turn(index=0, messages=[HumanMessage(content="Hello?")], failure=BROKEN)
    talk = Trajectory(turns=[turn], failure=BROKEN, state={})
    results = {
        "exact": failed(BROKEN, name="exact", fingerprint="f1", turns=()),
        "judge": skipped("no judge", name="judge", fingerprint="f2"),
    }
    return Outcome(attempt=attempt(number, talk), scores=results, reward=failed(BROKEN, name="reward"))


def begun(path: object) -> Store:
    """Return a store that holds a run and its grading."""
    store = Store.open(str(path))
    store.add_run(run())
    store.add_grading(grading())
    return store


async def write(path: str, start: int, count: int) -> None:
    """Write outcomes and say after each hundred how many are committed."""
    with Store.open(path) as store:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number in range(start, start + count):
                await writer.put(outcome(number))
                if (number + 1) % 100 == 0:
                    await writer.drain()
                    print(number + 1, flush=True)


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
