"""Runs for these tests, written through the real store, and what a page is made of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from kept import kept_step, kept_test, kept_turn
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Evidence, Failure, Finding, Score, Usage, failed
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.run.summary import summarise
from vivavoce.run.tallies import tally
from vivavoce.store.store import Store

BROKEN = Failure(blame="target", kind="timeout", message="no answer within 5 s", evidence="<html>")


def keep(
    store: Store,
    outcomes: Sequence[Outcome],
    name: str = "run-1",
    *,
    at: float = 1000.0,
    fingerprints: dict[str, str] | None = None,
    **more: Any,
) -> None:
    """Store a finished run without a gate, unless `more` says otherwise."""
    run = Run(id=name, suite="support", spec={}, base="/s", started_at=at, version="1").model_copy(update=more)
    prints = fingerprints or {}
    grading = Grading(id=f"{name}-g1", run_id=name, spec=run.spec, fingerprints=prints, created_at=at)
    store.add_run(run)
    store.add_grading(grading)
    asyncio.run(_write(store, grading, outcomes))
    broken = sum(outcome.attempt.failure is not None for outcome in outcomes)
    summary = summarise(tally(store.scores(grading.id)), attempts=len(outcomes), failed=broken)
    found = {"summary": summary.model_dump(mode="json"), "finished_at": at + 10}
    store.update_grading(grading.model_copy(update=found))
    store.update_run(run.model_copy(update={"status": "finished", "finished_at": at + 10}))


async def _write(store: Store, grading: Grading, outcomes: Sequence[Outcome]) -> None:
    async with store.writer(grading.run_id, grading.id, {}) as writer:
        for outcome in outcomes:
            await writer.put(outcome)


def outcome(
    sample: str = "one",
    turns: Sequence[Turn] = (),
    grades: dict[str, Score] | None = None,
    *,
    position: int = 0,
    trial: int = 0,
    target: str = "bot",
    reward: Score | None = None,
    **talk: Any,
) -> Outcome:
    """Return an outcome; `talk` is the rest of its trajectory."""
    attempt = Attempt(
        key=AttemptKey(sample, target, trial),
        scenario=sample,
        sample=json.dumps({"id": sample, "input": f"ask {sample}"}),
        trajectory=Trajectory(turns=list(turns), seconds=1.5).model_copy(update=talk),
        started_at=1000.0,
        position=position,
    )
    return Outcome(attempt=attempt, scores=grades or {"goal": Score(value=1.0)}, reward=reward)


def turn(index: int, asked: str, *answers: AnyMessage | str, **more: Any) -> Turn:
    """Return a turn."""
    said = [AIMessage(content=answer) if isinstance(answer, str) else answer for answer in answers]
    return Turn(index=index, messages=[HumanMessage(content=asked), *said], **more)


def called(name: str, arguments: str, result: str) -> list[AnyMessage]:
    """Return a tool call and its result."""
    call = ToolCall(id="c", name=name, args={})
    call = call.model_copy(update={"function": call.function.model_copy(update={"arguments": arguments})})
    return [AIMessage(tool_calls=[call]), ToolMessage(content=result, tool_call_id="c")]


def per_turn(*scores: float, why: str = "as told") -> Score:
    """Return a grade of each turn."""
    turns = [Score(turn=i, value=score, reason=f"{why} {i}") for i, score in enumerate(scores)]
    return Score(value=sum(scores) / len(scores), turns=tuple(turns))


def everywhere(text: str) -> Outcome:
    """Return an outcome that has a text in every field that holds one."""
    found = Evidence(text=text, turn=0, verified=True)
    lost = Evidence(text=f"{text} never said")
    seen = (
        Finding(kind="criterion", what=text, verdict="not met", state="fail", evidence=(found, lost)),
        Finding(kind="check", what=text, verdict=text, state="partial", evidence=(found,), data={text: text}),
        Finding(kind=text, what=text, verdict="", state="fail"),
    )
    failure = Failure(blame="judge", kind=text, message=text, exception=text, evidence=text)
    more: dict[str, Any] = {"reason": text, "submission": text, "raw": text, "findings": seen, "extra": {text: text}}
    score = Score(turn=0, value=0.5, ground_truth=text, **more)
    step = kept_step(text, text, refused=True)
    test = kept_test(
        target_passed=False,
        stop_reason=text,
        stopped_by=text,
        blame="target",
        blame_reason=text,
        context={text: text},
        history=[kept_turn(reasoning=text, steps=[step], evaluation=text)],
        unfinished=[step],
        findings=[text],
        criteria=[{"text": text, "must": True, "met": False}],
        metadata={text: text},
    )
    grounded = AIMessage(content=text, retrieval_context=[text, {text: text}])
    one = turn(0, text, *called(text, text, text), grounded, usage=Usage(input_tokens=3, calls=1), failure=failure)
    grades = {
        text: Score(value=0.25, turns=(score,), settings={text: text}, **more),
        f"{text}!": failed(failure.model_copy(update={"message": f"{text}?"})),
        "whole": Score(value=0.0, reason=text, other_evidence=(found, lost)),
    }
    reward = Score(value=0.5, reason=text, extra={text: text})
    held = outcome(text, [one], grades, target=text, reward=reward, opening=[SystemMessage(content=text)], test=test)
    changed = held.attempt.trajectory.model_copy(update={"state": {text: text}})
    sample = json.dumps(
        {"id": text, "goal": text, "tags": [text], "state": {"was": text}, "expect": {"state": {text: 1}}}
    )
    return held.model_copy(
        update={"attempt": held.attempt.model_copy(update={"sample": sample, "trajectory": changed})}
    )


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is written on the page, in one line."""
        return " ".join(" ".join(self.texts).split())

    def having(self, name: str) -> list[str]:
        """Return the values of an attribute, in order."""
        return [found[name] for _, found in self.tags if name in found]
