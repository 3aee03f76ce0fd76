"""`RuleMetric`: does a rule about calls and words hold across the turns?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import Utterance
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.metrics.result import Evidence
from vivavoce.metrics.rules.event import Event, Moment, moments
from vivavoce.metrics.rules.rule import Break, check, read_rule
from vivavoce.records.score import Finding, turn_label
from vivavoce.safe_regex import expression

Written = Event | Mapping[str, Any]
"""An event as it is written, such as `{"call": "refund_order"}`."""
_SHOWN = 3
"""Breaks that the reason tells; the findings have all."""


class RuleMetric(ExactMetric):
    """Says whether a rule holds: what comes before, after, never, always, or at most n times.

    A rule begins with `each` (an event that comes `only_after` others or is `followed_by` others), `never` (an event,
    or one that never comes `after` another), `always` (an event that every conversation has) or `at_most` (a count `of`
    an event). Events are calls of tools, by name and arguments, and words of the user, the assistant or a tool.
    Each break is a finding with its turn; its `data["message"]` is the index of the message from 0. A rule that never
    applies is skipped: `each` where the event does not happen, `never … after` where the other does not, `never` and
    `at_most` of assistant events if it does nothing. True when nothing breaks the rule. Where a
    rule forbids something, unreadable arguments (not a JSON object, or not a number) count as the worst
    case. Known failures: words are matched by regex, so that "yes, but" is a yes; calls made in one message
    are neither before nor after each other. Events in a row's history neither break nor satisfy a rule; they only count
    as earlier events.
    """

    version = "4"

    def __init__(
        self,
        *,
        each: Written | None = None,
        only_after: Sequence[Written] | None = None,
        followed_by: Sequence[Written] | None = None,
        never: Written | None = None,
        after: Written | None = None,
        always: Written | None = None,
        at_most: int | None = None,
        of: Written | None = None,
        **options: Unpack[MeasuringOptions],
    ) -> None:
        config = MetricConfig(
            class_name=type(self).__name__, name="rule", description="Does the rule hold?", score_type="binary"
        )
        super().__init__(config, **options)
        beginning = {"each": each, "never": never, "always": always, "at_most": at_most}
        beside = {"only_after": only_after, "followed_by": followed_by, "after": after, "of": of}
        self.rule = read_rule({**beginning, **beside})

    @property
    def parameters(self) -> Mapping[str, object]:
        """The rule."""
        return self.rule.model_dump(mode="json", exclude_defaults=True)

    def measure(self, part: Part) -> Measured:
        """Find violations of the rule."""
        return self.measure_each([part])[0]

    def measure_each(self, parts: Sequence[Part]) -> list[Measured]:
        """Find violations in each part of a conversation, listing its events once."""
        every = list(moments(parts[0].metric_input.messages))
        turns = [moment.turn_number for moment in every]
        measured: list[Measured] = []
        for part in parts:
            start = 0 if part.opening else bisect_left(turns, part.first)
            measured.append(self._measured(part, every[start : bisect_right(turns, part.last)]))
        return measured

    def _measured(self, part: Part, among: Sequence[Moment]) -> Measured:
        sample = part.metric_input.sample
        history_turns = 0 if sample is None else sample.history_turns
        if history_turns > part.last >= 0:
            return Measured(None, "this turn is part of the history")
        checked = check(self.rule, among, history_turns)
        if not checked.occasions:
            return Measured(None, f"the rule has no occasion: {checked.missing}")
        found = [self._finding(one) for one in checked.breaks]
        return Measured(not found, _reason(checked.breaks), findings=found)

    def _finding(self, one: Break) -> Finding:
        moment = one.moment
        if moment is None:
            return Finding(kind="rule", what=one.what, verdict="broken", state="fail")
        return Finding(
            kind="rule",
            what=one.what,
            verdict="broken",
            state="fail",
            turn=moment.turn,
            evidence=self._evidence(moment),
            data={"message": moment.message, **({"agent": moment.agent} if moment.agent else {})},
        )

    def _evidence(self, moment: Moment) -> tuple[Evidence, ...]:
        """Return the call, or the words that are what the rule is about; nothing for a handoff that is only stated."""
        if moment.reference:
            return (Evidence(text=moment.reference, kind="call", turn=moment.turn, verified=True),)
        event = self.rule.each or self.rule.never or self.rule.of
        assert event is not None
        if moment.receiver is not None:
            return ()
        quote = next(filter(None, expression(event.words).matches(moment.text)), moment.text)
        return (Utterance(moment.turn, quote).quote(),)


def _reason(breaks: Sequence[Break]) -> str:
    if not breaks:
        return "the rule holds"
    told = "; ".join(_placed(one) for one in breaks[:_SHOWN])
    return told if len(breaks) <= _SHOWN else f"{told}; and {len(breaks) - _SHOWN} more"


def _placed(one: Break) -> str:
    return one.what if one.moment is None else f"{turn_label(one.moment.turn)}: {one.what}"
