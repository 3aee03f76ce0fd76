"""Where a conversation breaks a rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vivavoce.metrics.rules.event import Event
from vivavoce.metrics.rules.moments import Moment
from vivavoce.metrics.rules.rule import Rule
from vivavoce.metrics.rules.sameness import identity


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
        GraderFault: an expression takes too long on a message.
    """
    if rule.each is not None:
        return _each(rule, rule.each, moments, history_turns)
    if rule.never is not None:
        return _never(rule.never, rule.after, moments, history_turns)
    own = _own(moments, history_turns)
    if rule.always is not None:
        happened = bool(_made(rule.always, own))
        return Checked(1, [] if happened else [Break(f"no {rule.always.phrase} in the conversation")])
    assert rule.at_most is not None
    assert rule.of is not None
    if idle := _idle(rule.of, own):
        return Checked(0, [], idle)
    breaks = _too_many(rule.at_most, rule.of, moments)
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


def _made(event: Event, moments: Sequence[Moment]) -> list[Moment]:
    """Return where what is wanted happened; a call that was only tried did not."""
    return [moment for moment in moments if moment.made and event.happens_in(moment)]


def _possible(event: Event, moments: Sequence[Moment]) -> list[Moment]:
    """Return where what is not wanted, or only on a condition, may have happened."""
    return [moment for moment in moments if event.may_happen_in(moment)]


def _each(rule: Rule, each: Event, moments: Sequence[Moment], history_turns: int) -> Checked:
    heads = _possible(each, _own(moments, history_turns))
    if not heads:
        return Checked(0, [], f"no {each.phrase}")
    wanted = [
        *((event, _made(event, moments)[::-1], _is_before, "before") for event in rule.only_after),  # nearest first
        *((event, _made(event, moments), _is_after, "after") for event in rule.followed_by),
    ]
    breaks = [
        Break(f"{head.line}: no {event.phrase} {side} it{event.reach}", head)
        for head in heads
        for event, found, lies, side in wanted
        if not any(lies(one, head) and event.belongs_to(one, head) for one in found)
    ]
    return Checked(len(heads), breaks)


def _never(never: Event, after: Event | None, moments: Sequence[Moment], history_turns: int) -> Checked:
    own = _own(moments, history_turns)
    heads = _possible(never, own)
    if after is None:
        if idle := _idle(never, own):
            return Checked(0, [], idle)
        return Checked(1, [Break(f"{head.line}: this must never happen", head) for head in heads])
    found = _possible(after, moments)
    if not found:
        return Checked(0, [], f"no {after.phrase}")
    place = {id(moment): number for number, moment in enumerate(moments)}

    def began_before(one: Moment, head: Moment) -> bool:  # also in the same message: who did both knew the first
        return place[id(one)] < place[id(head)]

    breaks = [
        Break(f"{head.line}: this must never come after a {after.phrase}{after.reach}", head)
        for head in heads
        if any(began_before(one, head) and after.may_belong_to(one, head) for one in found)
    ]
    return Checked(1, breaks)


def _too_many(most: int, event: Event, moments: Sequence[Moment]) -> Iterator[Break]:
    """Yield where an event happens too often; arguments that nobody can read may be those of any other call."""
    groups = defaultdict[tuple[str | None, ...], list[Moment]](list)
    unread: list[Moment] = []
    for moment in _possible(event, moments):
        if moment.is_unread and event.same:
            unread.append(moment)
            counts = [_near(event, moment, [*group, *unread]) for group in groups.values() or [[]]]
        else:
            groups[_values(event, moment)].append(moment)
            counts = [_near(event, moment, [*groups[_values(event, moment)], *unread])]
        if max(counts) > most:
            allowed = f"at most {most} may happen{event.sameness}{event.reach}"
            yield Break(f"{moment.line}: this is number {max(counts)}, and {allowed}", moment)


def _near(event: Event, moment: Moment, others: Sequence[Moment]) -> int:
    """Return how many events are as near to a moment as the rule says."""
    return sum(event.within_turns is None or one.turns_from(moment) <= event.within_turns for one in others)


def _values(event: Event, moment: Moment) -> tuple[str | None, ...]:
    """Return the values by which events are counted apart; an argument that is not there is a value of its own."""
    found = (moment.argument(name) for name in event.same or ())
    return tuple(None if one is None else identity(one[0]) for one in found)


def _is_before(one: Moment, head: Moment) -> bool:
    return one.before(head)


def _is_after(one: Moment, head: Moment) -> bool:
    return head.before(one)
