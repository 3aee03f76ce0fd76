"""How a value breaks a JSON schema: the keywords of draft 2020-12, each charged for its work before it does it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from heapq import nsmallest
from math import isfinite
from typing import Any, cast

from vivavoce import safe_regex
from vivavoce.comparing.json_values import as_decimal, is_number, json_key, same_json
from vivavoce.errors import GraderFault
from vivavoce.models.schema_texts import FORMATS
from vivavoce.safe_regex import Expression
from vivavoce.work_time import counted_work

MAX_STEPS = 200_000
"""Steps of one check: a keyword, an empty schema, or a mistake is one each.

A keyword takes more steps for the length of the list, object, or text that it reads.
"""

MAX_REFERENCES = 100
"""References that are followed one inside another."""

_ITEMS_PER_STEP = 16
_COMPARED_VALUES_PER_STEP = 4
_CHARS_PER_STEP = 1_000
_FORMAT_CHARS_PER_STEP = 100
_DIGITS_PER_STEP = 100
_BITS_PER_DIGIT = 3
_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 500
_MAX_SHOWN_CHARS = 500
_MAX_LINE_CHARS = 300
_MAX_SHOWN_BRANCHES = 3
_PLAIN_KEY = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*\n?\Z")

_Path = tuple[str | int, ...]
_Object = dict[str, Any]
_Array = list[Any]


@dataclass(frozen=True, slots=True)
class Program:
    """A schema that has been read.

    `targets` has the schema of each reference by its text, `expressions` that of each pattern.
    """

    root: Any
    targets: Mapping[str, Any]
    expressions: Mapping[str, Expression]
    has_unevaluated: bool


@dataclass(frozen=True, slots=True)
class Mistake:
    """One way in which a value breaks a schema; `context` has those of the branches of `anyOf` and `oneOf`."""

    path: _Path
    message: str
    keyword: str = ""
    has_right_type: bool = False
    context: Sequence[Mistake] = ()

    @property
    def rank(self) -> tuple[Any, ...]:
        """Return what the most telling mistake has most of: near the root, early, and by a keyword without branches."""
        path = [part[:_MAX_SHOWN_CHARS] if isinstance(part, str) else part for part in self.path]
        return -len(path), path, self.keyword not in ("anyOf", "oneOf"), not self.has_right_type

    @property
    def line(self) -> str:
        """Return where it is and what is wrong, cut where nobody reads on."""
        parts = ["$"]
        for part in self.path:
            if isinstance(part, int):
                parts.append(f"[{part}]")
            elif _PLAIN_KEY.match(part):
                parts.append(f".{part}")
            else:
                escaped = part.replace("\\", "\\\\").replace("'", r"\'")
                parts.append(f"['{escaped}']")
        line = f"{''.join(parts)}: {self.message}"
        return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…"


@dataclass(slots=True)
class _Result:
    """What a schema says about a value, and which keys and items of it were evaluated."""

    mistakes: list[Mistake] = field(default_factory=list[Mistake])
    keys: set[str] = field(default_factory=set[str])
    items: set[int] = field(default_factory=set[int])


def best_mistake(program: Program, value: object) -> Mistake | None:
    """Return the most telling mistake of a value, None where it matches the schema.

    Raises:
        GraderFault: the check goes beyond a limit, or nests deeper than Python can call.
    """
    try:
        with counted_work() as check_time:
            mistakes = _Check(program, check_time).apply(program.root, value, ()).mistakes
            return _best(mistakes)
    except RecursionError as error:
        raise _too_many_references() from error


def _best(mistakes: Sequence[Mistake]) -> Mistake | None:
    best = max(mistakes, key=lambda mistake: mistake.rank, default=None)
    while best is not None and best.context:
        deepest = nsmallest(2, best.context, key=lambda mistake: mistake.rank)
        if len(deepest) == 2 and deepest[0].rank == deepest[1].rank:
            return best
        best = deepest[0]
    return best


def _too_many_references() -> GraderFault:
    return GraderFault(
        f"the JSON schema follows more than {MAX_REFERENCES} references one inside another", kind="limit"
    )


class _Check:
    """One check in progress, with what is left for it."""

    def __init__(self, program: Program, check_time: Callable[[], None]) -> None:
        self.program = program
        self._check_time = check_time
        self._steps = 0
        self._next_look = 0
        self._references = 0
        self._search_seconds = 0.0
        self._plans: dict[int, list[tuple[str, Any]]] = {}
        self._sizes: dict[int, tuple[object, int]] = {}  # the object stays, so that no other gets its id
        self._names: dict[int, int] = {}
        self._choices: dict[int, tuple[frozenset[str], _Array]] = {}

    def take(self, steps: int) -> None:
        """Charge for work that is about to be done.

        Raises:
            GraderFault: the check takes too many steps, or the request too much time.
        """
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise GraderFault(f"the JSON schema takes more than {MAX_STEPS:,} steps on this value", kind="limit")
        if self._steps >= self._next_look:
            self._next_look = self._steps + _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK
            self._check_time()

    def apply(self, schema: Any, value: Any, path: _Path) -> _Result:
        """Return what a schema says about a value."""
        result = _Result()
        if isinstance(schema, bool):
            self.take(1)
            if not schema:
                self._report(result, path, "", f"False schema does not allow {show(value)}", False)
            return result
        plan = self._plan(schema)
        self.take(len(plan) or 1)
        for name, keyword in plan:
            for mistake in keyword(self, schema, value, path, result):
                if isinstance(mistake, Mistake):
                    result.mistakes.append(mistake)
                else:
                    has_right_type = "type" in schema and _is_of(value, schema["type"])
                    self._report(result, path, name, mistake, has_right_type)
        return result

    def _report(self, result: _Result, path: _Path, name: str, message: str, has_right_type: bool) -> None:
        self.take(1)
        result.mistakes.append(Mistake(path, message, name, has_right_type))

    def _plan(self, schema: _Object) -> list[tuple[str, Any]]:
        """Return the keywords of a schema that say something; those about what is left come last."""
        plan = self._plans.get(id(schema))
        if plan is None:
            names = sorted((name for name in schema if name in KEYWORDS), key=lambda name: name in _LAST)
            plan = self._plans[id(schema)] = [(name, KEYWORDS[name]) for name in names]
        return plan

    def matches(self, schema: Any, value: Any, path: _Path, result: _Result) -> bool:
        """Return whether a value matches a schema; then `result` has what that evaluated, too."""
        inner = self.apply(schema, value, path)
        if not inner.mistakes:
            self.add_evaluated(result, inner)
        return not inner.mistakes

    def inside(self, schema: Any, value: Any, path: _Path, result: _Result) -> list[Mistake]:
        """Return the mistakes of the same value under a schema inside this one."""
        inner = self.apply(schema, value, path)
        self.add_evaluated(result, inner)
        return inner.mistakes

    def add_evaluated(self, result: _Result, inner: _Result) -> None:
        """Count what a schema inside has evaluated as evaluated."""
        if self.program.has_unevaluated and (inner.keys or inner.items):
            self.take((len(inner.keys) + len(inner.items)) // _ITEMS_PER_STEP)
            result.keys |= inner.keys
            result.items |= inner.items

    def evaluate_keys(self, result: _Result, keys: Iterable[str]) -> None:
        """Record that keys of an object are evaluated."""
        if self.program.has_unevaluated:
            result.keys.update(keys)

    def evaluate_items(self, result: _Result, indexes: Iterable[int]) -> None:
        """Record that items of a list are evaluated."""
        if self.program.has_unevaluated:
            result.items.update(indexes)

    @contextmanager
    def reference(self) -> Generator[None]:
        """Follow a reference, with a limit on references inside references."""
        self._references += 1
        if self._references > MAX_REFERENCES:
            raise _too_many_references()
        try:
            yield
        finally:
            self._references -= 1

    def matches_pattern(self, pattern: str, text: str) -> bool:
        """Return whether a pattern matches somewhere in a text.

        Raises:
            GraderFault: this search, or all searches of the check together, take too long.
        """
        self.take(1 + len(text) // _CHARS_PER_STEP)
        began = time.perf_counter()
        matches = self.program.expressions[pattern].found_in(text)
        self._search_seconds += time.perf_counter() - began
        if self._search_seconds > safe_regex.SECONDS:
            problem = f"the patterns of the JSON schema take longer than {safe_regex.SECONDS:g} s"
            raise GraderFault(problem, kind="timeout")
        return matches

    def matching_keys(self, patterns: Iterable[str], value: _Object) -> Iterator[str]:
        """Yield the keys that match one of several patterns."""
        for key in value:
            if any(self.matches_pattern(pattern, key) for pattern in patterns):
                yield key

    def take_for_comparison(self, *values: Any) -> None:
        """Charge for a comparison of whole values, by all that is inside them."""
        self.take(sum(map(self._size, values)) // _COMPARED_VALUES_PER_STEP)

    def take_for_names(self, names: _Object | _Array) -> None:
        """Charge for looking up names of a schema in an object."""
        known = self._names.get(id(names))
        if known is None:
            known = self._names[id(names)] = sum(map(self._size, names))
        self.take(known // _ITEMS_PER_STEP)

    def are_same(self, value: Any, expected: Any) -> bool:
        """Return whether a value is the same as a value of the schema."""
        if type(value) is not type(expected) and not (is_number(value) and is_number(expected)):
            return False
        if isinstance(expected, Sized) and len(expected) != len(value):
            return False
        self.take_for_comparison(value, expected)
        return same_json(value, expected)

    def is_in(self, value: Any, choices: _Array) -> bool:
        """Return whether a value is the same as a value in a list of the schema."""
        known = self._choices.get(id(choices))
        if known is None:
            self.take_for_comparison(choices)
            containers = [choice for choice in choices if _is_container(choice)]
            keys = frozenset(json_key(choice) for choice in choices if not _is_container(choice))
            known = self._choices[id(choices)] = keys, containers
        if _is_container(value):
            self.take(len(known[1]) // _ITEMS_PER_STEP)
            return any(self.are_same(value, choice) for choice in known[1])
        self.take_for_comparison(value)
        return json_key(value) in known[0]

    def _size(self, value: Any) -> int:
        """Return the values inside a value, at all levels, where a long text or number is several; counted once."""
        if isinstance(value, str):
            return 1 + _COMPARED_VALUES_PER_STEP * len(value) // _CHARS_PER_STEP
        if not isinstance(value, dict | list):
            return 1 + _COMPARED_VALUES_PER_STEP * _digits(value) // _DIGITS_PER_STEP
        container = cast("_Object | _Array", value)
        known = self._sizes.get(id(container))
        if known is not None:
            return known[1]
        if isinstance(container, dict):
            size = 1 + sum(map(self._size, container)) + sum(map(self._size, container.values()))
        else:
            size = 1 + sum(map(self._size, container))
        self._sizes[id(container)] = container, size
        return size


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


def _digits(value: Any) -> int:
    return value.bit_length() // _BITS_PER_DIGIT if isinstance(value, int) else 0


def show(value: Any) -> str:
    """Return a value as Python writes it, cut where nobody reads on: a value may have millions of characters."""
    parts: list[str] = []
    left = _MAX_SHOWN_CHARS
    for part in _json_pieces(value):
        parts.append(part)
        left -= len(part)
        if left < 0:
            return "".join(parts)[:_MAX_SHOWN_CHARS]
    return "".join(parts)


def _json_pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for i, (key, item) in enumerate(cast("_Object", value).items()):
            yield f"{', ' * (i > 0)}{_cut(key)}: "
            yield from _json_pieces(item)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for i, item in enumerate(cast("_Array", value)):
            yield ", " * (i > 0)
            yield from _json_pieces(item)
        yield "]"
    else:
        yield _cut(value)


def _cut(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:_MAX_SHOWN_CHARS])
    if _digits(value) > _MAX_SHOWN_CHARS:
        return f"a number with about {value.bit_length() * 3 // 10:,} digits"
    return repr(value)


def _extras(names: Sequence[Any]) -> str:
    shown: list[str] = []
    left = _MAX_SHOWN_CHARS
    for name in names:
        shown.append(show(name))
        left -= len(shown[-1])
        if left < 0:
            break
    return f"({', '.join(shown)} {'was' if len(names) == 1 else 'were'} unexpected)"


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or _is_whole(value)),
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _is_whole(value: float | Decimal) -> bool:
    return isfinite(value) and value == value.__trunc__()


def _is_of(value: Any, names: str | list[str]) -> bool:
    return any(_TYPES[name](value) for name in ([names] if isinstance(names, str) else names))


_Mistakes = Iterable[Mistake | str]


def _type(_check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    names = schema["type"]
    if not _is_of(value, names):
        shown = ", ".join(map(repr, [names] if isinstance(names, str) else names))
        yield f"{show(value)} is not of type {shown}"


def _const(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if not check.are_same(value, schema["const"]):
        yield f"{show(schema['const'])} was expected"


def _enum(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if not check.is_in(value, schema["enum"]):
        yield f"{show(value)} is not one of {show(schema['enum'])}"


def _ordered(
    name: str, breaks: Callable[[Any, Any], bool], words: str
) -> Callable[[_Check, _Object, Any, _Path, _Result], _Mistakes]:
    def compare(_check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
        if is_number(value) and breaks(value, schema[name]):
            yield f"{show(value)} is {words} of {show(schema[name])}"

    return compare


def _multiple_of(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    divisor = schema["multipleOf"]
    if is_number(value):
        check.take((_digits(value) + _digits(divisor)) // _DIGITS_PER_STEP)
        is_finite = isinstance(value, int) or isfinite(value)
        if not is_finite or (Fraction(as_decimal(value)) / Fraction(as_decimal(divisor))).denominator != 1:
            yield f"{show(value)} is not a multiple of {show(divisor)}"


def _sized(
    name: str, kind: type, breaks: Callable[[Any, Any], bool], words: Callable[[Any], str]
) -> Callable[[_Check, _Object, Any, _Path, _Result], _Mistakes]:
    def compare(_check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
        if isinstance(value, kind) and breaks(len(cast("_Array", value)), schema[name]):
            yield f"{show(value)} {words(schema[name])}"

    return compare


def _below(a: Any, b: Any) -> bool:
    return a < b


def _above(a: Any, b: Any) -> bool:
    return a > b


def _too_short(limit: Any) -> str:
    return "should be non-empty" if limit == 1 else "is too short"


def _too_long(limit: Any) -> str:
    return "is expected to be empty" if limit == 0 else "is too long"


def _pattern(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if isinstance(value, str) and not check.matches_pattern(schema["pattern"], value):
        yield f"{show(value)} does not match {show(schema['pattern'])}"


def _format(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    accepts = FORMATS.get(schema["format"])
    if accepts is not None and isinstance(value, str):
        check.take(len(value) // _FORMAT_CHARS_PER_STEP)
        if not accepts(value):
            yield f"{show(value)} is not a valid {schema['format']}"


def _unique_items(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if schema["uniqueItems"] and isinstance(value, list):
        items = cast("_Array", value)
        check.take_for_comparison(items)
        places: dict[str, int] = {}
        for i, item in enumerate(items):
            earlier = places.setdefault(json_key(item), i)
            if earlier != i:
                yield f"items {earlier} and {i} are the same: {show(item)[:100]}"
                return


def _required(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        check.take_for_names(schema["required"])
        for name in schema["required"]:
            if name not in value:
                yield f"{show(name)} is a required property"


def _dependent_required(check: _Check, schema: _Object, value: Any, _path: _Path, _result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        check.take_for_names(schema["dependentRequired"])
        for name, others in schema["dependentRequired"].items():
            if name in value:
                check.take(1)
                check.take_for_names(others)
                for other in others:
                    if other not in value:
                        yield f"{show(other)} is a dependency of {show(name)}"


def _dependent_schemas(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        check.take_for_names(schema["dependentSchemas"])
        for name, part in schema["dependentSchemas"].items():
            if name in value:
                yield from check.inside(part, cast("_Object", value), path, result)


def _properties(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        declared = cast("_Object", schema["properties"])
        check.take_for_names(declared)
        for name, part in declared.items():
            if name in value:
                yield from check.apply(part, value[name], (*path, name)).mistakes
        check.evaluate_keys(result, declared.keys() & cast("_Object", value).keys())


def _pattern_properties(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        for pattern, part in schema["patternProperties"].items():
            for key in check.matching_keys([pattern], cast("_Object", value)):
                yield from check.apply(part, value[key], (*path, key)).mistakes
                check.evaluate_keys(result, [key])


def _additional_properties(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if not isinstance(value, dict):
        return
    fields = cast("_Object", value)
    check.take(len(fields) // _ITEMS_PER_STEP)
    patterns = schema.get("patternProperties")
    matching = set(check.matching_keys(patterns, fields)) if patterns else ()
    declared = schema.get("properties", ())
    extras = [key for key in fields if key not in declared and key not in matching]
    part = schema["additionalProperties"]
    if part is False:
        if extras:
            yield f"Additional properties are not allowed {_extras(_in_order(extras))}"
    else:
        for key in extras:
            yield from check.apply(part, fields[key], (*path, key)).mistakes
    check.evaluate_keys(result, extras)


def _in_order(names: Sequence[str]) -> Sequence[str]:
    return sorted(names, key=lambda name: name[:_MAX_SHOWN_CHARS])


def _property_names(check: _Check, schema: _Object, value: Any, path: _Path, _result: _Result) -> _Mistakes:
    if isinstance(value, dict):
        for name in cast("_Object", value):
            yield from check.apply(schema["propertyNames"], name, path).mistakes


def _unevaluated_properties(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if not isinstance(value, dict):
        return
    fields = cast("_Object", value)
    check.take(len(fields) // _ITEMS_PER_STEP)
    rest = [key for key in fields if key not in result.keys]
    part = schema["unevaluatedProperties"]
    if part is False:
        if rest:
            yield f"Unevaluated properties are not allowed {_extras(_in_order(rest))}"
    else:
        for key in rest:
            yield from check.apply(part, fields[key], (*path, key)).mistakes
    check.evaluate_keys(result, rest)


def _prefix_items(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if isinstance(value, list):
        pairs = list(zip(schema["prefixItems"], cast("_Array", value), strict=False))
        for i, (part, item) in enumerate(pairs):
            yield from check.apply(part, item, (*path, i)).mistakes
        check.evaluate_items(result, range(len(pairs)))


def _items(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if not isinstance(value, list):
        return
    items, part = cast("_Array", value), schema["items"]
    check.take(len(items) // _ITEMS_PER_STEP)
    prefix = len(schema.get("prefixItems", ()))
    if part is False:
        if extra := max(len(items) - prefix, 0):
            noun = "item" if prefix == 1 else "items"
            rest = show(items[prefix] if extra == 1 else items[prefix:])
            yield f"Expected at most {prefix} {noun} but found {extra} extra: {rest}"
    else:
        for i in range(prefix, len(items)):
            yield from check.apply(part, items[i], (*path, i)).mistakes
    check.evaluate_items(result, range(len(items)))


def _contains(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if not isinstance(value, list):
        return
    items = cast("_Array", value)
    check.take(len(items) // _ITEMS_PER_STEP)
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(items))
    matches = [i for i, item in enumerate(items) if not check.apply(schema["contains"], item, path).mistakes]
    check.evaluate_items(result, matches)
    if len(matches) > most:
        yield f"Too many items match the given schema (expected at most {show(most)})"
    elif len(matches) < least:
        if matches:
            counts = f"expected at least {show(least)} but only {len(matches)} matched"
            yield f"Too few items match the given schema ({counts})"
        else:
            yield f"{show(items)} does not contain items matching the given schema"


def _unevaluated_items(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    if not isinstance(value, list):
        return
    items = cast("_Array", value)
    check.take(len(items) // _ITEMS_PER_STEP)
    rest = [i for i in range(len(items)) if i not in result.items]
    part = schema["unevaluatedItems"]
    if part is False:
        if rest:
            yield f"Unevaluated items are not allowed {_extras([items[i] for i in rest])}"
    else:
        for i in rest:
            yield from check.apply(part, items[i], (*path, i)).mistakes
    check.evaluate_items(result, rest)


def _all_of(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    for part in schema["allOf"]:
        yield from check.inside(part, value, path, result)


def _any_of(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    mistakes, fits = _branches(check, schema["anyOf"], value, path, result, 1 - check.program.has_unevaluated)
    if not fits:
        yield _no_branch("anyOf", check, schema, value, path, mistakes)


def _one_of(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    mistakes, fits = _branches(check, schema["oneOf"], value, path, result)
    if not fits:
        yield _no_branch("oneOf", check, schema, value, path, mistakes)
    elif len(fits) > 1:
        shown = ", ".join(map(show, fits[:_MAX_SHOWN_BRANCHES]))
        yield f"{show(value)} is valid under each of {shown}{', …' * (len(fits) > _MAX_SHOWN_BRANCHES)}"


def _branches(
    check: _Check, parts: Sequence[Any], value: Any, path: _Path, result: _Result, most: int = 0
) -> tuple[list[Mistake], list[Any]]:
    """Return the mistakes of the branches that a value breaks, and the branches that it matches; `most` 0 is all."""
    mistakes: list[Mistake] = []
    fits: list[Any] = []
    for part in parts:
        inner = check.apply(part, value, path)
        if inner.mistakes:
            mistakes += inner.mistakes
        else:
            fits.append(part)
            check.add_evaluated(result, inner)
            if len(fits) == most:
                break
    return mistakes, fits


def _no_branch(
    keyword: str, check: _Check, schema: _Object, value: Any, path: _Path, mistakes: Sequence[Mistake]
) -> Mistake:
    check.take(1)
    message = f"{show(value)} is not valid under any of the given schemas"
    return Mistake(path, message, keyword, "type" in schema and _is_of(value, schema["type"]), mistakes)


def _not(check: _Check, schema: _Object, value: Any, path: _Path, _result: _Result) -> _Mistakes:
    if not check.apply(schema["not"], value, path).mistakes:
        yield f"{show(value)} should not be valid under {show(schema['not'])}"


def _if(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
    branch = "then" if check.matches(schema["if"], value, path, result) else "else"
    if branch in schema:
        yield from check.inside(schema[branch], value, path, result)


def _reference(name: str) -> Callable[[_Check, _Object, Any, _Path, _Result], _Mistakes]:
    def follow(check: _Check, schema: _Object, value: Any, path: _Path, result: _Result) -> _Mistakes:
        with check.reference():
            return check.inside(check.program.targets[schema[name]], value, path, result)

    return follow


_LAST = ("unevaluatedItems", "unevaluatedProperties")

KEYWORDS: Mapping[str, Callable[[_Check, _Object, Any, _Path, _Result], _Mistakes]] = {
    "$dynamicRef": _reference("$dynamicRef"),  # without schemas that have an address of their own, the same as $ref
    "$ref": _reference("$ref"),
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "enum": _enum,
    "exclusiveMaximum": _ordered("exclusiveMaximum", lambda a, b: a >= b, "greater than or equal to the maximum"),
    "exclusiveMinimum": _ordered("exclusiveMinimum", lambda a, b: a <= b, "less than or equal to the minimum"),
    "format": _format,
    "if": _if,
    "items": _items,
    "maxItems": _sized("maxItems", list, _above, _too_long),
    "maxLength": _sized("maxLength", str, _above, _too_long),
    "maxProperties": _sized(
        "maxProperties", dict, _above, lambda n: "is expected to be empty" if n == 0 else "has too many properties"
    ),
    "maximum": _ordered("maximum", _above, "greater than the maximum"),
    "minItems": _sized("minItems", list, _below, _too_short),
    "minLength": _sized("minLength", str, _below, _too_short),
    "minProperties": _sized(
        "minProperties", dict, _below, lambda n: "should be non-empty" if n == 1 else "does not have enough properties"
    ),
    "minimum": _ordered("minimum", _below, "less than the minimum"),
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}
"""What each keyword says; all others describe, or belong to the keyword next to them."""
