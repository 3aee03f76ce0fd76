"""The trends page: a grader over the runs of a suite, or, without a suite, all suites with their last scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.extensions import Page, first_answer
from vivavoce.features.trends.trends import LIMIT, Trend, Trends
from vivavoce.report.html.plots import Axis, Point, Spark, TrendPlot, letters, spark, trend_plot
from vivavoce.server.pages.links import Value, address, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.store.browse.series import Series
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

LIMITS = (15, 30, LIMIT, 120)
"""The choices for the number of runs."""
OTHERS = 12
"""Maximum number of small plots of other graders."""
TOP, BOTTOM = 8, 62
"""The top and bottom of a small plot, in pixels."""


@dataclass(frozen=True, slots=True)
class Small:
    """A small plot of another grader; `newest` is its last run with a score."""

    trend: Trend
    link: str
    plot: TrendPlot
    newest: Point | None


@dataclass(frozen=True, slots=True)
class Row:
    """A suite in the list; `newest` is its last run with a score, and the sparkline has runs graded like it."""

    suite: str
    total: int
    link: str
    grader: str | None
    started_at: float
    newest: Point | None
    spark: Spark | None


def trends_page(**query: Value) -> str:
    """Return the address of the trend of a suite, or without a suite that of the list of suites."""
    return address("trends", **query)


def trends_data(**query: Value) -> str:
    """Return the address of a trend as JSON."""
    return address("api", "v1", "trends", **query)


def links_of_suite(suite: str) -> list[Page]:
    """Return the link to the trend of a suite."""
    return [Page("Trend of this suite", trends_page(suite=suite))]


@router.get("/trends")
def trends(
    request: Request,
    suite: str | None = None,
    grader: str | None = None,
    target: str | None = None,
    first: Annotated[str | None, Query(alias="from")] = None,
    last: Annotated[str | None, Query(alias="to")] = None,
    limit: Annotated[int, Query(ge=1, le=max(LIMITS))] = LIMIT,
    after: str | None = None,
) -> Response:
    """Show the trend of a suite, or the list of suites."""
    store = store_of(request)
    if not suite:
        return page("trend_suites.html", _suites(store, after))
    series = Trends(suite, store.series.of(suite, first=first, last=last, limit=limit))
    trend = series.trend(grader or None, target or None)
    query = {"suite": suite, "grader": grader or None, "target": target or None}
    parameters = {**query, "limit": None if limit == LIMIT else limit}
    values: dict[str, object] = {
        "section": "trends",
        "trend": trend,
        "plot": trend_plot(trend.points),
        "letters": letters(trend.points),
        "changed": [point for point in trend.points if point.changes],
        "newest_first": trend.points[::-1],
        "link_of": run_page,
        "compare": partial(first_answer, "comparison_link", target=trend.target),
        "since": {point.run: trends_page(**parameters, **{"from": point.run}) for point in trend.points},
        "several": len(trend.targets) > 1,
        "others": _others(series, trend, parameters),
        "limit": limit,
        "limits": sorted({*LIMITS, limit}),
        "window": {"from": first, "to": last} if first or last else None,
        "earlier_page": trends_page(**parameters, to=trend.earlier) if trend.earlier else None,
        "later_page": trends_page(**parameters, **{"from": trend.later}) if trend.later else None,
        "newest_page": trends_page(**parameters) if trend.later else None,
        "whole_page": trends_page(**parameters) if first or last else None,
        "json_link": trends_data(**parameters, **{"from": first, "to": last}),
    }
    return page("trends.html", values)


def _others(trends: Trends, trend: Trend, parameters: dict[str, str | int | None]) -> list[Small]:
    """Return small plots of the other graders, all on one axis."""
    names = [name for name in trends.graders if name != trend.grader][:OTHERS]
    others = [trends.trend(name, trend.target) for name in names]
    axis = Axis.around((point for other in others for point in other.points), TOP, BOTTOM)
    return [
        Small(
            other,
            trends_page(**{**parameters, "grader": other.grader}),
            trend_plot(other.points, axis),
            next((point for point in reversed(other.points) if point.mean is not None), None),
        )
        for other in others
    ]


def _suites(store: Store, after: str | None) -> dict[str, object]:
    recent, following = store.series.recent(after)
    return {
        "section": "trends",
        "rows": [_row(entry.suite, entry.total, Series(entry.runs, None, None)) for entry in recent],
        "next_page": trends_page(after=following) if following else None,
        "first_page": trends_page() if after else None,
    }


def _row(suite: str, total: int, series: Series) -> Row:
    trend = Trends(suite, series).trend()
    scored = [point for point in trend.points if point.mean is not None]
    begins = max((at for at, point in enumerate(scored) if point.breaks), default=0)
    means = [point.mean for point in scored[begins:] if point.mean is not None]
    newest = scored[-1] if scored else None
    started_at = series.runs[-1].run.started_at
    return Row(suite, total, trends_page(suite=suite), trend.label or trend.grader, started_at, newest, spark(means))
