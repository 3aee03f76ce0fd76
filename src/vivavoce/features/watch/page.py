"""The page of what watches production: rates over time, what came in, the budget, and whether the gate holds."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response

from vivavoce.extensions import Page, answers_of
from vivavoce.features.watch.plot import label_of_period, rate_plots
from vivavoce.features.watch.state import Bucket, FailedTalk, alert_line, budget_lines, read_watch, watches
from vivavoce.server.pages.links import run_page, sample_page, watch_data, watch_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/watch")
def watch(request: Request, name: str | None = None, per: Bucket = "hour") -> Response:
    """Show what a watch saw, of the one that was heard of last unless it is named."""
    store = store_of(request)
    known = watches(store)
    if not known:
        return page("watch.html", {"section": "watch", "found": None})
    report = read_watch(store, name or None, per)
    state = report.state
    labels = {period.start: label_of_period(period.start, per) for period in report.periods}
    seen = [period for period in reversed(report.periods) if period.arrived or period.judged]
    anchors = {labels[period.start]: f"#p-{int(period.start)}" for period in seen}

    def anchor(label: str) -> str:
        return anchors.get(label, "#periods")

    def place(talk: FailedTalk) -> str:
        return sample_page(talk.run, talk.sample_id, trial=talk.trial, target=talk.target)

    values: dict[str, object] = {
        "section": "watch",
        "found": report,
        "names": [row.name for row in known],
        "alert": state.alert,
        "alert_line": None if state.alert is None else alert_line(state.alert),
        "budget": [] if state.spending is None else budget_lines(state.spending),
        "run_link": None if state.spending is None else run_page(state.spending.run),
        "plots": rate_plots(report),
        "labels": labels,
        "seen": seen,
        "anchor": anchor,
        "place": place,
        "other": watch_page(name=report.name, per="day" if per == "hour" else "hour"),
        "suite_links": list(answers_of(Page, "suite_links", suite=report.name)),
        "json_link": watch_data(name=report.name, per=per),
        "link_of": partial(run_page),
    }
    return page("watch.html", values)
