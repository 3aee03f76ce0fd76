"""Counting: records keep turns and trials from 0, and whoever reads or writes them, a person or a judge, counts from 1.

Here one becomes the other, and nowhere else; `docs/decisions/0019-counting.md` says which counts where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from vivavoce.errors import UsageError
from vivavoce.session_mark import SessionMark

_NUMBERED = re.compile(r"(.+)#(\d{1,9})", re.DOTALL | re.ASCII)


def to_number(index: int) -> int:
    """Return the number that a person reads for a turn or a trial of a record."""
    return index + 1


def to_index(number: int) -> int:
    """Return where a record keeps the turn or the trial that a person, or a judge, gives by its number."""
    return number - 1


def turn_label(turn: int | None) -> str:
    """Return what a turn of a record is called: `turn 1` for 0; None is what precedes the first."""
    return "before turn 1" if turn is None else f"turn {to_number(turn)}"


def turn_title(turn: int | None, mark: SessionMark | None) -> str:
    """Return what a turn is called above its messages, with its session: `turn 4 · session 2 · ana`."""
    return turn_label(turn) if mark is None else f"{turn_label(turn)} · {mark.label}"


def turn_span(turns: Iterable[int]) -> str:
    """Return what ascending turns of a record are called: `turns 1 to 4, 6`."""
    runs: list[list[int]] = []
    for number in map(to_number, turns):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    several = len(runs) > 1 or len(runs[0]) > 1
    return f"turn{'s' if several else ''} {', '.join(' to '.join(map(str, run)) for run in runs)}"


def conversation_name(sample_id: str, trial: int) -> str:
    """Return the name of a conversation of a run, `refund#2` for the trial that a record keeps as 1."""
    return f"{sample_id}#{to_number(trial)}"


def conversation_label(sample_id: str, trial: int) -> str:
    """Return the name of a conversation as lists show it: a first trial is called by its sample alone."""
    return conversation_name(sample_id, trial) if trial else sample_id


def split_name(name: str) -> tuple[str, int | None]:
    """Return the sample and the trial, as a record keeps it, of a name such as `refund#2`; None where it names none.

    Raises:
        UsageError: the name says trial 0.
    """
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return name, None
    if int(found[2]) == 0:
        raise UsageError(f"'{name}': trials count from 1, so the first is '{found[1]}#1'")
    return found[1], to_index(int(found[2]))
