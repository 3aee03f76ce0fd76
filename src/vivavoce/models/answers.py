"""Reads the JSON object that a model answered with, strictly, or else as small models write it.

Only what has one reading is read. Of two objects that differ, of an object that is cut off, and of a string whose end
is in doubt nothing is taken, nor of an object that the text around it quotes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.comparing.json_values import RepeatedKey, parse
from vivavoce.models.model import Schema
from vivavoce.models.structured import (
    StructuredAnswer,
    check_structured,
    is_closed,
    read_structured,
    reply_name,
    whole_text,
    wire_schema,
)

_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
_OPEN_THOUGHTS = re.compile(r"\s*<think(?:ing)?>")
_END_OF_THOUGHTS = re.compile(r"[^{]*?</think(?:ing)?>")
"""Thoughts whose beginning is in the prompt; with a brace in them, their end may be part of an object."""
_GAP = re.compile(r'(?:\s++|(?://|#)[^\n"“”{}\[\]]*+(?=\n)|/\*[^"“”{}\[\]*]*+\*/)*+')
"""Spaces and comments; quotes and brackets in a comment may be a part of the answer, so no comment holds any."""
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL),
    "“": re.compile(r"“((?:[^“”\\]|\\.)*+)”", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {sign: sign for sign in "\"'\\/_"}
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_WORD = re.compile(r"[A-Za-z_]\w*+")
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_DEEPEST = 100
_QUOTES = ('"', "'", "“", "‘", "«", "„", "`")
_FENCE = re.compile(r"```\w*")
_GOES_ON = re.compile(r"""\s*,\s*["'“]?\w+["'”]?\s*:""")
"""How a text goes on when an object in it was closed too early."""


def find_object(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a text, and how it was written: `thoughts`, `fenced`, `prose`, `spelling`, `repeated`.

    Raises:
        RepeatedKey: an object in it has the same key twice.
        ValueError: there is none, or more than one reading.
    """
    text, thoughts = _without_thoughts(text)
    objects: list[tuple[dict[str, Any], str]] = []
    around: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        around.append(text[end:start])
        value, end = _object(text, start, 0)
        objects.append((value, text[start:end]))
    around.append(text[end:])
    if len({json.dumps(value, sort_keys=True) for value, _ in objects}) != 1:
        raise ValueError("expected exactly one object")
    if any("}" in part for part in around) or any(map(_GOES_ON.match, around[1:])):
        raise ValueError("what follows the object may be a part of it")
    if _is_quoted(around):
        raise ValueError("the object is inside a quotation")
    value, spelled = objects[0]
    repeated = ["repeated"] if len(objects) > 1 else []
    return value, [*(["thoughts"] if thoughts else []), *_written(around, spelled), *repeated]


def read_whole(text: str) -> object:
    """Read a text that is one value, an object or a list, and nothing else.

    Raises:
        ValueError: it is not.
    """
    start = _skip(text, 0)
    if text[start : start + 1] not in ("{", "["):
        raise ValueError("an object or a list is needed")
    value, end = _value(text, start, 0)
    if _skip(text, end) != len(text):
        raise ValueError("text follows the value")
    return value


def _is_quoted(around: list[str]) -> bool:
    """Say whether an object is in quotation marks between words, as what somebody else wrote does."""
    says_more = any(any(map(str.isalnum, _FENCE.sub("", part))) for part in around)
    return says_more and any(part.endswith(_QUOTES) and not part.endswith("```") for part in around[:-1])


def _written(around: list[str], spelled: str) -> Iterator[str]:
    frame = " ".join(around)
    bare = _FENCE.sub("", frame)
    if bare != frame:
        yield "fenced"
    if bare.strip():
        yield "prose"
    try:
        json.loads(spelled)
    except ValueError:
        yield "spelling"


def _without_thoughts(text: str) -> tuple[str, bool]:
    if found := _THOUGHTS.match(text) or _END_OF_THOUGHTS.match(text):
        return text[found.end() :], True
    if _OPEN_THOUGHTS.match(text):
        raise ValueError("the reasoning block is not closed")
    return text, False


def _value(text: str, at: int, depth: int) -> tuple[object, int]:
    opening = text[at : at + 1]
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _list(text, at, depth)
    if opening in _STRINGS:
        return _string(text, at)
    if number := _NUMBER.match(text, at):
        return _number(number[0]), number.end()
    word = _WORD.match(text, at)
    if word and word[0] in _CONSTANTS:
        return _CONSTANTS[word[0]], word.end()
    raise _unreadable(at)


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _key(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise _unreadable(at)
        if key in found:
            raise RepeatedKey(key, at)
        found[key], at = _value(text, _skip(text, at + 1), depth + 1)
        at = _after_item(text, at, "}")
    return found, at + 1


def _list(text: str, at: int, depth: int) -> tuple[list[object], int]:
    found: list[object] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _value(text, at, depth + 1)
        found.append(item)
        at = _after_item(text, at, "]")
    return found, at + 1


def _after_item(text: str, at: int, closing: str) -> int:
    """Return where the next item begins, or the container ends; a comma may be the last thing in it."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _unreadable(at)
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] in _STRINGS:
        return _string(text, at)
    if word := _WORD.match(text, at):
        return word[0], word.end()
    raise _unreadable(at)


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRINGS[text[at]].match(text, at)
    if found is None:
        raise _unreadable(at)
    return _ESCAPE.sub(_unescaped, found[1]), found.end()


def _unescaped(escape: re.Match[str]) -> str:
    sign = escape[1]
    if len(sign) == 5:
        return chr(int(sign[1:], 16))
    if sign not in _ESCAPED:
        raise _unreadable(escape.start())
    return _ESCAPED[sign]


def _number(spelled: str) -> int | float:
    number = float(spelled)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{spelled[:20]} is too large")
    return number if set(spelled) & set(".eE") else int(spelled)


def _skip(text: str, at: int) -> int:
    return cast("re.Match[str]", _GAP.match(text, at)).end()


def _unreadable(at: int) -> ValueError:
    return ValueError(f"unreadable from character {at} on")


_SEPARATORS = re.compile(r"[\s_-]+")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_YES_OR_NO = {"ja": "yes", "oui": "yes", "sí": "yes", "si": "yes", "nein": "no", "non": "no"}
"""Yes and no as models write them that answer in the language of the conversation."""
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_MOST_REFERENCES = 20
_NESTED = (dict, list)


def fitted(answer: Mapping[str, Any], schema: Mapping[str, Any], name: str) -> tuple[dict[str, Any], list[str]]:
    """Return an answer in the spelling of its schema, and what was changed: `call`, `keys`, `values`, `types`.

    `name` is that of the function which the answer may be written as a call of.
    """
    fitting = _Fitting(dict(schema))
    found = fitting.fit(_uncalled(answer, schema, name, fitting.changed), fitting.schema)
    if not isinstance(found, dict):
        return dict(answer), []
    return cast("dict[str, Any]", found), list(fitting.changed)


def check_keys(answer: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check that an answer names each property of its schema once, in whatever spelling.

    Raises:
        RepeatedKey: two keys of one object are spellings of the same property.
    """
    _Fitting(dict(schema)).check_keys(dict(answer))


def _uncalled(answer: Mapping[str, Any], schema: Mapping[str, Any], name: str, changed: dict[str, None]) -> object:
    """Return the arguments of a call of the function for replies that is written down, else the answer itself."""
    arguments = set(answer) - {"name", "type"}
    is_call = answer.get("name") == name and arguments in ({"arguments"}, {"parameters"})
    if not is_call or "name" in schema.get("properties", ()):
        return answer
    changed["call"] = None
    return answer[arguments.pop()]


@dataclass(slots=True)
class _Fitting:
    """One walk through an answer; `changed` is what was changed, in order and each once."""

    schema: dict[str, Any]
    changed: dict[str, None] = field(default_factory=dict[str, None])

    def fit(self, value: object, schema: object) -> object:
        part = self._resolved(schema)
        if isinstance(value, str):
            return self._text(value, part)
        if isinstance(value, list):
            items: object = part.get("items")
            return [self.fit(item, items) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            return self._object(cast("dict[str, object]", value), part)
        return value

    def check_keys(self, answer: dict[str, Any]) -> None:
        pending: list[tuple[Any, object]] = [(answer, self.schema)]
        for holder, schema in pending:  # which grows
            part = self._resolved(schema)
            if isinstance(holder, list):
                items: object = part.get("items")
                pending += [(item, items) for item in cast("list[object]", holder) if type(item) in _NESTED]
                continue
            properties: Mapping[str, object] = part.get("properties", {})
            if holder.keys() != properties.keys():
                spellings = {_plain(name) for name in properties}
                repeats = Counter(plain for key in holder if (plain := _plain(key)) in spellings)
                for key in holder:
                    if key not in properties and repeats[_plain(key)] > 1:
                        raise RepeatedKey(key)
            others: object = part.get("additionalProperties")
            for key, item in holder.items():
                if type(item) in _NESTED:
                    pending.append((item, properties.get(key, others)))

    def _resolved(self, schema: object) -> Mapping[str, Any]:
        """Return the schema that a reference leads to, or the only one besides null; an empty one for a choice."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, dict):
                break
            part: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
            if isinstance(reference := part.get("$ref"), str):
                schema = self._at(reference)
            elif choices := part.get("anyOf"):
                others = [choice for choice in choices if choice != {"type": "null"}]
                schema = others[0] if len(others) == 1 else None
            else:
                return part
        return {}

    def _at(self, reference: str) -> object:
        where: object = self.schema if reference.startswith("#") else None
        for step in reference.split("/")[1:]:
            part: dict[str, Any] = where if isinstance(where, dict) else {}  # pyright: ignore[reportUnknownVariableType]
            where = part.get(step)
        return where

    def _text(self, value: str, part: Mapping[str, Any]) -> object:
        listed: Sequence[object] = [part["const"]] if "const" in part else part.get("enum", ())
        if value in listed:
            return value
        if any(isinstance(one, str) for one in listed):
            meant = _plain(value)
            if "yes" in listed and "no" in listed:
                meant = _YES_OR_NO.get(meant, meant)
            alike = [one for one in listed if isinstance(one, str) and _plain(one) == meant]
            return self._noted("values", alike[0]) if len(alike) == 1 else value
        meant = _meant(value.strip(), part.get("type"))
        return value if meant is None else self.fit(self._noted("types", meant), part)

    def _object(self, value: dict[str, object], part: Mapping[str, Any]) -> dict[str, object]:
        properties: Mapping[str, object] = part.get("properties", {})
        named = self._renamed(value, part, properties)
        others: object = part.get("additionalProperties")
        return {key: self.fit(one, properties.get(key, others)) for key, one in named.items()}

    def _renamed(
        self, value: dict[str, object], part: Mapping[str, Any], properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Give keys the names of missing properties that they are other spellings of."""
        closed = part.get("additionalProperties") is False
        missing = [name for name in properties if name not in value and (closed or name in part.get("required", ()))]
        named = {key: name for key in value if key not in properties for name in missing if _plain(name) == _plain(key)}
        claims = Counter(named.values())
        certain = {key: name for key, name in named.items() if claims[name] == 1}
        if not certain:
            return value
        return self._noted("keys", {certain.get(key, key): one for key, one in value.items()})

    def _noted(self, what: str, value: Any) -> Any:
        self.changed[what] = None
        return value


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


def _meant(text: str, kind: object) -> object:
    """Return what a text means where the schema has another type, None where that is in doubt."""
    if kind == "boolean":
        word = text.casefold()
        return _BOOLEANS.get(_YES_OR_NO.get(word, word))
    if kind in ("number", "integer"):
        number = json.loads(text) if _JSON_NUMBER.fullmatch(text) and len(text) < 40 else None
        return number if kind == "number" or isinstance(number, int) else None
    if kind in ("object", "array"):
        try:
            value = read_whole(text)
        except ValueError:
            return None
        return value if isinstance(value, dict) == (kind == "object") else None
    return None


def read_answer(text: str, schema: Schema) -> StructuredAnswer:
    """Read the one JSON object in an answer.

    Strictly at first. If that fails, what stands around the object is cut off, and the spelling of the object, its
    keys, and values is that of the schema where exactly one reading is possible.

    Raises:
        RepeatedKey: an object in it has the same key twice, also where only the spelling of the key differs.
        ValueError: it is not JSON, not one object, or does not match; the text says where and which rule.
    """
    try:
        answer = read_structured(text, schema)
    except RepeatedKey:
        raise
    except ValueError as error:
        strict = error
    else:
        if not isinstance(schema, type) or not is_closed(schema):
            check_keys(answer.parsed, wire_schema(schema))
        return answer
    try:
        value, written = _object_in(text)
    except RepeatedKey:
        raise
    except (ValueError, RecursionError):
        raise strict from None
    return _fit(value, written, schema, strict)


def lacks_keys(text: str, schema: Schema) -> bool:
    """Say whether an answer has no JSON object with all keys of its schema, as where nobody heeded that."""
    try:
        found, _ = _object_in(text)
    except RepeatedKey:
        return False
    except (ValueError, RecursionError):
        return True
    return not found.keys() >= set(wire_schema(schema).get("required", ()))


def check_answer(parsed: Mapping[str, Any], schema: Schema) -> StructuredAnswer:
    """Return a JSON object in the spelling of its schema.

    Raises:
        ValueError: it does not match; the text says where and which rule.
    """
    try:
        checked = check_structured(parsed, schema)
    except ValueError as error:
        return _fit(parsed, [], schema, error)
    if not isinstance(schema, type) or not is_closed(schema):
        check_keys(parsed, wire_schema(schema))
    return StructuredAnswer(dict(parsed), (), checked)


def _fit(parsed: Mapping[str, Any], written: list[str], schema: Schema, strict: ValueError) -> StructuredAnswer:
    shape = wire_schema(schema)
    check_keys(parsed, shape)
    value, changed = fitted(parsed, shape, reply_name(shape))
    if not written and not changed:
        raise strict
    return StructuredAnswer(value, (*written, *changed), check_structured(value, schema))


def _object_in(text: str) -> tuple[dict[str, Any], list[str]]:
    try:
        value: object = parse(text)
    except RepeatedKey:
        raise
    except ValueError:
        value = None
    if isinstance(value, dict):
        return _without_halves(cast("object", value)), []
    found, written = find_object(value if isinstance(value, str) else text)
    quoted = ["quoted"] if isinstance(value, str) else []
    return _without_halves(found), [*quoted, *written]


def _without_halves(value: object) -> dict[str, Any]:
    return parse(whole_text(value))
