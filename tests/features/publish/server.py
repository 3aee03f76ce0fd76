"""Runs to publish, and a server that answers by the address that is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from report.cases import EASY_SPEC, capitals, keep, outcome
from vivavoce.records.label import HumanVerdict, Label
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store
from vivavoce.testing.loopback import LoopbackServer

Answer = tuple[int, Any]


@dataclass
class Tool:
    """What a tool answers, by path: a status and a body, or several of these; the last is repeated."""

    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict[str, Sequence[Answer]])
    request_counts: dict[str, int] = field(default_factory=dict[str, int])

    def answer(self, body: dict[str, Any]) -> Any:
        del body
        return self._respond

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        at = self.request_counts[request.path] = self.request_counts.get(request.path, -1) + 1
        known = self.answers.get(request.path, [(200, {})])
        status, body = known[min(at, len(known) - 1)]
        headers = {"Retry-After": "0"} if status == 429 else {}
        if isinstance(body, str):
            return web.Response(text=body, status=status, headers=headers)
        return web.json_response(body, status=status, headers=headers)

    def server(self) -> LoopbackServer:
        return LoopbackServer(self.answer)


def bodies(server: LoopbackServer, path: str) -> list[Any]:
    return [request.body for request in server.requests if request.path == path and request.method == "POST"]


async def new_run(store: Store) -> GradedRun:
    """Return a run of two conversations that a target held: three turns with scores, and one."""
    replies = ("Paris", "It is Berlin.", "Madrid")
    return await keep(store, [outcome("a", {"correctness": capitals()}, texts=replies), outcome("b", {"exact": 0.25})])


def label(graded: GradedRun, sample: str, author: str, verdict: HumanVerdict, **more: Any) -> None:
    """Store what somebody says of a conversation of a run."""
    label = Label.model_validate(
        {"sample_id": sample, "target": "bot", "trial": 0, "author": author, "verdict": verdict, "created_at": 2000.0}
        | more
    )
    graded.store.labels.set(graded.run.id, label)


async def recorded_run(store: Store, rows: Mapping[str, Mapping[str, Any]], grades: Any = None) -> GradedRun:
    """Return a run over recorded conversations of three turns, whose rows have this metadata by their id."""
    replies = ("Paris", "It is Berlin.", "Madrid")
    run_outcomes = [
        outcome(name, grades or {"correctness": capitals()}, texts=replies, target="recorded") for name in rows
    ]
    outcomes = [
        outcome.model_copy(
            update={
                "attempt": outcome.attempt.model_copy(
                    update={
                        "sample": json.dumps(
                            {"id": outcome.attempt.key.sample_id, "metadata": rows[outcome.attempt.key.sample_id]}
                        )
                    }
                )
            }
        )
        for outcome in run_outcomes
    ]
    return await keep(store, outcomes, spec={**EASY_SPEC, "driver": "replay"})


def by(key: Callable[[dict[str, Any]], Any], items: Sequence[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {key(item): item for item in items}
