"""Fits the values of an answer to the spelling of its schema, where exactly one reading is possible."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.comparing.json_values import RepeatedKey
from vivavoce.models.loose_json import read_whole

_SEPARATORS = re.compile(r"[\s_-]+")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_MOST_REFERENCES = 20


def fitted(answer: Mapping[str, Any], schema: Mapping[str, Any], name: str) -> tuple[dict[str, Any], list[str]]:
    """Return an answer in the spelling of its schema, and what was changed: `call`, `keys`, `values`, `types`.

    `name` is that of the function which the answer may be written as a call of.
    """
    fitting = _Fitting(schema)
    found = fitting.fit(_uncalled(answer, schema, name, fitting.changed), schema)
    if not isinstance(found, dict):
        return dict(answer), []
    return cast("dict[str, Any]", found), list(fitting.changed)


def check_keys(answer: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check that an answer names each property of its schema once, in whatever spelling.

    Raises:
        RepeatedKey: two keys of one object are spellings of the same property.
    """
    _Fitting(schema).check_keys(answer, schema)


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

    schema: Mapping[str, Any]
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

    def check_keys(self, value: object, schema: object) -> None:
        part = self._resolved(schema)
        if isinstance(value, list):
            for item in cast("list[object]", value):
                self.check_keys(item, part.get("items"))
        elif isinstance(value, dict):
            named = cast("dict[str, object]", value)
            properties: Mapping[str, object] = part.get("properties", {})
            if named.keys() != properties.keys():
                spellings = {_plain(name) for name in properties}
                repeats = Counter(plain for key in named if (plain := _plain(key)) in spellings)
                for key in named:
                    if key not in properties and repeats[_plain(key)] > 1:
                        raise RepeatedKey(key)
            others: object = part.get("additionalProperties")
            for key, item in named.items():
                self.check_keys(item, properties.get(key, others))

    def _resolved(self, schema: object) -> Mapping[str, Any]:
        """Return the schema that a reference leads to, or the only one besides null; an empty one for a choice."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, Mapping):
                break
            part = cast("Mapping[str, Any]", schema)
            if isinstance(reference := part.get("$ref"), str):
                schema = self._at(reference)
            elif choices := part.get("anyOf"):
                others = [one for one in choices if one != {"type": "null"}]
                schema = others[0] if len(others) == 1 else None
            else:
                return part
        return {}

    def _at(self, reference: str) -> object:
        where: object = self.schema if reference.startswith("#") else None
        for step in reference.split("/")[1:]:
            where = cast("Mapping[str, object]", where).get(step) if isinstance(where, Mapping) else None
        return where

    def _text(self, value: str, part: Mapping[str, Any]) -> object:
        listed: Sequence[object] = [part["const"]] if "const" in part else part.get("enum", ())
        if value in listed:
            return value
        if any(isinstance(one, str) for one in listed):
            alike = [one for one in listed if isinstance(one, str) and _plain(one) == _plain(value)]
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
        return _BOOLEANS.get(text.casefold())
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
