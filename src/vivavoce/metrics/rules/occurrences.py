"""`Occurrences`: where an event happened, ordered so that each of many calls soon finds those before and after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate

from vivavoce.metrics.rules.event import Event, Moment
from vivavoce.metrics.rules.sameness import identity, is_missing

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
