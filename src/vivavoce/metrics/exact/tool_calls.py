"""Comparing the tool calls of a conversation with the ones it should have had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.metrics.exact.call_pairs import Calls, MadeCalls

TrajectoryMode = Literal["strict", "in_order", "unordered", "subset", "superset"]
TRAJECTORY_MODES: tuple[TrajectoryMode, ...] = get_args(TrajectoryMode)

EXACT_ARGUMENTS = ArgumentRule()


@dataclass(frozen=True, slots=True)
class CallScore:
    """A score between 0 and 1, and a reason in words for everything that it lacks to 1.

    Reasons count calls from 1, in the order of the list they are in.
    """

    score: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallF1(CallScore):
    """The harmonic mean of precision (of the calls made) and recall (of the calls wanted), all between 0 and 1."""

    precision: float = 0.0
    recall: float = 0.0


def match_trajectory(
    actual: MadeCalls,
    reference: Sequence[ToolCall],
    *,
    mode: TrajectoryMode = "strict",
    arguments: ArgumentRule = EXACT_ARGUMENTS,
) -> CallScore:
    """Say whether the calls match: 1.0 or 0.0.

    Each call stands for itself: one reference call answers for one actual call, and of all ways to pair them the best
    one counts.

    - `strict`: the same calls in the same order.
    - `in_order`: every reference call was made, in that order; further calls may be made before, between and after.
    - `unordered`: the same calls, each as often, in any order.
    - `subset`: every actual call is a reference call, nothing more; reference calls may be missing.
    - `superset`: every reference call was made; further calls may be made.

    Calls that were made in one message have no order among themselves: they are in any order that is wanted.

    Calls match when name and arguments do; arguments that are not a JSON object never match.

    Raises:
        UsageError: no such mode.
    """
    if mode not in TRAJECTORY_MODES:
        raise UsageError(f"no trajectory mode '{mode}'{did_you_mean(mode, TRAJECTORY_MODES)}")
    calls = Calls(actual, reference, arguments)
    if calls.same_in_order():
        return CallScore(1.0)
    ordered = mode in ("strict", "in_order")
    pairs = calls.ordered_pairs() if ordered else calls.pairs()
    missing, extra = mode != "subset", mode not in ("superset", "in_order")
    reasons = calls.reasons(pairs, ordered=ordered, missing=missing, extra=extra)
    return CallScore(0.0 if reasons else 1.0, reasons)


def tool_call_accuracy(
    actual: MadeCalls,
    reference: Sequence[ToolCall],
    *,
    arguments: ArgumentRule = EXACT_ARGUMENTS,
    order: bool = False,
) -> CallScore:
    """Return how much of the calls matches, between 0 and 1.

    Every reference call is paired with an actual call of the same tool, and gives the share of its arguments that
    match (1 when none counts); the pairing is the one with the largest sum. With `order`, it is the largest sum
    among the pairings that keep the order of both lists; calls that were made in one message keep every order.

    The sum is divided by the length of the longer list. So a missing call and an extra call each cost one call's part,
    and a wrong call in place of the right one, being one mistake, costs the same as either: dividing by the reference
    alone would let a system win by calling everything. No calls where none are wanted is 1.0; calls where none are
    wanted is 0.0.
    """
    calls = Calls(actual, reference, arguments)
    if calls.same_in_order():
        return CallScore(1.0)
    pairs = calls.ordered_pairs() if order else calls.pairs()
    total = sum(calls.share(expected, made) for expected, made in pairs)
    return CallScore(total / max(calls.count, len(reference)), calls.reasons(pairs, ordered=order))


def tool_call_f1(
    actual: MadeCalls, reference: Sequence[ToolCall], *, arguments: ArgumentRule = EXACT_ARGUMENTS
) -> CallF1:
    """Say how many calls are right as a whole, in precision, recall and their harmonic mean.

    Order is free, a repeated call counts as often as it is made, and of all ways to pair the calls the one with the
    most matches counts. No calls where none are wanted is 1.0; no calls where some are wanted has precision 0.
    """
    calls = Calls(actual, reference, arguments)
    if calls.same_in_order():
        return CallF1(1.0, precision=1.0, recall=1.0)
    pairs = calls.pairs(whole=True)
    matched = len(pairs)
    return CallF1(
        score=2 * matched / (calls.count + len(reference)),
        reasons=calls.reasons(pairs),
        precision=matched / calls.count if actual else 0.0,
        recall=matched / len(reference) if reference else 0.0,
    )
