"""The one chance to repair an answer that missed its schema: what the model is told, and what both answers used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.records.usage import Usage


def asked_again(answer: str, problem: str) -> Sequence[AnyMessage]:
    """Return an answer and the request for a better one, which says what is wrong with it."""
    return [AIMessage(content=answer), HumanMessage(content=_prompt().replace("{{ problem }}", problem))]


def used_together(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add up two calls of one answer; where one of them did not say what it used, the cost is unknown."""
    if first and second:
        return first + second
    known = first or second
    return known and known.model_copy(update={"cost": None})


@cache
def _prompt() -> str:
    return files("vivavoce.models").joinpath("repair.txt").read_text(encoding="utf-8").strip()
