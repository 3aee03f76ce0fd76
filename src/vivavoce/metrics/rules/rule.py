"""`Rule`: what must hold of the events of a conversation, and where a conversation breaks it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.rules.event import Event, Moment
from vivavoce.metrics.rules.occurrences import Occurrences, PossibleOccurrences, possible_keys, states_all
from vivavoce.records.score import shorten
from vivavoce.validation import AS_WRITTEN, StrictInput
from vivavoce.work_time import counted_work

_MAX_PHRASE_CHARS = 500

_GOES_WITH: Mapping[str, tuple[str, ...]] = {
    "each": ("only_after", "followed_by"),
    "never": ("after",),
    "always": (),
    "at_most": ("of",),
}
"""How rules begin, and what may stand beside each beginning."""


class Rule(StrictInput):
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
            raise ValueError(f"a rule needs one of {', '.join(_GOES_WITH)}{found}")
        [head] = heads
        for other, names in _GOES_WITH.items():
            for name in names if other != head else ():
                if getattr(self, name):
                    raise ValueError(f"{name} goes with {other}, not with {head}")
        if head == "each" and not (self.only_after or self.followed_by):
            raise ValueError("each needs only_after or followed_by")
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
                raise ValueError(f"{place}: same needs a call in {head} to compare arguments with")
            if name == "only_after" and other == event:
                raise ValueError(
                    f"{place}: the first such event can never have one before it, so the rule always fails"
                )

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
        written = {name: value for name, value in fields.items() if value is not None}
        return Rule.model_validate(written, context=AS_WRITTEN)
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


@dataclass(frozen=True, slots=True)
class Break:
    """How a rule is broken, in a sentence, and the moment that breaks it; None where something never happens."""

    what: str
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """How often a rule had to hold, its breaks in the order of the conversation, and which occasion was missing."""

    occasions: int
    breaks: Sequence[Break]
    missing: str = ""


def check(rule: Rule, moments: Sequence[Moment], history_turns: int = 0) -> Checked:
    """Return where the moments of a conversation break a rule.

    What happens in the first `history_turns`, which the target did not write, breaks nothing and fulfils no `always`;
    it counts as what comes before: for `only_after`, `after`, and `at_most`.

    Raises:
        GraderFault: an expression takes too long on a message, or no time is left for the request.
    """
    with counted_work() as check_time:
        return _checked(rule, moments, history_turns, check_time)


def _checked(rule: Rule, moments: Sequence[Moment], history_turns: int, check_time: Callable[[], None]) -> Checked:
    if rule.each is not None:
        return _each(rule, rule.each, moments, history_turns, check_time)
    if rule.never is not None:
        return _never(rule.never, rule.after, moments, history_turns, check_time)
    own = _own(moments, history_turns)
    if rule.always is not None:
        happened = bool(_places(rule.always, own, check_time))
        return Checked(1, [] if happened else [Break(f"no {rule.always.phrase} in the conversation")])
    assert rule.at_most is not None
    assert rule.of is not None
    if idle := _idle(rule.of, own):
        return Checked(0, [], idle)
    if missing := _without_values(rule.of, _possible(rule.of, moments, check_time), rule.of.same or ()):
        return Checked(0, [], missing)
    breaks = _too_many(rule.at_most, rule.of, moments, check_time)
    return Checked(1, [item for item in breaks if item.moment is None or _is_own(item.moment, history_turns)])


def _is_own(moment: Moment, history_turns: int) -> bool:
    """Say whether a moment comes after the history; without a history, each does."""
    return not history_turns or (moment.turn is not None and moment.turn >= history_turns)


def _own(moments: Sequence[Moment], history_turns: int) -> Sequence[Moment]:
    """Return the moments after the history."""
    return [moment for moment in moments if _is_own(moment, history_turns)]


def _idle(event: Event, moments: Sequence[Moment]) -> str:
    """Say what the assistant had to do before it could be an event; empty where it did that, or is not who does it."""
    if event.call is None and event.speaker != "assistant":
        return ""
    own = [moment for moment in moments if moment.speaker == "assistant"]
    if event.call is None and event.handoff is None:
        return "" if any(moment.text for moment in own) else "the assistant says nothing"
    return "" if own else "the assistant does nothing at all"


def _without_values(event: Event, events: Sequence[Moment], paths: Collection[str]) -> str:
    """Return which arguments no event has together, so that none is the same; empty where one has them."""
    if not events or not paths or any(states_all(moment, paths) for moment in events):
        return ""
    return f"no call of {' or '.join(event.call or ())} has a value for {' and '.join(paths)}"


def _places(event: Event, moments: Sequence[Moment], check_time: Callable[[], None]) -> list[Moment]:
    """Return where what is wanted happened; a call that was only tried did not."""
    return [moment for moment in _timed(moments, check_time) if moment.was_made and event.happens_in(moment)]


def _possible(event: Event, moments: Sequence[Moment], check_time: Callable[[], None]) -> list[Moment]:
    """Return where what is not wanted, or only on a condition, may have happened."""
    return [moment for moment in _timed(moments, check_time) if event.may_happen_in(moment)]


def _timed(moments: Sequence[Moment], check_time: Callable[[], None]) -> Iterator[Moment]:
    for moment in moments:
        check_time()
        yield moment


def _each(
    rule: Rule, each: Event, moments: Sequence[Moment], history_turns: int, check_time: Callable[[], None]
) -> Checked:
    heads = _possible(each, _own(moments, history_turns), check_time)
    if not heads:
        return Checked(0, [], f"no {each.phrase}")
    wanted = [
        *((Occurrences(event, _places(event, moments, check_time), check_time), "before") for event in rule.only_after),
        *((Occurrences(event, _places(event, moments, check_time), check_time), "after") for event in rule.followed_by),
    ]
    problems = [f"no {_short(event.event.phrase)} {side} it{event.event.reach}" for event, side in wanted]
    breaks = [
        Break(f"{head.line}: {problem}", head)
        for head in heads
        for (occurrences, side), problem in zip(wanted, problems, strict=True)
        if not (occurrences.has_before(head) if side == "before" else occurrences.has_after(head))
    ]
    return Checked(len(heads), breaks)


def _short(phrase: str) -> str:
    """Return a phrase that each of many breaks may quote."""
    return shorten(phrase, _MAX_PHRASE_CHARS) or ""


def _never(
    never: Event,
    after: Event | None,
    moments: Sequence[Moment],
    history_turns: int,
    check_time: Callable[[], None],
) -> Checked:
    own = _own(moments, history_turns)
    heads = _possible(never, own, check_time)
    if after is None:
        if idle := _idle(never, own):
            return Checked(0, [], idle)
        return Checked(1, [Break(f"{head.line}: this must never happen", head) for head in heads])
    earlier = _possible(after, moments, check_time)
    if not earlier:
        return Checked(0, [], f"no {after.phrase}")
    same = after.same or {}
    missing = _without_values(after, earlier, same) if after.call else ""
    if missing := missing or _without_values(never, heads, same.values()):
        return Checked(0, [], missing)
    # who did both in one message knew the first, so the place of a moment decides, not the message
    place = {id(moment): number for number, moment in enumerate(moments)}
    before = PossibleOccurrences(after, [(place[id(moment)], moment) for moment in earlier], check_time)
    problem = f"this must never come after a {_short(after.phrase)}{after.reach}"
    return Checked(
        1,
        [Break(f"{head.line}: {problem}", head) for head in heads if before.may_come_before(head, place[id(head)])],
    )


def _too_many(most: int, event: Event, moments: Sequence[Moment], check_time: Callable[[], None]) -> Iterator[Break]:
    """Yield where an event happens too often; arguments that nobody can read may be those of any other call."""
    groups = defaultdict[tuple[str | None, ...], list[Moment]](list)
    unread: list[Moment] = []
    allowed = f"at most {most} may happen{_short(event.sameness)}{event.reach}"
    for moment in _possible(event, moments, check_time):
        check_time()
        keys = possible_keys(event, moment)
        if keys is None:
            unread.append(moment)
            near = _near(event, moment, unread)
            counts = [_near(event, moment, group) + near for group in groups.values() or [[]]]
        else:
            for key in keys:
                groups[key].append(moment)
            near = _near(event, moment, unread)
            counts = [_near(event, moment, groups[key]) + near for key in keys]
        if (count := max(counts, default=0)) > most:
            yield Break(f"{moment.line}: this is number {count}, and {allowed}", moment)


def _near(event: Event, moment: Moment, others: Sequence[Moment]) -> int:
    """Return how many events are as near to a moment as the rule says; none of them comes after it."""
    if event.within_turns is None:
        return len(others)
    first = moment.turn_number - event.within_turns
    return len(others) - bisect_left(others, first, key=lambda other: other.turn_number)
