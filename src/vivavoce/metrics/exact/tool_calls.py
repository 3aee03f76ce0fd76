"""Comparing the tool calls of a conversation with the ones it should have had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import perm
from typing import Literal, NamedTuple, cast, get_args

from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.metrics.exact.arguments import ArgumentRule, Arguments, show
from vivavoce.records.trajectory import call_records, group_by_message
from vivavoce.safe_regex import expression
from vivavoce.work_time import counted_work

Weights = Sequence[Sequence[float]]
"""A row for each item of the one list, a column for each of the other; every weight is at least 0."""
Pair = tuple[int, int]
"""Row and column, counted from 0."""

MAX_PAIRS = 250_000
"""Pairs of a reference call and an actual call that are compared."""

_MAX_GROUP_WORK = 100_000_000
"""Steps of pairing calls in order where some were made together: the cube of the rows, times the calls of a group."""

_FEW = 1000
"""So many pairings are tried one by one in less than a millisecond; scipy takes far longer to import."""


def best_pairs(weights: Weights) -> list[Pair]:
    """Return the pairing of rows and columns with the largest sum, each used at most once.

    Pairs of weight 0 are left out. This is the assignment problem: solved at a glance where every row can have its
    largest weight, by trial where the possibilities are few, and else by `scipy.optimize.linear_sum_assignment`.
    """
    rows = [r for r, row in enumerate(weights) if any(row)]
    if not rows:
        return []
    if len(rows) > len(weights[0]):
        return sorted((row, column) for column, row in best_pairs(list(zip(*weights, strict=True))))
    useful = [weights[r] for r in rows]
    columns = _own_largest(useful) or _by_trial(useful) or _by_scipy(useful)
    return [(r, c) for r, c in zip(rows, columns, strict=True) if weights[r][c] > 0]


def _own_largest(weights: Weights) -> list[int] | None:
    """Give each row a column of its largest weight; None when two rows want the same one."""
    free = set(range(len(weights[0])))
    chosen: list[int] = []
    for row in weights:
        largest = max(row)
        column = next((c for c, weight in enumerate(row) if weight == largest and c in free), None)
        if column is None:
            return None
        free.remove(column)
        chosen.append(column)
    return chosen


def _by_trial(weights: Weights) -> list[int] | None:
    if perm(len(weights[0]), len(weights)) > _FEW:
        return None
    candidates = permutations(range(len(weights[0])), len(weights))
    return list(max(candidates, key=lambda columns: sum(weights[row][c] for row, c in enumerate(columns))))


def _by_scipy(weights: Weights) -> list[int]:
    from scipy.optimize import linear_sum_assignment  # pyright: ignore[reportUnknownVariableType]

    solve = cast("Callable[..., tuple[Iterable[int], Iterable[int]]]", linear_sum_assignment)
    _, columns = solve(weights, maximize=True)
    return [int(column) for column in columns]


def best_ordered_pairs(weights: Weights, groups: Sequence[int] | None = None) -> list[Pair]:
    """Return the pairing with the largest sum in which both rows and columns rise.

    `groups` are the sizes of groups of neighbouring columns whose own order is free; without it every column is a group
    of its own. Pairs of weight 0 are left out. This is the longest common subsequence with weights in place of
    equality, found by dynamic programming over the groups.
    """
    if not weights:
        return []
    steps = [_Step([0.0] * (len(weights) + 1), [(0, [])] * (len(weights) + 1))]
    first = 0
    for size in [1] * len(weights[0]) if groups is None else groups:
        steps.append(_take_group(steps[-1].sums, weights, range(first, first + size)))
        first += size
    pairs: list[Pair] = []
    rows = len(weights)
    for step in reversed(steps[1:]):
        rows, block = step.choices[rows]
        pairs += block
    return sorted(pairs)


class _Step(NamedTuple):
    """The best of the first r rows with the groups so far: its sum, and how the last group got there.

    A choice is the number of rows that are left to the groups before, and the pairs of this group.
    """

    sums: list[float]
    choices: list[tuple[int, list[Pair]]]


def _take_group(before: Sequence[float], weights: Weights, columns: Sequence[int]) -> _Step:
    step = _Step([before[0]], [(0, [])])
    useful: list[int] = []
    for row, row_weights in enumerate(weights):
        step.sums.append(step.sums[row])
        step.choices.append(step.choices[row])
        if before[row + 1] > step.sums[-1]:
            step.sums[-1], step.choices[-1] = before[row + 1], (row + 1, [])
        if not any(row_weights[column] for column in columns):
            continue
        useful.append(row)
        if len(columns) > 1 and len(useful) ** 3 * len(columns) > _MAX_GROUP_WORK:
            raise GraderFault("too many parallel calls to pair in order", kind="limit")
        for rows in [[row]] if len(columns) == 1 else [useful[start:] for start in reversed(range(len(useful)))]:
            block = _pairs_within(weights, rows, columns)
            total = before[rows[0]] + sum(weights[r][c] for r, c in block)
            if total > step.sums[-1]:
                step.sums[-1], step.choices[-1] = total, (rows[0], block)
    return step


def _pairs_within(weights: Weights, rows: Sequence[int], columns: Sequence[int]) -> list[Pair]:
    if len(rows) == len(columns) == 1:
        return [(rows[0], columns[0])]
    chosen = best_pairs([[weights[row][column] for column in columns] for row in rows])
    return [(rows[r], columns[c]) for r, c in chosen]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its arguments read; they are None where they are not a JSON object."""

    name: str
    args: Arguments | None
    text: str

    def __str__(self) -> str:
        name = self.name if self.name.isprintable() and len(self.name) <= 80 else show(self.name)
        return f"{name}({show(self.args) if self.args is not None else show(self.text)})"


def _parsed(call: ToolCall) -> _Call:
    try:
        args = call.args
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        args = None
    return _Call(call.name, args, call.function.arguments)


MadeCalls = Sequence[ToolCall | Sequence[ToolCall]]
"""The actual calls in their order; calls that were made together, in one message, are a list and have no order."""


class Calls:
    """The actual calls and the reference calls, under one rule for arguments.

    A pair is a position in the reference and one in the actual calls; only calls of the same tool make a pair.
    """

    def __init__(self, actual: MadeCalls, reference: Sequence[ToolCall], rule: ArgumentRule) -> None:
        steps = [[step] if isinstance(step, ToolCall) else step for step in actual]
        self._actual = [_parsed(call) for step in steps for call in step]
        self._sizes = [len(step) for step in steps]
        self._step_of = [number for number, step in enumerate(steps) for _ in step]
        self._reference = [_parsed(call) for call in reference]
        self._rule = rule

    @property
    def count(self) -> int:
        """How many actual calls there are."""
        return len(self._actual)

    def same_in_order(self) -> bool:
        """Say whether the calls match one by one."""
        return len(self._actual) == len(self._reference) and all(
            self.share(i, i) == 1 for i in range(len(self._reference))
        )

    def share(self, expected: int, made: int) -> float:
        """Return the share of arguments that match, 1.0 when none counts, 0.0 for another tool."""
        reference, actual = self._reference[expected], self._actual[made]
        if reference.name != actual.name or reference.args is None or actual.args is None:
            return 0.0
        verdicts = self._rule.for_tool(actual.name).verdicts(actual.args, reference.args)
        return sum(verdicts.values()) / len(verdicts) if verdicts else 1.0

    def ordered_pairs(self) -> list[Pair]:
        """Return the pairs with the largest sum of shares among those that keep both orders.

        Calls that were made together keep every order.
        """
        wanted, made = range(len(self._reference)), range(len(self._actual))
        check_pairs(len(wanted) * len(made))
        with counted_work():
            return best_ordered_pairs(self._shares(wanted, made), self._sizes)

    def _shares(self, expected: Collection[int], made: Collection[int]) -> list[list[float]]:
        """Return the share of each pair, row by row."""
        rows: list[list[float]] = []
        with counted_work() as check:
            for w in expected:
                rows.append([self.share(w, g) for g in made])
                check()
        return rows

    def pairs(self, *, whole: bool = False) -> list[Pair]:
        """Return the pairs with the largest sum of shares, in any order; with `whole`, the most pairs with share 1."""
        return self._pairs_among(range(len(self._reference)), range(len(self._actual)), whole=whole)

    def _pairs_among(self, expected: Collection[int], made: Collection[int], *, whole: bool = False) -> list[Pair]:
        pairs: list[Pair] = []
        by_tool = self._by_tool(expected, made)
        check_pairs(sum(len(rows) * len(columns) for rows, columns in by_tool))
        with counted_work() as check:
            for rows, columns in by_tool:
                shares = self._shares(rows, columns)
                weights = [[float(share == 1) for share in row] for row in shares] if whole else shares
                pairs += [(rows[row], columns[column]) for row, column in best_pairs(weights)]
                check()
        return sorted(pairs)

    def _by_tool(self, expected: Collection[int], made: Collection[int]) -> list[tuple[list[int], list[int]]]:
        """Return, for each tool called on both sides, the positions in the reference and in the actual calls."""
        rows, columns = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for position in expected:
            rows[self._reference[position].name].append(position)
        for position in made:
            columns[self._actual[position].name].append(position)
        return [(rows[name], columns[name]) for name in rows if name in columns]

    def reasons(
        self, pairs: Sequence[Pair], *, ordered: bool = False, missing: bool = True, extra: bool = True
    ) -> tuple[str, ...]:
        """Return what is wrong, one line each: arguments first, then missing calls, then extra ones.

        A call left over is set beside the call of its tool that comes nearest, so that its reason names the argument.
        `missing` and `extra` say whether calls of the one list without a partner in the other are wrong at all.
        """
        near = self._near(pairs)
        partners = sorted([*pairs, *near])
        lines: list[str] = []
        for expected, made in partners:
            if ordered and (expected, made) in near and any(self._cross((expected, made), pair) for pair in pairs):
                lines.append(f"call {made + 1} {self._actual[made].name}: out of order, wanted as call {expected + 1}")
            lines += [f"call {made + 1} {self._actual[made].name}: {line}" for line in self._complaints(expected, made)]
        if missing:
            unpaired = _without(range(len(self._reference)), [expected for expected, _ in partners])
            lines += [f"missing call: {self._wanted(expected)}" for expected in unpaired]
        if extra:
            unpaired = _without(range(len(self._actual)), [made for _, made in partners])
            lines += [f"call {made + 1} not wanted: {self._actual[made]}" for made in unpaired]
        return tuple(lines)

    def _cross(self, pair: Pair, other: Pair) -> bool:
        """Say whether two pairs have their calls in another order than their expected calls."""
        (expected, made), (w, g) = pair, other
        return (expected - w) * (self._step_of[made] - self._step_of[g]) < 0

    def _wanted(self, expected: int) -> str:
        """Return a reference call in words: its name alone where any arguments will do."""
        call = self._reference[expected]
        return str(call) if call.args or self._rule.for_tool(call.name).others == "exact" else call.name

    def _near(self, pairs: Sequence[Pair]) -> set[Pair]:
        """Pair the calls that are left over with their nearest, those with nothing in common in their order."""
        expected = _without(range(len(self._reference)), [w for w, _ in pairs])
        made = _without(range(len(self._actual)), [g for _, g in pairs])
        alike = self._pairs_among(expected, made)
        expected = _without(expected, [w for w, _ in alike])
        made = _without(made, [g for _, g in alike])
        unlike = [pair for rows, columns in self._by_tool(expected, made) for pair in zip(rows, columns, strict=False)]
        return {*alike, *unlike}

    def _complaints(self, expected: int, made: int) -> list[str]:
        reference, actual = self._reference[expected], self._actual[made]
        if actual.args is None:
            return [f"arguments are not a JSON object: {show(actual.text)}"]
        if reference.args is None:
            return [f"the reference's arguments are not a JSON object: {show(reference.text)}"]
        return self._rule.for_tool(actual.name).complaints(actual.args, reference.args)


def check_pairs(count: int) -> None:
    """Check how many pairs of calls would be compared.

    Raises:
        GraderFault: they are too many.
    """
    if count > MAX_PAIRS:
        raise GraderFault(f"{count:,} pairs of calls would be compared, at most {MAX_PAIRS:,} allowed", kind="limit")


def _without(positions: Collection[int], used: Collection[int]) -> list[int]:
    used_set = set(used)
    return [position for position in positions if position not in used_set]


def select_calls(
    messages: Sequence[AnyMessage],
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    failed_when: str | None = None,
) -> list[ToolCall]:
    """Return the tool calls of a conversation that count, in order; a call that was refused was not made.

    `only` and `ignore` are as in `of_tools`. `failed_when` is a regular expression searched in the text of a call's
    result; a call is dropped where it is found. A call without a result did not fail.

    Raises:
        UsageError: `failed_when` is not a regular expression.
    """
    steps = select_steps(messages, only=only, ignore=ignore, failed_when=failed_when)
    return [call for step in steps for call in step]


def select_steps(
    messages: Sequence[AnyMessage],
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    failed_when: str | None = None,
) -> list[list[ToolCall]]:
    """Return the calls of `select_calls` in one list for each message that makes any of them.

    Raises:
        UsageError: `failed_when` is not a regular expression.
    """
    records = [record for record in call_records(messages) if record.was_made]
    if failed_when is not None:
        failure = expression(failed_when)
        records = [record for record in records if not (record.result and failure.found_in(record.result.text))]
    groups = group_by_message(records)
    steps = [of_tools([record.call for record in group], only=only, ignore=ignore) for group in groups]
    return [step for step in steps if step]


def of_tools(
    calls: Iterable[ToolCall], *, only: Sequence[str] | None = None, ignore: Sequence[str] | None = None
) -> list[ToolCall]:
    """Return the calls of the tools in `only` (None: of all tools) that are not in `ignore`."""
    wanted, unwanted = None if only is None else frozenset(only), frozenset(ignore or ())
    return [call for call in calls if (wanted is None or call.name in wanted) and call.name not in unwanted]


TrajectoryMode = Literal["strict", "in_order", "unordered", "subset", "superset"]
TRAJECTORY_MODES: tuple[TrajectoryMode, ...] = get_args(TrajectoryMode)

ALWAYS_TRUE_WITHOUT_CALLS: tuple[TrajectoryMode, ...] = ("superset", "in_order")
"""The modes that leave other calls free, so that they demand nothing where no call is expected."""

EXACT_ARGUMENTS = ArgumentRule()


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Which calls count, and how those that were made are compared with the expected ones.

    `only` and `ignore` are as in `of_tools`, `failed_when` as in `select_calls`. `mode` is None where the calls are not
    matched as a trajectory. Without `expects`, the calls that were made are not compared with others.

    Raises:
        UsageError: the options leave out every call.
    """

    only: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    arguments: ArgumentRule = EXACT_ARGUMENTS
    mode: TrajectoryMode | None = None
    failed_when: str | None = None
    expects: bool = True

    def __post_init__(self) -> None:
        if self.only is not None and not set(self.only) - set(self.ignore):
            what = "only and ignore leave no tool" if self.only else "only is empty"
            raise UsageError(f"{what}, so no call would be compared")
        if self.failed_when is not None and expression(self.failed_when).matches_everything:
            raise UsageError(f"failed_when: '{self.failed_when}' matches every result, so no call would be compared")
        if self.failed_when is not None and (problem := expression(self.failed_when).impossibility) is not None:
            raise UsageError(f"failed_when: /{self.failed_when}/ {problem}")

    @property
    def is_always_true_without_calls(self) -> bool:
        """Whether the mode demands nothing where no call is expected."""
        return self.mode in ALWAYS_TRUE_WITHOUT_CALLS

    @property
    def needs_known_tools(self) -> bool:
        """Whether names of tools, or whether any call is expected, decide if there is anything to compare."""
        names = self.only is not None or bool(self.ignore) or bool(self.arguments.tools)
        return names or self.is_always_true_without_calls

    def counts(self, tool: str) -> bool:
        """Return whether calls of a tool count."""
        return (self.only is None or tool in self.only) and tool not in self.ignore

    def select(self, messages: Sequence[AnyMessage]) -> list[list[ToolCall]]:
        """Return the calls of a conversation that count, in one list for each message that makes any."""
        return select_steps(messages, only=self.only, ignore=self.ignore, failed_when=self.failed_when)

    def idle_reason(self, reference: Sequence[ToolCall], made: Sequence[Sequence[ToolCall]]) -> str:
        """Return why there is nothing to compare in a row, empty where there is; `made` are the calls that count.

        A row that expects no call is a ban on calling the tools that count; so is a row that expects none of the tools
        that `only` names.
        """
        expects_any = any(self.counts(call.name) for call in reference)
        if self.only is None and reference and not expects_any and not made:
            return "ignore leaves no expected call and no call that was made, so there is nothing to compare"
        if self.is_always_true_without_calls and not expects_any:
            return f"mode {self.mode} demands the expected calls, and none is expected; write mode: strict for a ban"
        return ""


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
