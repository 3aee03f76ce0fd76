"""Which arguments of a tool call count, and how each is compared with the reference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self, cast, get_args

from pydantic import JsonValue

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.exact.matchers import EXACT, SUBSET, Matcher, read_matcher
from vivavoce.metrics.exact.paths import Steps, at_path, may_have, steps_to, without

Arguments = Mapping[str, JsonValue]
Mode = Literal["exact", "subset", "ignore"]


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """How the arguments of a call are compared with those of the reference call.

    `named` arguments have their own matcher and `ignored` ones never count. For all others, `exact` demands equal
    values on both sides, `subset` demands the arguments of the reference, at every depth, and leaves further ones free,
    and `ignore` accepts anything. A name is a path: `meta.uid` is the argument of that name, or `uid` in the argument
    `meta`; so are the names of expected arguments. A tool in `tools` has a rule of its own, which replaces this one.
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
        for part in self._parts(actual, expected):
            verdicts[part.argument] = part.matches and verdicts.get(part.argument, True)
        return verdicts

    def complaints(self, actual: Arguments, expected: Arguments) -> list[str]:
        """Return a line for each part that does not match; within a nested value, for the first difference."""
        return [part.complaint for part in self._parts(actual, expected) if not part.matches]

    @property
    def has_paths(self) -> bool:
        """Whether it compares any argument in a way of its own."""
        return any(rule.named or rule.ignored for rule in (self, *self.tools.values()))

    def unknown_paths(self, calls: Iterable[tuple[str, Arguments]]) -> list[str]:
        """Return the paths that can compare nothing, as none of the expected calls, names with arguments, has them.

        What is ignored, and what a regular expression checks, may be in the actual call alone: it needs only the object
        or list around it. A rule without any expected call that it applies to has no unknown paths.
        """
        pending: dict[str, list[str]] = {}
        for name, arguments in calls:
            tool = name if name in self.tools else ""
            rule = self.for_tool(name)
            paths = pending.get(tool, [*rule.named, *rule.ignored])
            pending[tool] = [path for path in paths if not rule._may_compare(path, dict(arguments))]
        return [f"tools.{tool}.{path}" if tool else path for tool, paths in pending.items() for path in paths]

    def _may_compare(self, path: str, expected: dict[str, JsonValue]) -> bool:
        if path in self.ignored or self.named[path].alone:
            return may_have(expected, path)
        return steps_to(expected, path) is not None

    def _parts(self, actual: Arguments, expected: Arguments) -> Iterator[_Part]:
        """Yield what is compared: each argument, and first each value inside of one that is compared in its own way."""
        left, right = dict(actual), dict(expected)
        for path in self._inner_paths(left, right):
            made, wanted = steps_to(left, path), steps_to(right, path)
            matcher = self._matcher(path, in_reference=wanted is not None)
            if made is None and wanted is None:
                continue
            if matcher is not None:
                argument = str((wanted or made or (path,))[0])
                yield _Part(argument, path, matcher, at_path(left, path), at_path(right, path))
            left, right = (
                left if made is None else _pruned(left, made, right),
                right if wanted is None else _pruned(right, wanted, left),
            )
        for name in {**right, **left}:
            matcher = self._matcher(name, in_reference=name in right)
            if matcher is not None:
                found, wanted = (left[name],) if name in left else None, (right[name],) if name in right else None
                yield _Part(name, name, matcher, found, wanted)

    def _inner_paths(self, actual: Arguments, expected: Arguments) -> Iterator[str]:
        """Yield the paths with dots that are not keys of both: those of this rule, and those that are expected."""
        paths = dict.fromkeys((*self.named, *self.ignored, *expected))
        yield from (path for path in paths if "." in path and not (path in actual and path in expected))

    def _matcher(self, name: str, *, in_reference: bool) -> Matcher | None:
        """Return how an argument is compared, None when it does not count."""
        if name in self.ignored:
            return None
        matcher = self.named.get(name)
        if self.others == "ignore":
            return matcher
        matcher = matcher or (SUBSET if self.others == "subset" else EXACT)
        return matcher if in_reference or matcher.alone or self.others == "exact" else None


def _pruned(arguments: dict[str, JsonValue], steps: Steps, other: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", without(arguments, steps, other))


class _Part(NamedTuple):
    """What is compared: a value of the actual and one of the expected call, each None where it is not there.

    `argument` is the argument that it belongs to, `path` its own place.
    """

    argument: str
    path: str
    matcher: Matcher
    actual: tuple[JsonValue] | None
    expected: tuple[JsonValue] | None

    @property
    def matches(self) -> bool:
        """Whether the actual value is as expected."""
        if self.actual is None or (self.expected is None and not self.matcher.alone):
            return False
        return self.matcher.agrees(self.actual[0], None if self.expected is None else self.expected[0])

    @property
    def complaint(self) -> str:
        """What does not match, in words."""
        expected = None if self.expected is None else self.expected[0]
        if self.actual is None:
            return f"argument {show(self.path)}: wanted {self.matcher.describe(show(expected))}, got nothing"
        if self.expected is None and not self.matcher.alone:
            return f"argument {show(self.path)}: not wanted, got {show(self.actual[0])}"
        value, inner = self.actual[0], ""
        if self.matcher in (EXACT, SUBSET):
            inner, value, expected = _first_difference(value, expected, self.matcher)
        return f"argument {show(self.path)}{inner}: wanted {self.matcher.describe(show(expected))}, got {show(value)}"


def _first_difference(actual: JsonValue, expected: JsonValue, matcher: Matcher) -> tuple[str, JsonValue, JsonValue]:
    """Return the path to the first place where two values do not match, and what is there in each."""
    path = ""
    while inner := _difference_within(actual, expected, matcher):
        path, actual, expected = path + inner[0], inner[1], inner[2]
    return path, actual, expected


def _difference_within(
    actual: JsonValue, expected: JsonValue, matcher: Matcher
) -> tuple[str, JsonValue, JsonValue] | None:
    """Return the first item that does not match, None where the containers themselves cannot match."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        fits = expected.keys() <= actual.keys() if matcher == SUBSET else actual.keys() == expected.keys()
        items = [(f"[{show(key)}]", actual[key], expected[key]) for key in expected] if fits else []
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        items = [(f"[{i}]", a, w) for i, (a, w) in enumerate(zip(actual, expected, strict=True))]
    else:
        items = []
    return next((item for item in items if not matcher.agrees(item[1], item[2])), None)


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
