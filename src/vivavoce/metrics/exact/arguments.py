"""Which arguments of a tool call count, and how each is compared with the reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self, cast, get_args

from pydantic import JsonValue

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.exact.matchers import EXACT, Matcher, read_matcher, typed_equal

Arguments = Mapping[str, JsonValue]
Mode = Literal["exact", "subset", "ignore"]


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """How the arguments of a call are compared with those of the reference call.

    `named` arguments have their own matcher and `ignored` ones never count. For all others, `exact` demands equal
    values on both sides, `subset` demands the arguments of the reference and leaves further ones free, and `ignore`
    accepts anything. A tool in `tools` has a rule of its own, which replaces this one.
    """

    others: Mode = "exact"
    named: Mapping[str, Matcher] = field(default_factory=lambda: dict[str, Matcher]())
    ignored: frozenset[str] = frozenset()
    tools: Mapping[str, ArgumentRule] = field(default_factory=lambda: dict[str, ArgumentRule]())

    @classmethod
    def read(cls, spec: str | Mapping[str, object], where: str = "arguments", *, others: Mode = "exact") -> Self:
        """Read a rule as people write it.

        A mode (`exact`, `subset`, `ignore`); or a mapping from arguments to a matcher or `ignore`, where `*` gives the
        mode of all other arguments (`others` when left out) and `tools` holds a rule for each tool that needs its own:
        `{"date": "ignore", "note": {"fuzzy": 0.8}, "*": "subset", "tools": {"book": "exact"}}`. Within the rule of a
        tool, `tools` is an argument like any other.

        Raises:
            UsageError: an unknown mode or matcher; the text begins with `where` and the path below it.
        """
        if isinstance(spec, Mapping) and isinstance(tools := spec.get("tools"), Mapping):
            rest = {name: matcher for name, matcher in spec.items() if name != "tools"}
            rules = cast("Mapping[str, str | Mapping[str, object]]", tools).items()
            tool_rules = {tool: cls._read_flat(rule, f"{where}.tools.{tool}", others) for tool, rule in rules}
            return replace(cls._read_flat(rest, where, others), tools=tool_rules)
        return cls._read_flat(spec, where, others)

    @classmethod
    def _read_flat(cls, spec: str | Mapping[str, object], where: str, others: Mode) -> Self:
        if not isinstance(spec, Mapping):
            return cls(others=_mode(spec, where))
        matchers = {name: matcher for name, matcher in spec.items() if name != "*"}
        ignored = frozenset(name for name, matcher in matchers.items() if matcher == "ignore")
        return cls(
            others=_mode(spec.get("*", others), f"{where}.*"),
            named={n: read_matcher(m, f"{where}.{n}") for n, m in matchers.items() if n not in ignored},
            ignored=ignored,
        )

    def for_tool(self, tool: str) -> ArgumentRule:
        """Return the rule that holds for a tool."""
        return self.tools.get(tool, self)

    def verdicts(self, actual: Arguments, expected: Arguments) -> dict[str, bool]:
        """Return, for each argument that counts, whether it matches."""
        verdicts: dict[str, bool] = {}
        for name in {**expected, **actual}:
            matcher = self._matcher(name, in_reference=name in expected)
            if matcher is not None:
                comparable = name in actual and (matcher.alone or name in expected)
                verdicts[name] = comparable and matcher.agrees(actual[name], expected.get(name))
        return verdicts

    def _matcher(self, name: str, *, in_reference: bool) -> Matcher | None:
        """Return how an argument is compared, None when it does not count."""
        if name in self.ignored:
            return None
        matcher = self.named.get(name)
        if self.others == "ignore":
            return matcher
        matcher = matcher or EXACT
        return matcher if in_reference or matcher.alone or self.others == "exact" else None

    def complaints(self, actual: Arguments, expected: Arguments) -> list[str]:
        """Return a line for each argument that does not match; within a nested value, for the first difference."""
        verdicts = self.verdicts(actual, expected)
        return [self._complaint(name, actual, expected) for name, matches in verdicts.items() if not matches]

    def _complaint(self, name: str, actual: Arguments, expected: Arguments) -> str:
        matcher = self.named.get(name, EXACT)
        if name not in actual:
            return f"argument {show(name)}: wanted {matcher.describe(show(expected[name]))}, got nothing"
        if name not in expected and not matcher.alone:
            return f"argument {show(name)}: not wanted, got {show(actual[name])}"
        value, expected_value, path = actual[name], expected.get(name), ""
        if matcher == EXACT:
            path, value, expected_value = _first_difference(value, expected_value)
        return f"argument {show(name)}{path}: wanted {matcher.describe(show(expected_value))}, got {show(value)}"


def _first_difference(actual: JsonValue, expected: JsonValue) -> tuple[str, JsonValue, JsonValue]:
    """Return the path to the first place where two unequal values differ, and what is there in each."""
    path = ""
    while inner := _difference_within(actual, expected):
        path, actual, expected = path + inner[0], inner[1], inner[2]
    return path, actual, expected


def _difference_within(actual: JsonValue, expected: JsonValue) -> tuple[str, JsonValue, JsonValue] | None:
    """Return the first item in which two containers of the same shape differ, None for anything else."""
    if isinstance(actual, dict) and isinstance(expected, dict) and actual.keys() == expected.keys():
        items = [(f"[{show(key)}]", actual[key], expected[key]) for key in expected]
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        items = [(f"[{i}]", a, w) for i, (a, w) in enumerate(zip(actual, expected, strict=True))]
    else:
        return None
    return next(item for item in items if not typed_equal(item[1], item[2]))


def show(value: JsonValue | Arguments, width: int = 120) -> str:
    """Return a value as JSON text of at most `width` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value nested too deeply to show"
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _mode(value: object, where: str) -> Mode:
    modes = get_args(Mode)
    if value not in modes:
        raise UsageError(f"{where}: no argument mode '{value}'{did_you_mean(str(value), modes)}")
    return cast("Mode", value)
