"""JSON Schema, draft 2020-12: how a value breaks a schema, with bounds on what a check may cost.

Schemas come from requests and suites, the values from systems under test and from models. `jsonschema` searches with
the standard library's regular expressions, which cannot be interrupted, so the keywords that search are ours.
`uniqueItems` is ours, too: the library compares each item with each. So is `multipleOf`, which the library computes in
binary fractions, and `format`: the library checks some formats only where other packages are installed. Every
keyword counts its steps.

A short schema can ask for endless work: `allOf` with two references to the next definition, 30 times, is a billion
checks, and a definition that refers to itself never ends. A thread cannot be stopped from outside, so every keyword
counts what it does, and a check that costs too much ends with a fault.

Patterns follow ECMA 262 and are put into the words of the library that searches; the two differ where a text would pass
that the pattern forbids: the dollar is the end only, classes and word edges are about ASCII, and spaces and line ends
have lists of their own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, cast

from vivavoce import expressions
from vivavoce.comparing.json_values import as_decimal, is_number, json_key
from vivavoce.errors import GraderFault, UsageError
from vivavoce.expressions import Expression
from vivavoce.records.score import shorten
from vivavoce.work_time import counted_work

_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = rf"\t\v\f \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff{_LINE_ENDS}"
_OTHER_THAN_SPACES = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff"
)
_SETS = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": _SPACES,
    "S": _OTHER_THAN_SPACES,
}
"""The contents of a class that means the same as an escape."""
_WORD, _NO_WORD = "(?<=[A-Za-z0-9_])", "(?<![A-Za-z0-9_])"
_EDGE = f"{_WORD}(?![A-Za-z0-9_])|{_NO_WORD}(?=[A-Za-z0-9_])"
_OUTSIDE = {"$": r"\Z", ".": f"[^{_LINE_ENDS}]", r"\b": f"(?:{_EDGE})", r"\B": f"(?!{_EDGE})"}
_TOKEN = re.compile(r"\\u\{[0-9A-Fa-f]{1,6}\}|\\k<\w+>|\\.|\[\^\]|\[\]|\[\^?|.", re.DOTALL)


@lru_cache(maxsize=512)
def schema_pattern(text: str) -> Expression:
    """Return the expression of a pattern, made once.

    Raises:
        UsageError: the text is not a regular expression.
    """
    return Expression(_translated(text), shown=text)


def _translated(text: str) -> str:
    parts: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(r"\u{"):
            parts.append(f"\\U{int(token[3:-1], 16):08x}")
        elif len(token) == 2 and token[0] == "\\" and token[1] in _SETS:
            parts.append(_SETS[token[1]] if in_class else f"[{_SETS[token[1]]}]")
        elif in_class:
            parts.append(r"\[" * token.count("[") + token.lstrip("[") if token[0] == "[" else token)
            in_class = not token.endswith("]") or token == r"\]"
        elif token in ("[", "[^"):
            parts.append(token)
            in_class = True
        elif token in ("[]", "[^]"):
            parts.append("(?!)" if token == "[]" else r"[\x00-\U0010ffff]")
        elif token.startswith(r"\k<"):
            parts.append(f"(?P={token[3:-1]})")
        else:
            parts.append(_OUTSIDE.get(token, token))
    return "".join(parts)


MAX_SCHEMA_NODES = 10_000
"""Values in a schema, at all levels."""

MAX_SCHEMA_DEPTH = 100
"""Levels of a schema."""

MAX_STEPS = 200_000
"""Keywords that one check evaluates, and mistakes that they find. A keyword counts once more for 16 items of a list and
1,000 characters of a text, one that looks at each item once more for each, and `unevaluated…` for each pair of 16."""

MAX_REFERENCES = 100
"""References that are followed one inside another."""

_ITEMS_PER_STEP = 16
_CHARS_PER_STEP = 1_000
_VALUES_PER_STEP = 4
_FORMAT_CHARS_PER_STEP = 16
_MAX_MESSAGE_CHARS = 500
_LONG_LIST = 100
_LISTS_OF_NAMES = frozenset(("required", "type"))
_OF_EACH_ITEM = frozenset(
    """
    additionalProperties contains dependentSchemas items patternProperties prefixItems properties propertyNames
    unevaluatedItems unevaluatedProperties
    """.split()  # noqa: SIM905
)
"""Keywords that look at each item of a list or an object."""


@dataclass(slots=True)
class _Budget:
    """What is left for the check in progress."""

    steps: int = MAX_STEPS
    references: int = 0
    pattern_seconds: float = 0.0

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise GraderFault(f"the JSON schema takes more than {MAX_STEPS:,} steps on this value", kind="limit")


_budget: ContextVar[_Budget] = ContextVar("schema_budget")


@contextmanager
def bounded_check() -> Generator[None]:
    """Count the steps of one check from 0.

    Raises:
        GraderFault: the check goes beyond a limit, or nests deeper than Python can call.
    """
    token = _budget.set(_Budget())
    try:
        with counted_work():
            yield
    except RecursionError as error:
        raise _too_many_references() from error
    finally:
        _budget.reset(token)


def _too_many_references() -> GraderFault:
    return GraderFault(
        f"the JSON schema follows more than {MAX_REFERENCES} references one inside another", kind="limit"
    )


def count_steps(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword of `jsonschema` that counts its steps, and shortens its messages, which may quote the value."""

    def count(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        budget = _budget.get()
        budget.take(1 + _reading(expected) + _reading(value))
        for error in keyword(validator, expected, value, schema) or ():
            budget.take(1 + len(error.message) // _CHARS_PER_STEP)
            error.message = error.message[:_MAX_MESSAGE_CHARS]
            yield error

    return count


def counted_reference(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that follows a reference, with a limit on references inside references."""
    steps = count_steps(keyword)

    def follow(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        budget = _budget.get()
        budget.references += 1
        if budget.references > MAX_REFERENCES:
            raise _too_many_references()
        try:
            yield from steps(validator, expected, value, schema)
        finally:
            budget.references -= 1

    return follow


def counted_items(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that looks at each item of a value, where each item counts."""
    steps = count_steps(keyword)

    def look(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        _budget.get().take(_length(value))
        yield from steps(validator, expected, value, schema)

    return look


def counted_pairs(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that the library evaluates by comparing the items of a value each with each."""
    steps = counted_items(keyword)

    def compare(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        _budget.get().take(_length(value) ** 2 // _ITEMS_PER_STEP)
        yield from steps(validator, expected, value, schema)

    return compare


def counted_comparison(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that compares whole values, where each value inside them counts."""
    steps = count_steps(keyword)

    def compare(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        budget = _budget.get()
        for part in (expected, value):
            values, _, chars = _size(part)
            budget.take(values // _VALUES_PER_STEP + chars // _CHARS_PER_STEP)
        yield from steps(validator, expected, value, schema)

    return compare


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern of a schema matches somewhere in a text.

    Raises:
        GraderFault: this search, or all searches of the check together, take too long.
    """
    budget = _budget.get()
    budget.take(len(text) // _CHARS_PER_STEP)
    began = time.perf_counter()
    matches = schema_pattern(pattern).found_in(text)
    budget.pattern_seconds += time.perf_counter() - began
    if budget.pattern_seconds > expressions.SECONDS:
        raise GraderFault(f"the patterns of the JSON schema take longer than {expressions.SECONDS:g} s", kind="timeout")
    return matches


def check_size(schema: object) -> None:
    """Check that a schema is small enough to be checked itself.

    Raises:
        UsageError: it has too many values or levels, or a long list of names that holds something else: the library
            compares such items each with each.
    """
    nodes, depth = measure(schema)
    if nodes > MAX_SCHEMA_NODES:
        raise UsageError(f"the JSON schema has {nodes:,} values, at most {MAX_SCHEMA_NODES:,} allowed")
    if depth > MAX_SCHEMA_DEPTH:
        raise UsageError(f"the JSON schema is nested {depth} levels deep, at most {MAX_SCHEMA_DEPTH} allowed")
    _check_names(schema, "")


def _check_names(schema: object, key: str) -> None:
    if isinstance(schema, dict):
        for name, value in cast("dict[str, object]", schema).items():
            _check_names(value, "required" if key == "dependentRequired" else name)
    elif isinstance(schema, list):
        items = cast("list[object]", schema)
        if key in _LISTS_OF_NAMES and len(items) > _LONG_LIST and not all(isinstance(item, str) for item in items):
            raise UsageError(f"the JSON schema is not valid: '{key}' must be a list of names")
        for item in items:
            _check_names(item, "")


def measure(value: object) -> tuple[int, int]:
    """Return how many values a JSON value consists of, and how many levels deep it is."""
    values, depth, _ = _size(value)
    return values, depth


def _size(value: object) -> tuple[int, int, int]:
    """Return how many values a JSON value consists of, how many levels deep it is, and its characters."""
    count = deepest = chars = 0
    pending = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        count, deepest = count + 1, max(deepest, depth)
        if isinstance(part, str):
            chars += len(part)
        elif isinstance(part, Mapping):
            rows = cast("Mapping[str, object]", part)
            chars += sum(map(len, rows))
            pending += [(item, depth + 1) for item in rows.values()]
        elif isinstance(part, list):
            pending += [(item, depth + 1) for item in cast("list[object]", part)]
    return count, deepest, chars


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list | dict) else 0


def _reading(value: object) -> int:
    """Return the steps that it takes to read a text, or the items of a list without what is in them."""
    return len(value) // _CHARS_PER_STEP if isinstance(value, str) else _length(value) // _ITEMS_PER_STEP


_SCHEMA_KEYWORDS = frozenset(
    """
    additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems
    unevaluatedProperties
    """.split()  # noqa: SIM905
)
"""Keywords whose value is a schema."""
_LIST_KEYWORDS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
"""Keywords whose value is a list of schemas."""
_MAP_KEYWORDS = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
"""Keywords whose value has a schema under each name."""
_REFERENCES = ("$ref", "$dynamicRef")
_NEGATIVE_INDEX = re.compile(r"/-\d")

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_LOCAL_PART = re.compile(r"(?=.{1,64}\Z)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*",
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def mismatch(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return in one line how a value breaks a JSON schema (draft 2020-12), None when it matches.

    Raises:
        UsageError: the schema itself is not valid, or too large.
        GraderFault: the check takes too many steps, follows too many references, or a pattern takes too long.
    """
    check_size(schema)
    try:
        text = json.dumps(schema, allow_nan=False)
    except ValueError as error:
        raise UsageError(f"the JSON schema is not JSON: {error}") from error
    return _checker(text)(value)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check that a schema is valid and can be used, before there is a value for it.

    Raises:
        UsageError: it is not, or a check of `null` already goes beyond a limit.
    """
    try:
        mismatch(None, schema)
    except GraderFault as error:
        raise UsageError(str(error)) from error


def unchecked_formats(schema: object) -> list[str]:
    """Return the formats in a JSON schema that accept any text, because nothing here checks them, sorted."""
    return sorted(_formats(schema) - FORMATS.keys())


def _formats(schema: object) -> set[str]:
    return {name for part in _parts(schema) if isinstance(name := part.get("format"), str)}


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    """Yield a schema and the schemas in it, at any depth; what stands elsewhere, as under `default`, is data."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield cast("dict[str, Any]", part)
            pending += _children(cast("dict[str, Any]", part))


def _children(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly in a schema."""
    for key, value in schema.items():
        if key in _SCHEMA_KEYWORDS:
            yield value
        elif key in _LIST_KEYWORDS and isinstance(value, list):
            yield from cast("list[Any]", value)
        elif key in _MAP_KEYWORDS and isinstance(value, dict):
            yield from cast("dict[str, Any]", value).values()


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _is_read(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    """Return whether a text is a `full-time` of RFC 3339; a leap second is the last one of a day in UTC."""
    match = _TIME.fullmatch(text)
    if match is None or match[3] != "60":
        return match is not None
    offset = int(match[5] or 0) * 60 + int(match[6] or 0)
    minutes = int(match[1]) * 60 + int(match[2]) - (offset if match[4] == "+" else -offset)
    return minutes % 1440 == 1439


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _is_email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    return bool(at and _LOCAL_PART.fullmatch(local) and _HOSTNAME.fullmatch(domain))


def _is_uri(text: str) -> bool:
    if not _URI.fullmatch(text):
        return False
    from urllib.parse import urlsplit

    return _is_read(lambda uri: urlsplit(uri).port, text)


def _is_read(reader: Callable[[str], object], text: str) -> bool:
    try:
        reader(text)
    except ValueError:
        return False
    return True


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "email": _is_email,
    "hostname": lambda text: bool(_HOSTNAME.fullmatch(text)),
    "ipv4": lambda text: _is_read(IPv4Address, text),
    "ipv6": lambda text: "%" not in text and _is_read(IPv6Address, text),
    "time": _is_time,
    "uri": _is_uri,
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
}
"""The formats that are checked, each with what accepts a text; any other format accepts every text."""


@lru_cache(maxsize=256)
def _checker(schema: str) -> Callable[[object], str | None]:
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema import ValidationError as Violation
    from jsonschema.exceptions import best_match  # pyright: ignore[reportUnknownVariableType]

    parsed = json.loads(schema)
    try:
        # patterns are read by us: the library's format of a pattern is that of Python
        Draft202012Validator.check_schema(parsed, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise UsageError(f"the JSON schema is not valid at {error.json_path}: {error.message}") from error
    for part in _parts(parsed):
        _check_part(part)
    resolver = _resolver_of(parsed)
    _check_references(parsed, resolver)
    validator: Any = _bounded()(parsed, _resolver=resolver)
    best = cast("Callable[[Any], Violation | None]", best_match)

    def check(value: object) -> str | None:
        with bounded_check():
            error = best(validator.iter_errors(value))
        return None if error is None else shorten(f"{error.json_path}: {error.message}", 300)

    return check


def _check_part(part: dict[str, Any]) -> None:
    """Check what the library leaves to us of one schema, and take its draft away: another has other keywords.

    Raises:
        UsageError: a pattern cannot be used.
    """
    part.pop("$schema", None)
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    for pattern in (*patterns, *part.get("patternProperties", ())):
        try:
            schema_pattern(pattern)
        except UsageError as error:
            raise UsageError(f"the JSON schema is not usable: {error}") from error


def _check_references(schema: Any, resolver: Any) -> None:
    """Check that each reference leads to a schema in this one, and not to data such as a default.

    The library follows a pointer into anything, and would evaluate what nobody has checked.

    Raises:
        UsageError: it leads elsewhere, or nowhere.
    """
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    known = {id(part) for part in _parts(schema)}
    names: set[str] = set()
    pending: list[tuple[Any, Any]] = [(schema, resolver)]
    while pending:
        part, around = pending.pop()
        if not isinstance(part, dict):
            continue
        names |= cast("dict[str, Any]", part).keys()
        inside = around.in_subresource(DRAFT202012.create_resource(cast("Any", part)))
        for keyword in _REFERENCES:
            reference = cast("dict[str, Any]", part).get(keyword)
            if reference is None:
                continue
            try:
                target = inside.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError, AttributeError, LookupError) as error:
                raise UsageError(f"the JSON schema refers to '{reference}', which is not in it") from error
            if (id(target) not in known and not isinstance(target, bool)) or _NEGATIVE_INDEX.search(reference):
                raise UsageError(f"the JSON schema refers to '{reference}', which is not a schema in it")
        pending += ((child, inside) for child in _children(cast("dict[str, Any]", part)))
    if {"patternProperties", "unevaluatedProperties"} <= names:
        rule = "patternProperties and unevaluatedProperties cannot be checked together; write additionalProperties"
        raise UsageError(f"the JSON schema is not usable: {rule}")


def _resolver_of(schema: Any) -> Any:
    """Return what resolves the references of a schema, inside it alone: a web address is never fetched.

    It looks for all anchors once; the library's own resolver looks for them again at each reference.

    Raises:
        UsageError: a part has an `$id` that is no address.
    """
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    root: Any = DRAFT202012.create_resource(schema)
    address = root.id() or ""
    try:
        registry: Any = cast("Any", Registry)().with_resource(address, root).crawl()
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"the JSON schema is not usable: {error}") from error
    return registry.resolver(address)


@lru_cache(maxsize=1)
def _bounded() -> Any:
    """Return the validator of draft 2020-12 with the keywords that are ours."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    plain: Any = Draft202012Validator.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, expected: str, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not search(expected, value):
            yield ValidationError(f"{value!r} does not match {expected!r}")

    def pattern_properties(validator: Any, parts: dict[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            for expected, part in parts.items():
                for key in _matching(value, [expected]):
                    yield from validator.descend(value[key], part, path=key, schema_path=expected)

    def additional_properties(validator: Any, rest: Any, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            matched = dict.fromkeys(_matching(value, schema.get("patternProperties", ())), True)
            declared = {"properties": {**schema.get("properties", {}), **matched}}
            yield from plain(validator, rest, value, declared)

    ours: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "multipleOf": _multiple_of,
        "format": _format_of,
        "uniqueItems": _unique_items,
    }
    wrappers = {
        **dict.fromkeys(_OF_EACH_ITEM, counted_items),
        **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), counted_pairs),
        **dict.fromkeys(_REFERENCES, counted_reference),
        **dict.fromkeys(("const", "enum", "dependentRequired", "uniqueItems"), counted_comparison),
    }
    bounded = {name: wrappers.get(name, count_steps)(keyword) for name, keyword in ours.items()}
    return cast("Any", extend)(Draft202012Validator, bounded)


def _unique_items(validator: Any, expected: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if expected and validator.is_type(value, "array"):
        from jsonschema import ValidationError

        first: dict[str, int] = {}
        for i, item in enumerate(value):
            earlier = first.setdefault(json_key(item), i)
            if earlier != i:
                yield ValidationError(f"items {earlier} and {i} are the same: {shorten(repr(item), 100)}")
                return


def _multiple_of(_validator: Any, divisor: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if is_number(value) and (Fraction(as_decimal(value)) / Fraction(as_decimal(divisor))).denominator != 1:
        from jsonschema import ValidationError

        yield ValidationError(f"{value!r} is not a multiple of {divisor}")


def _format_of(_validator: Any, name: Any, value: Any, _schema: Any) -> Iterator[Any]:
    accepts = FORMATS.get(name)
    if accepts is None or not isinstance(value, str):
        return
    _budget.get().take(len(value) // _FORMAT_CHARS_PER_STEP)
    if not accepts(value):
        from jsonschema import ValidationError

        yield ValidationError(f"{value!r} is not a valid {name}")


def _matching(value: Mapping[str, Any], patterns: Any) -> list[str]:
    return [key for key in value if any(search(pattern, key) for pattern in patterns)]
