"""The page of a fork: the curve of its continuations, beside the conversation that it goes on from."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request, Response

from vivavoce.records.counting import to_index, turn_label
from vivavoce.records.run import Outcome, Run
from vivavoce.report.fork_finding import Forked, ratio
from vivavoce.report.forked import forked
from vivavoce.report.forked_lines import places_table
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.fork_plot import HELD, fork_plot
from vivavoce.run.forking import held_outcome
from vivavoce.server.pages.content import showing
from vivavoce.server.pages.links import FirstTurn, fork_data, fork_page, run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/runs/{run}/fork")
def fork(request: Request, run: str, first: FirstTurn = 1) -> Response:
    """Show where a conversation broke; its turns are shown from `from`."""
    store = cast("Store", request.app.state.store)
    held = store.run(run)
    found = forked(store, held)
    return page("fork.html", _values(held, found, held_outcome(store, found.fork), to_index(first)))


def _values(run: Run, found: Forked, origin: Outcome, first: int) -> dict[str, object]:
    fork = found.fork
    whole = sample_page(fork.run, fork.sample, trial=fork.trial, target=fork.target)
    links = {turn_label(one.turn): sample_page(run.id, one.sample) for one in found.places if one.scored or one.errors}
    heads, cells = places_table(found)
    shown = conversation(
        origin,
        lambda turn: fork_page(run.id, turn=turn),
        first,
        showing=showing(fork.run, origin.attempt.key),
    )
    return {
        **shown,
        "section": "runs",
        "run": run,
        "found": found,
        "plot": fork_plot(found),
        "heads": heads,
        "rows": list(zip(cells, [*found.places, None], strict=True)),
        "link_of": {**links, HELD: whole}.get,
        "places": {one.turn: one for one in found.places},
        "label_of_turn": turn_label,
        "ratio": ratio,
        "run_link": run_page(run.id),
        "held_link": whole,
        "held_run_link": run_page(fork.run),
        "json_link": fork_data(run.id),
    }
