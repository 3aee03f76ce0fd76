"""How many of a target's tool calls its record shows, as the target declares it."""

from __future__ import annotations

from typing import Literal

CallVisibility = Literal["all", "some", "none"]
"""With `all`, what has no call was not done. With `some` or `none`, a plain statement that it was done counts, too."""

_ATTRIBUTE = "visible_calls"


def visible_calls(target: object) -> CallVisibility | None:
    """Return what a target declares in `visible_calls`, None where it declares nothing.

    Then the record decides: where it has any call it shows all, and where it has none it shows none.
    """
    declared = getattr(target, _ATTRIBUTE, None)
    return declared if declared in ("all", "some", "none") else None


def declare_visible_calls(target: object, calls: CallVisibility | None) -> None:
    """Declare it for a target; None changes nothing."""
    if calls is not None:
        setattr(target, _ATTRIBUTE, calls)
