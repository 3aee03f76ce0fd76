"""`Rule`: what must hold of the events of a conversation, as people write it; it is checked when it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.rules.event import Event
from vivavoce.written import Written

_GOES_WITH: Mapping[str, tuple[str, ...]] = {
    "each": ("only_after", "followed_by"),
    "never": ("after",),
    "always": (),
    "at_most": ("of",),
}
"""How rules begin, and what may stand beside each beginning."""


class Rule(Written):
    """What must hold of the events of a conversation.

    - `each` event comes `only_after` one of every event listed, and is `followed_by` one of every event listed.
    - `never` does this event happen, or never `after` another one.
    - `always`, in every conversation, this event happens at least once.
    - `at_most` so many times `of` this event; with `same` so many for each value, with `within_turns` in that reach.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    each: Event | None = None
    only_after: list[Event] = Field(default_factory=list[Event])
    followed_by: list[Event] = Field(default_factory=list[Event])
    never: Event | None = None
    after: Event | None = None
    always: Event | None = None
    at_most: int | None = Field(default=None, ge=1)
    of: Event | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        heads = [name for name in _GOES_WITH if getattr(self, name) is not None]
        if len(heads) != 1:
            found = f", got {' and '.join(heads)}" if heads else ""
            raise ValueError(f"a rule begins with one of {', '.join(_GOES_WITH)}{found}")
        [head] = heads
        for other, names in _GOES_WITH.items():
            for name in names if other != head else ():
                if getattr(self, name):
                    raise ValueError(f"{name} goes with {other}, not with {head}")
        if head == "each" and not (self.only_after or self.followed_by):
            raise ValueError("each cannot be broken alone; write what it comes only_after, or is followed_by")
        if head == "at_most" and self.of is None:
            raise ValueError("at_most needs of, the event that is counted")
        self._check_companions(head)
        return self

    def _check_companions(self, head: str) -> None:
        event: Event | None = getattr(self, "of" if head == "at_most" else head)
        assert event is not None
        if head == "at_most":
            if event.same and (event.call is None or any(name != other for name, other in event.same.items())):
                raise ValueError("of: same needs the names of arguments of the call that is counted")
            return
        for name in ("same", "within_turns"):
            if getattr(event, name) is not None:
                hint = "; write it in the event that is compared with this one" if _GOES_WITH[head] else ""
                raise ValueError(f"{head}: {name} has nothing to compare with{hint}")
        for name, index, other in self.events:
            if name in _GOES_WITH:
                continue
            place = name if index is None else f"{name}.{index}"
            if other.same and event.call is None:
                raise ValueError(f"{place}: same needs a call in {head}, whose argument it compares with")
            if name == "only_after" and other == event:
                raise ValueError(f"{place}: the first such event can have none before it, so every one breaks the rule")

    @property
    def events(self) -> list[tuple[str, int | None, Event]]:
        """The events of the rule, each with its field and, where that is a list, its index."""
        single = {name: getattr(self, name) for name in (*_GOES_WITH, "after", "of")}
        listed = {"only_after": self.only_after, "followed_by": self.followed_by}
        return [
            *((name, None, event) for name, event in single.items() if isinstance(event, Event)),
            *((name, index, event) for name, events in listed.items() for index, event in enumerate(events)),
        ]

    def unknown_calls(self, known: Collection[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the path and the name of each tool that is none of those known; nothing where none is known."""
        for field, index, event in self.events if known else ():
            at = (field,) if index is None else (field, index)
            for tool in event.call or ():
                if not any(fnmatchcase(name, tool) for name in known):
                    yield (*at, "call"), tool


def read_rule(fields: Mapping[str, Any]) -> Rule:
    """Return a rule; a field that is None is not there.

    Raises:
        UsageError: it is not a rule, or one that cannot be broken; each mistake has its path.
    """
    try:
        return Rule.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise UsageError(*(_mistake(one) for one in error.errors(include_url=False))) from error


def _mistake(details: Any) -> str:
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if details["type"] == "model_type":
        message = "must be an event such as {call: refund}"
    if details["type"] == "extra_forbidden":  # the rule itself has no other keys, which are the options of its metric
        message = f"unknown key{did_you_mean(details['loc'][-1], Event.model_fields)}"
    place = ".".join(str(part) for part in details["loc"])
    return f"{place}: {message}" if place else message
