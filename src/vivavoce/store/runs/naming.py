"""Names of runs: how ids are made, and what a name in a command stands for."""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Iterable, Iterator

from sqlalchemy import Column, ColumnElement, Connection, Table, func, or_, select

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import to_number
from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import Name, attempts

_START_MS = 1_577_836_800_000
_COUNTER_BITS = 6
_MAKER_BITS = 16


def attempt_ids() -> Iterator[int]:
    """Yield ids, each greater than the one before, even when the clock is set back."""
    maker = secrets.randbits(_MAKER_BITS) << _COUNTER_BITS
    tick = 0
    while True:
        now = time.time_ns() // 1_000_000 - _START_MS
        tick = max(now << _COUNTER_BITS, tick + 1)  # a full counter runs on into the next millisecond
        milliseconds, counter = divmod(tick, 1 << _COUNTER_BITS)
        yield milliseconds << (_MAKER_BITS + _COUNTER_BITS) | maker | counter


def first_id_at(seconds: float) -> int:
    """Return a number that every id made from a time on reaches, and none made before it; in seconds since 1970."""
    return max(0, math.ceil(seconds * 1000) - _START_MS) << (_MAKER_BITS + _COUNTER_BITS)


OFFERED = 20
"""Maximum number of names that an error considers or lists."""


LATEST = "latest"
"""The name of the newest."""

_LATEST = re.compile(rf"{LATEST}(?:~(\d{{1,9}}))?")


def is_latest(name: str) -> bool:
    """Return whether a name counts from the newest, as `latest` and `latest~1` do."""
    return _LATEST.fullmatch(name) is not None


def find(connection: Connection, table: Table, time: Column[float], name: str, *among: ColumnElement[bool]) -> AnyRow:
    """Return the row whose id is `name`, or is the only one that begins with it or ends with it after a hyphen.

    `latest` is the newest, `latest~1` the previous one.

    Raises:
        NotFound: no row has that name.
        UsageError: several have.
    """
    word = table.name.removesuffix("s")
    newest = select(table).where(*among).order_by(time.desc(), table.c.id.desc())
    if latest := _LATEST.fullmatch(name):
        row = connection.execute(newest.offset(int(latest[1] or 0)).limit(1)).first()
        if row is not None:
            return row
        there = connection.execute(select(func.count()).select_from(table).where(*among)).scalar_one()
        raise NotFound(word, name, hint=f": there {_are(there, word)}")
    begins = func.substr(table.c.id, 1, len(name), type_=Name) == name
    ends = func.substr(table.c.id, func.length(table.c.id) - len(name), len(name) + 1, type_=Name) == f"-{name}"
    fitting = connection.execute(newest.where(or_(begins, ends)).limit(OFFERED)).all()
    exact = [row for row in fitting if row.id == name]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    ids = [row.id for row in fitting or connection.execute(newest.limit(OFFERED)).all()]
    if fitting:
        raise UsageError(f"'{name}' matches several {table.name}: {', '.join(ids)}")
    raise NotFound(word, name, known=[*ids, "latest"], hint="" if ids else f": there {_are(0, word)}")


def no_conversation(
    run_id: str, sample_id: str, target: str | None, trial: int | None, there: Iterable[AttemptKey]
) -> NotFound:
    """Return the error for an unknown conversation; `there` are the conversations of its sample.

    A target or a trial that is None was not named.
    """
    keys = list(there)
    if not keys:
        return NotFound("sample", sample_id, within=f"run {run_id}")
    within = f"sample '{sample_id}' of run {run_id}"
    targets = dict.fromkeys(key.target for key in keys)
    if target is not None and target not in targets:
        return NotFound("target", target, within=within, known=targets)
    trials = sorted({key.trial for key in keys if target in (None, key.target)})
    numbers = ", ".join(str(to_number(one)) for one in trials)
    number = "" if trial is None else str(to_number(trial))
    return NotFound("trial", number, within=within, hint=f"; its trials are {numbers}")


def _are(number: int, word: str) -> str:
    return {0: f"are no {word}s yet", 1: f"is only one {word}"}.get(number, f"are {number} {word}s")


def keys_of(connection: Connection, run_id: str, sample_id: str) -> list[AttemptKey]:
    """Return the keys of the conversations that a run has of a sample."""
    a = attempts.c
    mine = select(a.target, a.trial).where(a.run_id == run_id, a.sample_id == sample_id)
    return [AttemptKey(sample_id, row.target, row.trial) for row in connection.execute(mine.order_by(a.id))]


def split_conversation(name: str) -> tuple[str, str]:
    """Return the run and the sample of a conversation that is named as RUN/SAMPLE.

    Raises:
        UsageError: it is not named so.
    """
    run, _, sample = name.partition("/")
    if not sample:
        raise UsageError(f"'{name}' is not a stored conversation; write RUN/SAMPLE, or RUN/SAMPLE#2 for trial 2")
    return run, sample
