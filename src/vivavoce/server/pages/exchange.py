"""The page of what a judge was asked for a score: the request as it was sent, and the reply as it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from vivavoce.errors import NotFound
from vivavoce.records.replies import JudgeExchange
from vivavoce.records.run import AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Score, to_index, to_number
from vivavoce.report.html.transcript import shown_calls
from vivavoce.report.transcript import asked_text, replied_text
from vivavoce.server.pages.content import plain_text
from vivavoce.server.pages.links import (
    TrialNumber,
    exchange_data,
    exchange_page,
    exchange_text,
    run_page,
    sample_page,
)
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import ProcessPageRoute
from vivavoce.server.state import policy_of, store_of
from vivavoce.store.runs.naming import no_conversation
from vivavoce.suites.judge_requests import prove_judge_exchange

router = APIRouter(route_class=ProcessPageRoute, include_in_schema=False)

SHOWN = 5
"""Calls on one page."""

Number = Annotated[int, Query(ge=1, lt=2**31)]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The score that an address names; turns and trials count from 1 in it."""

    run: str
    sample: str
    grader: str
    target: str | None = None
    trial: TrialNumber = 1
    turn: Number | None = None
    grading: str | None = None


@dataclass(frozen=True, slots=True)
class _ShownExchange:
    """A score, and what was asked for it; with a `turn`, counted from 0, for the score of that turn."""

    run: Run
    grading: Grading
    outcome: Outcome
    grader: str
    turn: int | None
    exchange: JudgeExchange

    @property
    def key(self) -> AttemptKey:
        return self.outcome.attempt.key

    @property
    def score(self) -> Score | None:
        """The score that it is about, None if the turn has none."""
        whole = self.outcome.scores[self.grader]
        return (
            whole if self.turn is None else next((turn for turn in whole.turns or () if turn.turn == self.turn), None)
        )


@router.get("/runs/{run}/exchange")
async def exchange(request: Request, chosen: Annotated[Chosen, Depends()], call: Number = 1) -> Response:
    """Show the calls from number `call` on; without a proof, show why there are none."""
    asked = await _load_exchange(request, chosen)
    where, grading = (asked.run.id, asked.key, chosen.grader, asked.turn), chosen.grading
    calls, first = asked.exchange.calls, to_index(call)

    def other(number: int) -> str | None:
        inside = 0 <= number < len(calls)
        return exchange_page(*where, grading=grading, call=to_number(number)) if inside else None

    def text(number: int, message: int | None) -> str:
        more = None if message is None else to_number(message)
        return exchange_text(*where, grading=grading, call=to_number(number), message=more)

    key, turn = asked.key, asked.turn
    back = sample_page(asked.run.id, key.sample_id, trial=key.trial, turn=turn, target=key.target, grading=grading)
    values: dict[str, object] = {
        "section": "runs",
        "run": asked.run,
        "key": key,
        "grader": chosen.grader,
        "turn": turn,
        "score": asked.score,
        "missing": asked.exchange.missing,
        "calls": shown_calls(calls[first : first + SHOWN], first, text),
        "all_calls": len(calls),
        "first": first,
        "before": other(max(first - SHOWN, 0)) if first else None,
        "after": other(first + SHOWN),
        "back": back if turn is None else f"{back}#t{to_number(turn)}",
        "run_link": run_page(asked.run.id, grading=grading),
        "json_link": exchange_data(*where, grading=grading),
    }
    return page("exchange.html", values)


@router.get("/runs/{run}/exchange/text")
async def text_of(
    request: Request, chosen: Annotated[Chosen, Depends()], call: Number = 1, message: Number | None = None
) -> Response:
    """Return a message of a request as text, or without its number the reply."""
    calls = (await _load_exchange(request, chosen)).exchange.calls
    if call > len(calls):
        raise NotFound("call", str(call), within="this exchange")
    one = calls[to_index(call)]
    if message is None:
        return plain_text(replied_text(one))
    if message > len(one.messages):
        raise NotFound("message", str(message), within="this call")
    return plain_text(asked_text(one.messages[to_index(message)]))


async def _load_exchange(request: Request, chosen: Chosen) -> _ShownExchange:
    store = store_of(request)
    run = store.run(chosen.run)
    grading, trial = store.grading(run.id, chosen.grading), to_index(chosen.trial)
    outcomes = list(store.outcomes(grading.id, sample_id=chosen.sample))
    for outcome in outcomes:
        key = outcome.attempt.key
        if key.trial == trial and chosen.target in (None, key.target):
            made = await prove_judge_exchange(store, run, grading, outcome, chosen.grader)
            made = made.model_copy(update={"missing": policy_of(request).shown(made.missing)})
            turn = None if chosen.turn is None else to_index(chosen.turn)
            return _ShownExchange(
                run, grading, outcome, chosen.grader, turn, made if turn is None else made.about(turn)
            )
    there = (one.attempt.key for one in outcomes)
    raise no_conversation(run.id, chosen.sample, chosen.target, trial, there)
