"""The one chance to repair an answer that missed its schema: what the model is told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage


def asked_again(answer: str, problem: str) -> Sequence[AnyMessage]:
    """Return an answer and the request for a better one, which says what is wrong with it."""
    return [AIMessage(content=answer), HumanMessage(content=_prompt().replace("{{ problem }}", problem))]


@cache
def _prompt() -> str:
    return files("vivavoce.models").joinpath("repair.txt").read_text(encoding="utf-8").strip()
