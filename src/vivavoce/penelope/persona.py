"""`Persona`: the user that the tester plays; some are built in, others are described in a sentence or in fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from vivavoce.comparing.json_values import parse
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import describe

_LIBRARY = Path(__file__).with_name("personas.json")


class Persona(BaseModel):
    """A user as the tester plays one: every field is a few words that the tester's model reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "user"
    description: str = ""
    style: str = ""
    knowledge: str = ""
    patience: str = ""
    language: str = ""

    def describe(self) -> str:
        """Return the lines for the tester: one for each field that is not empty, such as `style: short sentences`.

        The name is left out: it is for people who read results.
        """
        fields = ((field, getattr(self, field)) for field in type(self).model_fields if field != "name")
        return "\n".join(f"{field}: {' '.join(words.split())}" for field, words in fields if words.strip())


def read_persona(value: str | Mapping[str, Any] | Persona) -> Persona:
    """Read a persona: the name of a built-in one, a text that describes somebody, or its fields, also as JSON text.

    Raises:
        UsageError: a single word that is not the name of one, an unknown field, or a value that is not text.
    """
    if isinstance(value, Persona):
        return value
    if isinstance(value, Mapping):
        return _from_fields(value)
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from files
        raise UsageError(f"expected a name, a description or a mapping of fields, got {value!r}")
    if value.lstrip().startswith("{"):
        return _from_json(value)
    persona = built_in().get("_".join(value.casefold().replace("-", " ").split()))
    if persona is not None:
        return persona
    if len(value.split()) < 2:
        raise UsageError(
            f"no persona '{value.strip()}'{did_you_mean(value.strip(), built_in())}; describe your own in a few words"
        )
    return Persona(description=value.strip())


def persona_for(key: str, personas: Sequence[tuple[float, Persona]]) -> Persona:
    """Return the persona that a key falls to, each time the same; each gets its share of all keys.

    Shares are numbers above 0 with whatever sum.
    """
    fraction = int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()) / 2**64
    left = fraction * sum(share for share, _ in personas)
    for share, persona in personas:
        left -= share
        if left < 0:
            return persona
    return personas[-1][1]


@cache
def built_in() -> Mapping[str, Persona]:
    """Return the personas that can be named, by name."""
    fields = TypeAdapter(dict[str, dict[str, str]]).validate_json(_LIBRARY.read_bytes())
    return {name: Persona(name=name, **persona) for name, persona in fields.items()}


def _from_json(text: str) -> Persona:
    try:
        fields: object = parse(text)
    except ValueError as error:
        raise UsageError(f"persona: is not a JSON object: {error}") from error
    assert isinstance(fields, dict)  # it begins with a brace
    return _from_fields(cast("dict[str, Any]", fields))


def _from_fields(fields: Mapping[str, Any]) -> Persona:
    for field in fields:
        if field not in Persona.model_fields:
            raise UsageError(f"persona: no field '{field}'{did_you_mean(str(field), Persona.model_fields)}")
    try:
        return Persona.model_validate(dict(fields))
    except ValidationError as error:
        raise UsageError(f"persona: {describe(error)}") from error
