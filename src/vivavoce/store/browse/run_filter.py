"""Which runs a list has, as conditions for the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypedDict

from sqlalchemy import ColumnElement, exists, func, literal, or_, select

from vivavoce.records.run import Status
from vivavoce.store.browse.status import tagged
from vivavoce.store.database.schema import gradings, runs
from vivavoce.store.database.text import Text, json_text

ListedVerdict = Literal["pass", "fail", "inconclusive", "none"]
"""The verdict of a run in a list; `none` is one without a gate, or without a summary yet."""


class RunFilter(TypedDict, total=False):
    """Which runs: all that is set holds. `whole` leaves out partial runs.

    `text` is part of the id, of the title or of the name of the suite; `since` and `until` are times of the start in
    seconds since the epoch, the second one not included.
    """

    suite: str | None
    status: Status | None
    verdict: ListedVerdict | None
    target: str | None
    tag: str | None
    text: str | None
    since: float | None
    until: float | None
    whole: bool


def run_conditions(which: RunFilter, dead: Collection[str], *, postgresql: bool) -> list[ColumnElement[bool]]:
    """Return the conditions for the runs of a list; `dead` are those that are interrupted and recorded as running."""
    r, g, found = runs.c, gradings.c, list[ColumnElement[bool]]()
    place = func.strpos if postgresql else func.instr
    if (suite := which.get("suite")) is not None:
        found.append(r.suite == suite)
    if (status := which.get("status")) is not None:
        found.append(or_(r.status == status, r.id.in_(dead)) if status == "interrupted" else r.status == status)
        if status == "running":
            found.append(r.id.not_in(dead))
    if which.get("whole"):
        found.append(r.partial_of.is_(None))
    if (since := which.get("since")) is not None:
        found.append(r.started_at >= since)
    if (until := which.get("until")) is not None:
        found.append(r.started_at < until)
    if text := which.get("text"):
        part, named = text.lower(), (r.id, r.suite, func.coalesce(r.title, ""))
        found.append(or_(*(func.lower(column).contains(part, autoescape=True) for column in named)))
    if (tag := which.get("tag")) is not None:
        found.append(func.coalesce(place(r.tags, literal(tagged(tag), Text)), 0) > 0)
    if (target := which.get("target")) is not None:  # as the JSON of a summary names it
        named_so = place(g.summary, literal(f'"target":{json_text(target)}', Text)) > 0
        found.append(exists().where(g.run_id == r.id, named_so))
    if (verdict := which.get("verdict")) is not None:
        newest = select(g.verdict).where(g.run_id == r.id)
        newest = newest.order_by(g.finished_at.is_not(None).desc(), g.created_at.desc(), g.id.desc()).limit(1)
        found.append(func.coalesce(newest.scalar_subquery(), "none") == verdict)
    return found
