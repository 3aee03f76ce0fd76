"""JSON Schema, draft 2020-12: how a schema is read, and how a value breaks it, with bounds on what either may cost.

Only what is read here as a schema is ever used as one: a reference leads to a place that this module has walked, and
`schema_check` follows no other.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from vivavoce.errors import GraderFault, UsageError
from vivavoce.models.schema_check import KEYWORDS, Program, best_mistake
from vivavoce.models.schema_texts import FORMATS, schema_pattern
from vivavoce.safe_regex import Expression, repeated_parts
from vivavoce.work_time import counted_work

MAX_SCHEMA_NODES = 10_000
"""Values in a schema, at all levels."""

MAX_SCHEMA_DEPTH = 100
"""Levels of a schema."""

MAX_SCHEMA_CHARS = 500_000
"""Characters of a schema as JSON."""

MAX_PATTERN_PARTS = 200_000
"""Parts of all patterns of a schema once their counts are written out: each costs memory."""

_MAX_CACHED_CHARS = 50_000
_MAX_REFERENCE_CHARS = 100
_LONG_LIST = 100
_LISTS_OF_NAMES = frozenset(("required", "type"))

_ONE_SCHEMA = frozenset(
    (
        *("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    )
)
_LIST_OF_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED_SCHEMAS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))

_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
)
"""Drafts that a schema may name; each is read as 2020-12."""
_FORMER_KEYWORDS = frozenset(("additionalItems", "dependencies", "$recursiveRef"))
"""Keywords of the older drafts that 2020-12 does not have."""


def mismatch(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return in one line how a value breaks a JSON schema (draft 2020-12), None when it matches.

    Raises:
        UsageError: the schema itself is not valid, or too large.
        GraderFault: the check takes too many steps, follows too many references, or a pattern takes too long.
    """
    mistake = best_mistake(_program(schema), value)
    return None if mistake is None else mistake.line


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check that a schema is valid and can be used, before there is a value for it.

    Raises:
        UsageError: it is not, or a check of `null` already goes beyond a limit.
    """
    try:
        mismatch(None, schema)
    except GraderFault as error:
        raise UsageError(str(error)) from error


def check_test_schema(schema: Mapping[str, Any]) -> None:
    """Check that a schema can be used, and that it demands something, so that a value can break it.

    Use it for schemas of tests: what describes a tool or a response may be as loose as it likes.

    Raises:
        UsageError: it is not valid, a keyword is misspelt, or every value fits it.
    """
    check_schema(schema)
    problems = [
        f"the JSON schema has the unknown keyword '{_cut(key)}' at '#{_cut(place)}'; did you mean '{meant}'?"
        for place, key in _unknown_keywords(schema)
        if (meant := _misspelt(key)) is not None
    ]
    if problems:
        raise UsageError(*problems)
    if not _demands(schema, schema, ()):
        raise UsageError("the JSON schema accepts every value; add a type, or required keys")
    for key, kind in _ONLY_FOR.items():
        if key in schema and not schema.keys() & _TYPED:
            raise UsageError(f"the JSON schema has {key} but no type, so it accepts other values; add type: {kind}")


_ONLY_FOR = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
}
"""Keys of a JSON schema that say nothing about values of other types."""
_TYPED = frozenset(("type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"))
"""Keys that may say of which type a value is."""


def ignored_keywords(schema: object) -> list[str]:
    """Return the keywords in a JSON schema that nothing here knows and that are not extensions, sorted."""
    return sorted({key for _, key in _unknown_keywords(schema) if not key.lower().startswith("x-")})


def _unknown_keywords(schema: object) -> Iterator[tuple[str, str]]:
    for place, part in _parts(schema):
        yield from ((place, key) for key in part if key not in _KNOWN_KEYWORDS)


def _misspelt(key: str) -> str | None:
    """Return the keyword that an unknown one seems to mean, None where it seems to mean something of its own."""
    if key.lower().startswith("x-"):
        return None
    if key in _MEANT_ELSEWHERE:
        return _MEANT_ELSEWHERE[key]
    plain = re.sub(r"[\s_-]", "", key).casefold()
    spelled = {re.sub(r"\$", "", name).casefold(): name for name in sorted(_KNOWN_KEYWORDS, reverse=True)}
    if plain in spelled:
        return spelled[plain]
    close = difflib.get_close_matches(plain, spelled, n=1, cutoff=_CLOSE if len(plain) > _SHORT else _CLOSE_SHORT)
    return spelled[close[0]] if close else None


_CLOSE, _CLOSE_SHORT, _SHORT = 0.75, 0.7, 5
"""How similar an unknown keyword is to the one that it means; a short one has few letters to be similar in."""
_MEANT_ELSEWHERE = {
    "min": "minimum",
    "max": "maximum",
    "regex": "pattern",
    "mandatory": "required",
    "choices": "enum",
    "options": "enum",
    "equals": "const",
    "oneof": "oneOf",
    "additionalItems": "items",
    "dependencies": "dependentRequired",
    "$recursiveRef": "$dynamicRef",
}
"""Keywords by their names in other tools and in older drafts."""
_MAX_FOLLOWED = 20
"""References that are followed to see whether a schema demands anything."""


def _demands(schema: object, root: Mapping[str, Any], followed: tuple[str, ...]) -> bool:
    """Return whether some value breaks a schema, as far as its form says; a doubtful one counts as demanding."""
    if not isinstance(schema, Mapping):
        return schema is False
    part = cast("Mapping[str, Any]", schema)
    return any(_keyword_demands(key, value, part, root, followed) for key, value in part.items() if key in KEYWORDS)


def _keyword_demands(
    key: str, value: Any, part: Mapping[str, Any], root: Mapping[str, Any], followed: tuple[str, ...]
) -> bool:
    def demands(inner: object) -> bool:
        return _demands(inner, root, followed)

    if key == "contains":
        return part.get("minContains", 1) > 0 or "maxContains" in part
    if key == "if":
        return any(demands(part[branch]) for branch in ("then", "else") if branch in part)
    if key in ("$ref", "$dynamicRef"):
        return _reference_demands(value, root, followed)
    check = _IDLE_UNLESS.get(key)
    return check is None or check(value, demands)


def _is_narrow(names: str | list[str]) -> bool:
    return isinstance(names, str) or not set(_ALL_TYPES) <= set(names)


_IDLE_UNLESS: Mapping[str, Callable[[Any, Callable[[object], bool]], bool]] = {
    "required": lambda names, _: bool(names),
    **dict.fromkeys(("minItems", "minLength", "minProperties"), lambda least, _: least > 0),
    "uniqueItems": lambda flag, _: flag is True,
    "type": lambda names, _: _is_narrow(names),
    "format": lambda name, _: name in FORMATS,
    "dependentRequired": lambda names, _: any(names.values()),
    **dict.fromkeys(
        ("properties", "patternProperties", "dependentSchemas"),
        lambda parts, demands: any(map(demands, parts.values())),
    ),
    **dict.fromkeys(
        ("items", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties"),
        lambda part, demands: demands(part),
    ),
    **dict.fromkeys(("allOf", "prefixItems"), lambda parts, demands: any(map(demands, parts))),
    "anyOf": lambda parts, demands: all(map(demands, parts)),
    "oneOf": lambda parts, demands: len(parts) > 1 or demands(parts[0]),
}
"""Keywords that demand nothing with some values; the others always demand something."""


def _reference_demands(reference: str, root: Mapping[str, Any], followed: tuple[str, ...]) -> bool:
    """Return whether what a reference leads to demands something; one that leads back to itself adds nothing."""
    if reference in followed:
        return False
    if len(followed) >= _MAX_FOLLOWED:
        return True
    target = _program(root).targets[reference]
    return _demands(target, root, (*followed, reference))


_ALL_TYPES = ("array", "boolean", "null", "number", "object", "string")
_ANNOTATIONS = """
$anchor $comment $defs $dynamicAnchor $id $schema $vocabulary contentEncoding contentMediaType contentSchema default
definitions deprecated description else examples example maxContains minContains readOnly then title writeOnly
discriminator externalDocs nullable strict xml propertyOrdering enumDescriptions markdownDescription errorMessage
id name
"""
_KNOWN_KEYWORDS = frozenset((*KEYWORDS, *_ANNOTATIONS.split()))
"""The keywords that are checked, and those that describe, be they of JSON Schema, of OpenAPI, or of editors."""


def unchecked_formats(schema: object) -> list[str]:
    """Return the formats in a JSON schema that accept any text, because nothing here checks them, sorted."""
    names = {part.get("format") for _, part in _parts(schema)}
    return sorted(name for name in names if isinstance(name, str) and name not in FORMATS)


def _program(schema: Mapping[str, Any]) -> Program:
    _check_size(schema)
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:  # NaN, an infinite number, one with too many digits, or a Python object
        raise UsageError(f"the JSON schema is not JSON: {error}") from error
    if len(text) > MAX_SCHEMA_CHARS:
        raise UsageError(f"the JSON schema has {len(text):,} characters, at most {MAX_SCHEMA_CHARS:,} allowed")
    return _read(text) if len(text) <= _MAX_CACHED_CHARS else _read.__wrapped__(text)


def _check_size(schema: object) -> None:
    """Check that a schema is small enough to be checked itself.

    Raises:
        UsageError: it has too many values or levels, or a long list of names that holds something else: the library
            compares such items each with each.
    """
    nodes = 0
    pending: list[tuple[object, str, int]] = [(schema, "", 1)]
    while pending:
        part, key, depth = pending.pop()
        nodes += 1
        if nodes > MAX_SCHEMA_NODES:
            raise UsageError(f"the JSON schema has more than {MAX_SCHEMA_NODES:,} values")
        if depth > MAX_SCHEMA_DEPTH:
            raise UsageError(f"the JSON schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
        if isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part).items()
            is_dependent = key == "dependentRequired"
            pending += [(item, "required" if is_dependent else name, depth + 1) for name, item in fields]
        elif isinstance(part, list):
            items = cast("list[object]", part)
            if key in _LISTS_OF_NAMES and len(items) > _LONG_LIST and not all(isinstance(item, str) for item in items):
                raise UsageError(f"the JSON schema is not valid: '{key}' must be a list of names")
            pending += [(item, "", depth + 1) for item in items]


@lru_cache(maxsize=256)
def _read(text: str) -> Program:
    """Return the program of a schema.

    Raises:
        UsageError: it is not valid, or refers to something that is not a schema in it.
        GraderFault: no time is left for its request.
    """
    schema = json.loads(text)
    with counted_work() as check_time:
        _check_valid(schema)
        places: dict[str, dict[str, Any]] = {}
        for place, part in _parts(schema):
            check_time()
            places[place] = part
        _check_draft(places)
        targets = {"": schema, **dict(_places(schema)), **_anchors(places)}
        return Program(
            schema,
            {reference: _target(reference, places.get("", {}), targets) for reference in _references(places)},
            dict(_expressions(places)),
            any(key.startswith("unevaluated") for part in places.values() for key in part),
        )


def _check_valid(schema: Any) -> None:
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError

    try:
        # patterns are read by us: the library's format of a pattern is that of Python
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise UsageError(f"the JSON schema is not valid at {error.json_path}: {error.message[:300]}") from error
    except RecursionError as error:
        raise UsageError("the JSON schema is nested too deeply") from error


def _places(schema: object) -> Iterator[tuple[str, Any]]:
    """Yield each place of a schema where a schema stands, as a JSON pointer, with what stands there."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        place, part = pending.pop()
        yield place, part
        if isinstance(part, dict):
            for key, value in cast("dict[str, Any]", part).items():
                pending += [(f"{place}/{key}{inner}", item) for inner, item in _inside(key, value)]


def _inside(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the schemas that a keyword has, each with the rest of its pointer."""
    if key in _ONE_SCHEMA:
        items = [("", value)]
    elif key in _LIST_OF_SCHEMAS and isinstance(value, list):
        items = [(f"/{i}", item) for i, item in enumerate(cast("list[Any]", value))]
    elif key in _NAMED_SCHEMAS and isinstance(value, dict):
        names = cast("dict[str, Any]", value).items()
        items = [("/" + name.replace("~", "~0").replace("/", "~1"), item) for name, item in names]
    else:
        items = []
    yield from ((inner, item) for inner, item in items if isinstance(item, dict | bool))


def _parts(schema: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the schemas in a schema that have keywords, each with its place."""
    yield from ((place, part) for place, part in _places(schema) if isinstance(part, dict))


def _check_draft(places: Mapping[str, dict[str, Any]]) -> None:
    for place, part in places.items():
        for key in ("$schema", "$id"):
            if place and key in part:
                raise UsageError(f"the JSON schema has '{key}' at '#{_cut(place)}'; only the root schema may have one")
    root = places.get("", {})
    try:
        urlsplit(root.get("$id", ""))
    except ValueError as error:
        raise UsageError(f"the JSON schema has a broken '$id': '{_cut(root['$id'])}' is not an address") from error
    draft = root.get("$schema", _DRAFTS[0])
    if draft.rstrip("#") not in _DRAFTS:
        raise UsageError(f"the JSON schema has an unknown '$schema': '{_cut(draft)}', expected '{_DRAFTS[0]}'")
    if draft != _DRAFTS[0]:
        for place, part in places.items():
            if former := sorted(_FORMER_KEYWORDS & part.keys()):
                raise UsageError(f"the JSON schema has '{former[0]}' at '#{_cut(place)}', which 2020-12 does not have")


def _anchors(places: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    anchors: dict[str, Any] = {}
    for part in places.values():
        for name in {part[key] for key in ("$anchor", "$dynamicAnchor") if key in part}:
            if name in anchors:
                raise UsageError(f"the JSON schema has two schemas with the anchor '{_cut(name)}'")
            anchors[name] = part
    return anchors


def _references(places: Mapping[str, dict[str, Any]]) -> dict[str, None]:
    """Return the references of a schema, each once."""
    return {part[key]: None for part in places.values() for key in ("$ref", "$dynamicRef") if key in part}


def _target(reference: str, root: dict[str, Any], targets: Mapping[str, Any]) -> Any:
    address, _, fragment = reference.partition("#")
    place = unquote(fragment)
    if address not in ("", root.get("$id", "").rstrip("#")) or place not in targets:
        hint = "write '#/$defs/name' and define it there"
        raise UsageError(f"the JSON schema refers to '{_cut(reference)}', which is not a schema in it; {hint}")
    return targets[place]


def _expressions(places: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, Expression]]:
    """Yield the patterns of a schema and of its parts, each with its expression."""
    patterns = (text for part in places.values() for text in (part.get("pattern"), *part.get("patternProperties", ())))
    parts = 0
    for text in dict.fromkeys(text for text in patterns if text is not None):
        parts += repeated_parts(text)
        if parts > MAX_PATTERN_PARTS:
            written_out = f"more than {MAX_PATTERN_PARTS:,} parts after counts such as {{1000}} are written out"
            raise UsageError(f"the patterns of the JSON schema have {written_out}")
        try:
            yield text, schema_pattern(text)
        except UsageError as error:
            raise UsageError(f"the JSON schema is not usable: {error}") from error


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_REFERENCE_CHARS else f"{text[:_MAX_REFERENCE_CHARS]}…"
