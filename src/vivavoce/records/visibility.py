"""How many of a target's tool calls its record shows, as the target declares it or as its kind does by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

CallVisibility = Literal["all", "some", "none"]
"""With `all`, what has no call was not done. With `some` or `none`, a plain statement that it was done counts, too."""

BY_RECORD = "all where its record has any, else none"
"""What holds where neither the target nor its kind says how many calls are shown."""

_BY_KIND: Mapping[str, CallVisibility] = {
    "a2a": "none",
    "letta": "all",
    "letta_code": "all",
    "mcp": "none",
    "terminal": "none",
}
"""Kinds that reply with text alone, and kinds whose server reports each call that it makes.

A function, an object of a framework, a recording, and a reply over HTTP or a WebSocket may have messages with calls or
text alone, so their records decide.
"""

VISIBLE_CALLS = "visible_calls"
"""The attribute of a target, and the key in the metadata of a test, that says it."""


def default_calls(kind: str, *, offers_tools: bool = False) -> CallVisibility | None:
    """Return how many calls the record of a kind of target shows, None where the record decides.

    The calls of an `openai` target are all in its replies, for nobody else answers the tools that it is offered.
    """
    if kind == "openai":
        return "all" if offers_tools else "none"
    return _BY_KIND.get(kind)


def visible_calls(target: object) -> CallVisibility | None:
    """Return what a target declares in `visible_calls`, None where it declares nothing.

    Then the record decides: where it has any call it shows all, and where it has none it shows none.
    """
    return _read(getattr(target, VISIBLE_CALLS, None))


def recorded_calls(metadata: Mapping[str, object]) -> CallVisibility | None:
    """Return the same from the metadata of a test, as the target declared it when the test was held."""
    return _read(metadata.get(VISIBLE_CALLS))


def declare_visible_calls(target: object, calls: CallVisibility | None) -> None:
    """Declare it for a target; None changes nothing."""
    if calls is not None:
        setattr(target, VISIBLE_CALLS, calls)


def _read(declared: object) -> CallVisibility | None:
    for calls in get_args(CallVisibility):
        if declared == calls:
            return calls
    return None
