"""Assertions of promptfoo as ours. Its `contains` minds the case of letters, ours does not: those become patterns.

Source: the pages on deterministic and on model-graded metrics in promptfoo's documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.exchange.loss import Loss
from vivavoce.expressions import expression

Assertion = dict[str, Any]
Vars = Mapping[str, Any]


def translated(assertion: Mapping[str, Any], variables: Vars, loss: Loss) -> Iterator[Assertion]:
    """Yield what an assertion says, in our words; nothing, and a line in the report, where it cannot be said."""
    kind = str(assertion.get("type"))
    if kind == "assert-set":
        yield from _set(assertion, variables, loss)
        return
    plain = kind.removeprefix("not-")
    make = _KINDS.get(plain)
    if make is None:
        loss.dropped(f"assertion '{kind}'")
        return
    for key in assertion.keys() & {"transform", "provider", "rubricPrompt", "contextTransform"}:
        loss.dropped(f"'{key}' of an assertion")
    if "threshold" in assertion and plain != "latency":
        loss.dropped(f"'threshold' of '{kind}'")
    found = make(_value(assertion, variables), assertion)
    if found is None:
        loss.dropped(f"assertion '{kind}' with this value")
        return
    found = _negated(found) if kind != plain else found
    weight = assertion.get("weight")
    if weight == 0:
        loss.dropped("assertion with the weight 0")
        return
    yield {**found, "weight": weight} if isinstance(weight, int | float) and weight != 1 else found


def _set(assertion: Mapping[str, Any], variables: Vars, loss: Loss) -> Iterator[Assertion]:
    if "threshold" in assertion:
        loss.dropped("'threshold' of 'assert-set'")
    inner = [
        one
        for item in cast("list[Any]", assertion.get("assert") or [])
        if isinstance(item, Mapping)
        for one in translated(cast("Mapping[str, Any]", item), variables, loss)
    ]
    if inner:
        yield {"all": inner}


def _value(assertion: Mapping[str, Any], variables: Vars) -> Any:
    value = assertion.get("value")
    if not isinstance(value, str):
        return value
    for name, known in variables.items():
        value = re.sub(r"\{\{\s*" + re.escape(name) + r"\s*\}\}", lambda _, known=known: str(known), value)
    return value


def _negated(found: Assertion) -> Assertion:
    if set(found) == {"contains"}:
        return {"not_contains": found["contains"]}
    return {"not": found}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [one.strip() for one in value.split(",")]
    return [str(one) for one in cast("list[Any]", value)] if isinstance(value, list) else []


def _exactly(text: Any) -> Assertion:
    return {"regex": re.escape(str(text))}


def _pattern(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    try:
        expression(str(value))
    except UsageError:
        return None
    return {"regex": str(value)}


def _schema(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if value is None or value == {}:
        return {"json_schema": {"type": ["object", "array", "string", "number", "boolean", "null"]}}
    return {"json_schema": value} if isinstance(value, dict) else None


def _latency(_: Any, assertion: Mapping[str, Any]) -> Assertion | None:
    limit = assertion.get("threshold")
    return {"latency": limit / 1000} if isinstance(limit, int | float) and limit > 0 else None


def _judged(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    criteria = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]  # pyright: ignore[reportUnknownVariableType]
    if not criteria or any("{{" in one or one.startswith("file://") for one in criteria):
        return None
    found = [{"judged": one} for one in criteria]
    return found[0] if len(found) == 1 else {"all": found}


def _fact(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    return {"judged": f"The answer does not contradict this: {value}"} if isinstance(value, str) else None


def _any(texts: list[str], make: Callable[[Any], Assertion]) -> Assertion | None:
    return {"any": [make(text) for text in texts]} if texts else None


def _tool(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    named = cast("Mapping[str, Any]", value).get("name") if isinstance(value, Mapping) else value
    return {"calls": named} if isinstance(named, str) else None


def _contains(text: Any) -> Assertion:
    return {"contains": str(text)}


_KINDS: dict[str, Callable[[Any, Mapping[str, Any]], Assertion | None]] = {
    "contains": lambda value, _: _exactly(value),
    "icontains": lambda value, _: _contains(value),
    "contains-any": lambda value, _: _any(_texts(value), _exactly),
    "contains-all": lambda value, _: {"all": [_exactly(text) for text in _texts(value)]} if _texts(value) else None,
    "icontains-any": lambda value, _: _any(_texts(value), _contains),
    "icontains-all": lambda value, _: {"contains": _texts(value)} if _texts(value) else None,
    "equals": lambda value, _: {"equals": value} if isinstance(value, str) else None,
    "starts-with": lambda value, _: {"regex": rf"\A{re.escape(str(value))}"},
    "regex": _pattern,
    "is-json": _schema,
    "latency": _latency,
    "llm-rubric": _judged,
    "model-graded-closedqa": _judged,
    "g-eval": _judged,
    "factuality": _fact,
    "model-graded-factuality": _fact,
    "is-refusal": lambda _, __: {"metric": "refusal"},
    "trajectory:tool-used": _tool,
}
