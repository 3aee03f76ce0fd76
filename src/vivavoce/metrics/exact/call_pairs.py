"""Which actual tool call answers which reference call, and what differs between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.arguments import ArgumentRule, Arguments, show
from vivavoce.metrics.exact.assignment import Pair, best_ordered_pairs, best_pairs


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
        positions = range(len(self._actual))
        shares = [[self.share(w, g) for g in positions] for w in range(len(self._reference))]
        return best_ordered_pairs(shares, self._sizes)

    def pairs(self, *, whole: bool = False) -> list[Pair]:
        """Return the pairs with the largest sum of shares, in any order; with `whole`, the most pairs with share 1."""
        return self._pairs_among(range(len(self._reference)), range(len(self._actual)), whole=whole)

    def _pairs_among(self, expected: Collection[int], made: Collection[int], *, whole: bool = False) -> list[Pair]:
        pairs: list[Pair] = []
        for rows, columns in self._by_tool(expected, made):
            shares = [[self.share(w, g) for g in columns] for w in rows]
            weights = [[float(share == 1) for share in row] for row in shares] if whole else shares
            pairs += [(rows[row], columns[column]) for row, column in best_pairs(weights)]
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


def _without(positions: Collection[int], used: Collection[int]) -> list[int]:
    used_set = set(used)
    return [position for position in positions if position not in used_set]
