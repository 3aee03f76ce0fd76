"""Which run a conversation belongs to: one for each day or hour, in UTC, with a budget of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from vivavoce.production.handing import Period
from vivavoce.run.experiment_run import new_id
from vivavoce.store.store import Store

Per = Literal["day", "hour"]

_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_NAMES = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dt%H"}


def period_at(now: float, per: Per, name: str, store: Store) -> Period:
    """Return the period that a time is in, with the id of a run that the store does not have yet."""
    moment = datetime.fromtimestamp(now, UTC)
    begins = moment.replace(minute=0, second=0, microsecond=0)
    if per == "day":
        begins = begins.replace(hour=0)
    end = moment.strftime(_NAMES[per])
    wanted, number = new_id(name, end), 1
    while store.series.graded_runs([wanted]):
        number += 1
        wanted = new_id(name, f"{end}-{number}")
    return Period(wanted, (begins + _LENGTHS[per]).timestamp())


def in_words(time: float) -> str:
    """Return a time as people write it, in UTC."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")
