"""The addresses of pages; any name stays a single part of the path.

In addresses of pages turns and trials count from 1, as on the pages; those of the API count as records do, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated
from urllib.parse import quote, quote_plus

from fastapi import Query

from vivavoce.records.run import AttemptKey
from vivavoce.records.score import to_number

Value = str | int | Sequence[str] | None

QUOTED = 1024
"""Names and values whose quoted form is kept: a page has hundreds of links that differ in one of them."""

FirstTurn = Annotated[int, Query(alias="from", ge=1, lt=2**31)]
"""The number of the turn that a part of a conversation begins with, as `from` in an address."""
TrialNumber = Annotated[int, Query(ge=1, lt=2**31)]
"""The number of a trial in an address."""


def run_page(run: str, **query: Value) -> str:
    """Return the address of a run."""
    return f"/runs/{_part(run)}{_query(query)}"


def sample_page(run: str, sample: str, *, trial: int | None = None, turn: int | None = None, **query: Value) -> str:
    """Return the address of a conversation, or of its part that begins with a turn.

    A name that cannot be part of a path, such as `..`, is in the query.
    """
    query = {**number_query(trial, turn), **query}
    if sample.strip(".") == "" or "\n" in sample:
        return f"/runs/{_part(run)}/samples/-{_query({'id': sample, **query})}"
    return f"/runs/{_part(run)}/samples/{_part(sample)}{_query(query)}"


def sample_data(run: str, sample: str, trial: int, **query: Value) -> str:
    """Return the address of a conversation as JSON."""
    return f"/api/v1/runs/{_part(run)}/samples/{_part(sample)}/{trial}{_query(query)}"


def exchange_page(run: str, key: AttemptKey, grader: str, turn: int | None = None, **query: Value) -> str:
    """Return the address of what a judge was asked for a score, or for that of a turn."""
    return f"/runs/{_part(run)}/exchange{_query({**_exchange(key, grader, turn), **query})}"


def exchange_text(run: str, key: AttemptKey, grader: str, turn: int | None = None, **query: Value) -> str:
    """Return the address of one of its texts in full."""
    return f"/runs/{_part(run)}/exchange/text{_query({**_exchange(key, grader, turn), **query})}"


def exchange_data(run: str, key: AttemptKey, grader: str, turn: int | None = None, **query: Value) -> str:
    """Return the address of the same as JSON."""
    asked: dict[str, Value] = {"grader": grader, "turn": turn, "target": key.target, **query}
    return f"/api/v1/runs/{_part(run)}/samples/{_part(key.sample_id)}/{key.trial}/exchange{_query(asked)}"


def message_content(run: str, key: AttemptKey, turn: int | None, **within: Value) -> str:
    """Return the address of what a message holds: a part, the arguments of a call, a retrieved text, or its words.

    `within` names the message and what of it is meant; without a message it is all of the turn.
    """
    named = {"run": run, "sample": key.sample_id, "target": key.target, "trial": to_number(key.trial)}
    at = {} if turn is None else {"turn": to_number(turn)}
    return f"/content{_query({**named, **at, **within})}"


def comments_page(run: str, key: AttemptKey, turn: int | None) -> str:
    """Return the address that takes a new comment on a conversation or a turn."""
    place = {"run": run, "sample": key.sample_id, "target": key.target, "trial": to_number(key.trial)}
    return f"/comments{_query({**place, 'turn': None if turn is None else to_number(turn)})}"


def comment_page(run: str, number: int) -> str:
    """Return the address that takes a change of a comment."""
    return f"/comments/{_part(run)}/{number}"


def address(*parts: str, **query: Value) -> str:
    """Return the address of a page or of data, from the parts of its path and its query."""
    return f"/{'/'.join(map(_part, parts))}{_query(query)}"


def run_data(run: str) -> str:
    """Return the address of a run as JSON."""
    return f"/api/v1/runs/{_part(run)}"


def run_list(**query: Value) -> str:
    """Return the address of the list of runs."""
    return f"/{_query(query)}"


def search_page(**query: Value) -> str:
    """Return the address of what fits a query."""
    return f"/search{_query(query)}"


def search_data(**query: Value) -> str:
    """Return the address of what fits a query as JSON."""
    return f"/api/v1/search{_query(query)}"


def webhook_list() -> str:
    """Return the address of the page of webhooks."""
    return "/webhooks"


def webhook_data() -> str:
    """Return the address of webhooks in the API."""
    return "/api/v1/webhooks"


def job_list(**query: Value) -> str:
    """Return the address of the list of jobs."""
    return f"/jobs{_query(query)}"


def job_page(job: str) -> str:
    """Return the address of a job."""
    return f"/jobs/{_part(job)}"


def job_data(job: str) -> str:
    """Return the address of a job as JSON."""
    return f"/api/v1/jobs/{_part(job)}"


def new_job_page(**query: Value) -> str:
    """Return the address of the page to start a job."""
    return f"/jobs/new{_query(query)}"


def demo_page(older: str, newer: str) -> str:
    """Return the address of the demo, by the jobs of its two releases."""
    return f"/demo/{_part(older)}/{_part(newer)}"


def watch_page(**query: Value) -> str:
    """Return the address of what watches production."""
    return f"/watch{_query(query)}"


def watch_data(**query: Value) -> str:
    """Return the address of what a watch saw as JSON."""
    return f"/api/v1/watch{_query(query)}"


def calibration_page(run: str, **query: Value) -> str:
    """Return the address of what the labels of a run say of a judge."""
    return f"/runs/{_part(run)}/calibration{_query(query)}"


def calibration_data(run: str, **query: Value) -> str:
    """Return the address of what the labels of a run say of a judge, as JSON."""
    return f"/api/v1/runs/{_part(run)}/calibration{_query(query)}"


def number_query(trial: int | None, turn: int | None) -> dict[str, Value]:
    """Return a trial and a turn, counted from 0, as the parameters of an address, where they count from 1."""
    indexes = {"trial": trial, "from": turn}
    return {name: to_number(index) for name, index in indexes.items() if index is not None}


def _exchange(key: AttemptKey, grader: str, turn: int | None) -> dict[str, Value]:
    about = None if turn is None else to_number(turn)
    named = {"sample": key.sample_id, "target": key.target, "trial": to_number(key.trial)}
    return {**named, "grader": grader, "turn": about}


@lru_cache(QUOTED)
def _part(name: str) -> str:
    return quote(name, safe="", errors="replace")


def _query(query: dict[str, Value]) -> str:
    pairs = [
        f"{_quote(name)}={_quote(str(one))}"
        for name, value in query.items()
        if value is not None
        for one in ([value] if isinstance(value, str | int) else value)
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


@lru_cache(QUOTED)
def _quote(text: str) -> str:
    return quote_plus(text, errors="replace")
