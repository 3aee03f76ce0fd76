"""Where an event happened, or may have, ordered so that each of many calls soon finds those before and after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from math import prod

from vivavoce.metrics.rules.event import Event, Moment
from vivavoce.metrics.rules.sameness import Meanings, identity, is_missing, may_mention

_Key = tuple[Hashable, ...] | None


class Occurrences:
    """The moments in which an event happened, in their order.

    Calls are grouped by the arguments that must be the same. Whether a message mentions a value has to be looked for in
    each message; `check_time` is called for each.
    """

    def __init__(self, event: Event, moments: Sequence[Moment], check_time: Callable[[], None]) -> None:
        self.event = event
        self._check_time = check_time
        self._moments = moments
        self._mentions = bool(event.same) and event.call is None
        groups = defaultdict[_Key, list[Moment]](list)
        if not self._mentions:
            for moment in moments:
                groups[_key(moment, list(event.same or ()))].append(moment)
        self._groups = {key: _Group(group) for key, group in groups.items() if key is not None}

    def has_before(self, head: Moment) -> bool:
        """Say whether one that belongs to a call was over when that began."""
        if self._mentions:
            return any(moment.before(head) and self._belongs(moment, head) for moment in reversed(self._moments))
        group = self._group(head)
        return group is not None and group.has_before(head, self.event.within_turns)

    def has_after(self, head: Moment) -> bool:
        """Say whether one that belongs to a call began when that was over."""
        if self._mentions:
            return any(head.before(moment) and self._belongs(moment, head) for moment in self._moments)
        group = self._group(head)
        return group is not None and group.has_after(head, self.event.within_turns)

    def _belongs(self, moment: Moment, head: Moment) -> bool:
        self._check_time()
        return self.event.belongs_to(moment, head)

    def _group(self, head: Moment) -> _Group | None:
        key = _key(head, list((self.event.same or {}).values()))
        return None if key is None else self._groups.get(key)


class _Group:
    """Moments with the same values."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._begins = [moment.message for moment in moments]
        self._turns = [moment.turn_number for moment in moments]
        ended = sorted(moments, key=lambda moment: moment.end)
        self._ends = [moment.end for moment in ended]
        self._last_turns = list(accumulate((moment.turn_number for moment in ended), max))

    def has_before(self, head: Moment, within_turns: int | None) -> bool:
        """Say whether one ended before a call, in a turn near enough: none of them lies in a later turn."""
        count = bisect_left(self._ends, head.message)
        return count > 0 and (within_turns is None or head.turn_number - self._last_turns[count - 1] <= within_turns)

    def has_after(self, head: Moment, within_turns: int | None) -> bool:
        """Say whether one began after a call, in a turn near enough: the first of them is the nearest."""
        first = bisect_right(self._begins, head.end)
        if first == len(self._begins):
            return False
        return within_turns is None or self._turns[first] - head.turn_number <= within_turns


def _key(moment: Moment, paths: Sequence[str]) -> _Key:
    """Return the values of some arguments, None where one of them says nothing, so that nothing is the same as it."""
    values = [moment.argument(path) for path in paths]
    stated = [value[0] for value in values if value is not None and not is_missing(value[0])]
    return None if len(stated) < len(values) else tuple(map(identity, stated))


@dataclass(frozen=True, slots=True)
class PossibleValue:
    """What an argument of a call may be; none of its values is missing. With `is_unread`, it may be anything."""

    values: Sequence[Meanings] = ()
    is_unread: bool = False

    @classmethod
    def of(cls, moment: Moment, path: str) -> PossibleValue:
        """Return what an argument of a moment may be."""
        if moment.is_unread:
            return cls(is_unread=True)
        there = moment.possible_arguments.at(path)
        return cls([Meanings(value) for value in there.values if not is_missing(value)], there.is_unread)

    @property
    def is_missing(self) -> bool:
        """Whether the call has no such argument."""
        return not self.values and not self.is_unread

    def may_be(self, other: PossibleValue) -> bool:
        """Return whether two arguments may mean the same thing; one that is missing means nothing."""
        if self.is_unread or other.is_unread:
            return True
        return any(value.may_be(wanted) for value in self.values for wanted in other.values)

    @property
    def keys(self) -> frozenset[str]:
        """The identities of its values, and the names that they may have as a whole."""
        return frozenset[str]().union(*(value.keys | value.names for value in self.values))

    @property
    def stated_names(self) -> frozenset[str]:
        """The names that its values may state anywhere."""
        return frozenset[str]().union(*(value.stated_names for value in self.values))

    @property
    def kinds(self) -> Iterator[str]:
        """By what other values may find it besides its keys: it is a number, or a text that may state one."""
        for value in self.values:
            if value.number is not None:
                yield "number"
            elif value.may_state_numbers:
                yield "text"
            if value.is_broken:
                yield "broken"


_PARTNERS: Mapping[str, Sequence[str]] = {
    "number": ("text",),
    "text": ("number",),
    "broken": ("number", "text", "other"),
}
"""Of which kinds a value may be that is alike without a key in common."""
_MAX_KEYS = 1000
"""Groups that a call may belong to; with more it may belong to any."""


class PossibleOccurrences:
    """The moments in which an event may have happened, each with its place, for what must not come after it."""

    def __init__(self, event: Event, moments: Sequence[tuple[int, Moment]], check_time: Callable[[], None]) -> None:
        self._event = event
        self._moments = moments
        self._check_time = check_time
        self._pairs = list((event.same or {}).items())
        self._places = [place for place, _ in moments]
        self._values: list[list[PossibleValue]] = []
        self._index = defaultdict[str, list[int]](list)
        if self._pairs and event.call is not None:
            for number, (_, moment) in enumerate(moments):
                check_time()
                self._values.append([PossibleValue.of(moment, name) for name, _ in self._pairs])
                for key in self._keys_of(self._values[-1][0]):
                    self._index[key].append(number)

    def may_come_before(self, head: Moment, place: int) -> bool:
        """Return whether one that may belong to a moment comes before it, also in the same message."""
        count = bisect_left(self._places, place)
        if not self._pairs:
            return count > 0 and self._event.is_near(self._moments[count - 1][1], head)
        heads = [PossibleValue.of(head, other) for _, other in self._pairs]
        return any(self._may_belong(number, head, heads) for number in self._candidates(heads[0]) if number < count)

    def _candidates(self, head: PossibleValue) -> Iterator[int]:
        """Yield the numbers of the moments that may have the first of the values that must be the same."""
        if head.is_unread or not self._values:
            yield from range(len(self._moments))
            return
        partners = [kind for own in head.kinds for kind in _PARTNERS[own]]
        keys = [*head.keys, *head.stated_names, *map(_statement_of, head.keys), *partners, "broken", "unread"]
        for key in dict.fromkeys(keys):
            yield from self._index.get(key, ())

    def _keys_of(self, value: PossibleValue) -> Iterator[str]:
        """Yield by what a moment with this value is found."""
        yield from value.keys
        yield from map(_statement_of, value.stated_names)
        yield from set(value.kinds) or {"other"}
        if value.is_unread:
            yield "unread"

    def _may_belong(self, number: int, head: Moment, heads: Sequence[PossibleValue]) -> bool:
        self._check_time()
        moment = self._moments[number][1]
        if not self._event.is_near(moment, head):
            return False
        if self._values:
            return all(map(PossibleValue.may_be, self._values[number], heads))
        return all(
            wanted.is_unread or any(may_mention(moment.text, value.value) for value in wanted.values)
            for wanted in heads
        )


def states_all(moment: Moment, paths: Collection[str]) -> bool:
    """Return whether a call may have a value for each of some arguments."""
    return not any(PossibleValue.of(moment, path).is_missing for path in paths)


def _statement_of(name: str) -> str:
    """Return the key of moments with a text that states a name."""
    return f"states {name}"


def possible_keys(event: Event, moment: Moment) -> list[tuple[str, ...]] | None:
    """Return the groups in which a moment may be counted, None for all; none where an argument is missing."""
    values = [PossibleValue.of(moment, name) for name in event.same or ()]
    if any(value.is_missing for value in values):
        return []
    if any(value.is_unread for value in values) or prod(len(value.keys) for value in values) > _MAX_KEYS:
        return None
    return list(product(*(value.keys for value in values)))
