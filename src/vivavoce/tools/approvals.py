"""Approvals: what the user says to a tool that asks before it acts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from vivavoce.errors import SuiteFault, UsageError, did_you_mean

if TYPE_CHECKING:  # who only reads a suite loads no target
    from vivavoce.targets.tools import World

Decision = Literal["approve", "refuse"]
Decisions = Decision | Annotated[list[Decision], Field(min_length=1)]
Approvals = Decisions | dict[str, Decisions]
"""What the user says to every call, to one call after the other, or to the calls of each tool."""

REFUSED = "the user refused this call, it was not made"
_APPROVALS: TypeAdapter[Any] = TypeAdapter(Approvals)


def read_approvals(written: object, asking: Collection[str], where: str = "approvals") -> Approvals:
    """Read what the user says to the tools that ask.

    Raises:
        UsageError: it is something else, or names a tool that does not ask; the text begins with `where`.
    """
    try:
        approvals: Approvals = _APPROVALS.validate_python(written)
    except ValidationError as error:
        rule = "approve, refuse, a list of these for one call after the other, or one of these for each tool"
        raise UsageError(f"{where}: must be {rule}; got {written!r:.60}") from error
    if not asking:
        raise UsageError(f"{where}: no tool asks; name those that do under needs_approval of the target")
    for name in approvals if isinstance(approvals, dict) else ():
        if name not in asking:
            raise UsageError(f"{where}.{name}: this tool does not ask for approval{did_you_mean(name, asking)}")
    return approvals


def decided(approvals: Approvals | None, name: str, world: World) -> Decision:
    """Return what the user says to the next call of a tool that asks.

    Raises:
        SuiteFault: nothing says it.
    """
    decisions: Decisions | None = approvals.get(name) if isinstance(approvals, Mapping) else approvals
    if decisions is None:
        hint = "write approvals: approve, or refuse, in the target or in the row"
        raise SuiteFault(
            f"the tool '{name}' asks the user, and nothing says what the user answers; {hint}", kind="unanswered"
        )
    if isinstance(decisions, str):
        return decisions
    scripted = cast("Sequence[Decision]", decisions)
    key = f"approvals {name if isinstance(approvals, Mapping) else ''}"
    number = world.counts[key]
    if number >= len(scripted):
        message = f"the tool '{name}' asks {number + 1} times, and approvals has {len(scripted)} of the answers"
        raise SuiteFault(message, kind="unanswered")
    world.counts[key] += 1
    return scripted[number]
