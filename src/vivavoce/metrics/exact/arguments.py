"""Which arguments of a tool call count, and how each is compared with the expected value.

The set is closed. A value of another type than a matcher is made for is compared exactly, so that every matcher but
`regex` accepts a value that equals the expected one.

A word of a path is a key of an object or the number of an item, from 0, in a list. A key may have dots in it: a longer
key counts before a shorter one, so that `meta.id` is the key `"meta.id"` where there is one, and else `id` in `meta`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, cast, get_args

from pydantic import JsonValue

from vivavoce.comparing.json_values import json_key, same_json
from vivavoce.comparing.numbers import exact, is_within
from vivavoce.comparing.text import same_text
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.lazy_names import lazy
from vivavoce.safe_regex import expression, telling_expression


class Matcher(Protocol):
    """Compares one argument; `alone` says that it needs no expected value."""

    alone: ClassVar[bool]

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Say whether the actual value matches."""
        ...

    def describe(self, expected: str) -> str:
        """Return what is expected, in words; `expected` is the expected value as text."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """`exact`: the same value of the same type."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare the values as JSON."""
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the value."""
        return expected


@dataclass(frozen=True, slots=True)
class Subset:
    """`subset`: an object with at least the expected keys, at every depth; whatever else it has is free.

    A list has as many items as expected, each compared likewise; other values are compared exactly.
    """

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Look for each expected key."""
        return includes(actual, expected, same_json)

    def describe(self, expected: str) -> str:
        """Say the value."""
        return expected


def includes(actual: JsonValue, expected: JsonValue, same: Callable[[JsonValue, JsonValue], bool]) -> bool:
    """Say whether a value has all that is expected, at every depth; `same` compares what is not an object or list."""
    pending = [(actual, expected)]  # a list instead of recursion, as in `same_json`
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if not b.keys() <= a.keys():
                return False
            pending += [(a[key], value) for key, value in b.items()]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif not same(a, b):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Casefold:
    """`casefold`: the same text in any case and encoding."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare texts in any case and encoding."""
        if isinstance(actual, str) and isinstance(expected, str):
            return same_text(actual, expected, ignore_case=True)
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the value and that case is free."""
        return f"{expected} in any case"


@dataclass(frozen=True, slots=True)
class Unordered:
    """`unordered`: a list with the same items, as often, in any order; the items themselves are compared exactly."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare lists as multisets."""
        if not (isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected)):
            return same_json(actual, expected)
        return Counter(map(json_key, actual)) == Counter(map(json_key, expected))

    def describe(self, expected: str) -> str:
        """Say the list and that its order is free."""
        return f"{expected} in any order"


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """`{fuzzy: 0.8}`: a text at least that similar.

    The similarity is 1 − (insertions + deletions) / (length of both), between 0 and 1; case counts.
    """

    at_least: float
    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare texts by their similarity."""
        if isinstance(actual, str) and isinstance(expected, str):
            return lazy("vivavoce.comparing.similarity:similarity")(actual, expected) >= self.at_least
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the text and how close it must be."""
        return f"text at least {self.at_least:g} similar to {expected}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`{tolerance: 0.01}`: a number at most that far away, counted in decimals, so that 1.1 is 0.1 away from 1."""

    amount: Decimal
    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare numbers by their distance."""
        if isinstance(actual, int | float) and isinstance(expected, int | float) and _is_number(actual, expected):
            return is_within(actual, expected, self.amount)
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the number and how close it must be."""
        return f"{expected} ± {self.amount}"


@dataclass(frozen=True, slots=True)
class Regex:
    """`{regex: "…"}`: a text that matches as a whole, whatever the reference says.

    It is demanded where the reference has the argument at all, and checked wherever the actual call has it.
    """

    pattern: str
    alone: ClassVar[bool] = True

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Match the whole of the actual text."""
        return isinstance(actual, str) and expression(self.pattern).fits(actual)

    def describe(self, expected: str) -> str:
        """Say the pattern."""
        return f"text matching /{self.pattern}/"


EXACT = Exact()
SUBSET = Subset()
_plain: Mapping[str, Matcher] = {"exact": EXACT, "subset": SUBSET, "casefold": Casefold(), "unordered": Unordered()}


def read_matcher(spec: object, where: str) -> Matcher:
    """Read `exact`, `subset`, `casefold`, `unordered`, `{fuzzy: 0.8}`, `{tolerance: 0.01}` or `{regex: "…"}`.

    `where` is put before the text of an error.

    Raises:
        UsageError: no such matcher, or its value is out of range.
    """
    if isinstance(spec, str):
        if spec in _plain:
            return _plain[spec]
        if spec in _with_value:
            raise UsageError(f"{where}: {spec} needs a value, as in {{{spec}: …}}")
        raise UsageError(f"{where}: no matcher '{spec}'{did_you_mean(spec, ['ignore', *_plain, *_with_value])}")
    if not isinstance(spec, Mapping) or len(cast("Mapping[object, object]", spec)) != 1:
        raise UsageError(f"{where}: a matcher is a name, or one name with its value, got {spec!r}")
    [(name, value)] = cast("Mapping[object, object]", spec).items()
    if not isinstance(name, str) or name not in _with_value:
        raise UsageError(f"{where}: no matcher '{name}' with a value{did_you_mean(str(name), _with_value)}")
    return _with_value[name](value, f"{where}.{name}")


def _read_fuzzy(value: object, where: str) -> Matcher:
    if not (isinstance(value, int | float) and _is_number(value) and 0 < value <= 1):
        raise UsageError(f"{where}: a similarity is above 0 and at most 1, got {value!r}")
    return Fuzzy(float(value))


def _read_tolerance(value: object, where: str) -> Matcher:
    if not (isinstance(value, int | float) and _is_number(value) and 0 <= value < float("inf")):
        raise UsageError(f"{where}: a tolerance is a number of at least 0, got {value!r}")
    return Tolerance(exact(value))


def _read_regex(value: object, where: str) -> Matcher:
    if not isinstance(value, str):
        raise UsageError(f"{where}: a regular expression is text, got {value!r}")
    try:
        telling_expression(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return Regex(value)


_with_value: Mapping[str, Callable[[object, str], Matcher]] = {
    "fuzzy": _read_fuzzy,
    "tolerance": _read_tolerance,
    "regex": _read_regex,
}


def _is_number(*values: object) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


Steps = tuple[str | int, ...]
"""The keys and numbers that lead to a place in a value."""


def at_path(value: JsonValue, path: str) -> tuple[JsonValue] | None:
    """Return what is at a path, alone in a tuple; None where the path leads nowhere."""
    end = next((place for place in _places_on(value, path) if place.end == len(path)), None)
    return None if end is None else (end.value,)


def steps_to(value: JsonValue, path: str) -> Steps | None:
    """Return the steps that a path takes in a value, None where it leads nowhere."""
    end = next((place for place in _places_on(value, path) if place.end == len(path)), None)
    return None if end is None else end.steps


def may_have(value: JsonValue, path: str) -> bool:
    """Say whether there could be something at a path: the object or list that it would be in is there."""
    parents, _, word = path.rpartition(".")
    if not parents:
        return isinstance(value, dict)
    nearest = max(_places_on(value, parents), key=lambda place: place.end)  # the first of those that are as near
    if nearest.end < 0:
        return False
    return isinstance(nearest.value, dict) or (isinstance(nearest.value, list) and _is_index(word))


def without(value: JsonValue, steps: Steps, other: JsonValue) -> None:
    """Take what some steps lead to out of a value.

    An object that is empty then is taken out as well where `other`, the value it is compared with, has none there. An
    item of a list is replaced by null, so that the items after it keep their numbers.
    """
    holders: list[JsonValue] = [value]
    counterparts: list[tuple[JsonValue] | None] = [(other,)]
    for step in steps[:-1]:
        [inner] = cast("tuple[JsonValue]", _item(holders[-1], step))
        holders.append(inner)
        counterpart = counterparts[-1]
        counterparts.append(None if counterpart is None else _item(counterpart[0], step))
    for place in reversed(range(len(steps))):
        holder, step = holders[place], steps[place]
        is_last = place == len(steps) - 1
        if isinstance(holder, list):
            if is_last:
                holder[cast("int", step)] = None
        elif isinstance(holder, dict) and (is_last or (holders[place + 1] == {} and counterparts[place + 1] is None)):
            del holder[cast("str", step)]


def _item(value: JsonValue, step: str | int) -> tuple[JsonValue] | None:
    if isinstance(value, dict):
        return (value[step],) if isinstance(step, str) and step in value else None
    if isinstance(value, list):
        return (value[step],) if isinstance(step, int) and step < len(value) else None
    return None


class _Place(NamedTuple):
    """A value that a path leads to with the part of it up to `end`, and the last step of the way; -1 at the start."""

    value: JsonValue
    end: int
    step: str | int = ""
    before: _Place | None = None

    @property
    def steps(self) -> Steps:
        steps: list[str | int] = []
        place = self
        while place.before is not None:
            steps.append(place.step)
            place = place.before
        return tuple(reversed(steps))


def _places_on(value: JsonValue, path: str) -> Iterator[_Place]:
    """Yield each place on the ways that a path leads along, longer keys first; the work is that of the value's size."""
    pending = [_Place(value, -1)]
    while pending:
        place = pending.pop()
        yield place
        start = place.end + 1
        if start > len(path):
            continue
        if isinstance(place.value, list):
            word = path[start:].partition(".")[0]
            if _is_index(word) and int(word) < len(place.value):
                pending.append(_Place(place.value[int(word)], start + len(word), int(word), place))
        elif isinstance(place.value, dict):
            keys = _keys_on(place.value, path, start)
            pending += [_Place(place.value[key], start + len(key), key, place) for key in keys]


def _keys_on(value: Mapping[str, JsonValue], path: str, start: int) -> list[str]:
    """Return the keys of an object that are the next words of a path, shorter ones first."""
    if len(value) <= path.count(".", start):
        ends = (key for key in value if path.startswith(key, start) and path[start + len(key) :][:1] in ("", "."))
        return sorted(ends, key=len)
    keys: list[str] = []
    end = path.find(".", start)
    while end >= 0:
        if path[start:end] in value:
            keys.append(path[start:end])
        end = path.find(".", end + 1)
    return [*keys, path[start:]] if path[start:] in value else keys


def _is_index(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10


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

    def parts_of(self, expected: Arguments) -> Iterator[WantedPart]:
        """Yield each value of an expected call that counts, those inside of others that are compared apart first."""
        for part in self._parts({}, expected):
            yield WantedPart(part.path, part.matcher, None if part.expected is None else part.expected[0])

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
        if paths := list(self._inner_paths(left, right)):
            left, right = _copied(left), _copied(right)
        for path in paths:
            made, wanted = steps_to(left, path), steps_to(right, path)
            matcher = self._matcher(path, in_reference=wanted is not None)
            if made is None and wanted is None:
                continue
            if matcher is not None:
                argument = str((wanted or made or (path,))[0])
                found = None if made is None else at_path(left, path)
                yield _Part(argument, path, matcher, found, None if wanted is None else at_path(right, path))
            if made is not None:
                without(left, made, right)
            if wanted is not None:
                without(right, wanted, left)
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


def _copied(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments whose objects and lists can be changed without changing theirs."""
    copy = dict(arguments)
    pending: list[dict[str, JsonValue] | list[JsonValue]] = [copy]
    while pending:
        holder = pending.pop()
        if isinstance(holder, dict):
            holder.update({key: value.copy() for key, value in holder.items() if isinstance(value, dict | list)})
        else:
            holder[:] = [value.copy() if isinstance(value, dict | list) else value for value in holder]
        values = holder.values() if isinstance(holder, dict) else holder
        pending += [value for value in values if isinstance(value, dict | list)]
    return copy


class WantedPart(NamedTuple):
    """A value of an expected call, its path, and how it is compared."""

    path: str
    matcher: Matcher
    wanted: JsonValue


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
