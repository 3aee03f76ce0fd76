"""What a model is told of the schema of its answer, and the one chance to repair an answer that missed it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.models.model import Schema
from vivavoce.models.structured import wire_schema


def asked_again(answer: str, problem: str, untold: Schema | None = None) -> Sequence[AnyMessage]:
    """Return an answer and the request for a better one, which says what is wrong with it.

    `untold` is a schema that stands in no message yet: an endpoint may accept it and never show it to the model.
    """
    words = _prompt("repair.txt").replace("{{ problem }}", problem)
    told = words if untold is None else f"{words}\n\n{schema_instruction(untold)}"
    return [AIMessage(content=answer), HumanMessage(content=told)]


def schema_instruction(schema: Schema) -> str:
    """Return the words that ask for an answer with a schema."""
    return _prompt("schema.txt").replace("{{ schema }}", json.dumps(dict(wire_schema(schema)), ensure_ascii=False))


@cache
def _prompt(name: str) -> str:
    return files("vivavoce.models").joinpath(name).read_text(encoding="utf-8").strip()
