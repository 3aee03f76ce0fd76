from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.penelope.persona import Persona, built_in, persona_for, read_persona


def test_ten_personas_are_built_in_each_in_few_words() -> None:
    assert len(built_in()) == 10
    for name, persona in built_in().items():
        assert persona.name == name
        assert persona.description
        assert all(len(line.split()) <= 16 for line in persona.describe().splitlines())


@pytest.mark.parametrize("name", ["non_native", "Non-native", " non native "])
def test_a_built_in_persona_is_named_in_any_spelling(name: str) -> None:
    assert read_persona(name) is built_in()["non_native"]


def test_several_words_describe_somebody() -> None:
    assert read_persona(" a baker from Lyon ") == Persona(description="a baker from Lyon")


def test_fields_make_a_persona() -> None:
    persona = read_persona({"name": "Ada", "style": "dry", "patience": "none\nat all", "language": " "})
    assert persona.describe() == "style: dry\npatience: none at all"
    assert read_persona(persona) is persona


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("expart", "no persona 'expart'; did you mean 'expert'"),
        ("baker", "describe your own in a few words"),
        ("  ", "no persona ''"),
        ({"stile": "dry"}, "persona: no field 'stile'; did you mean 'style'"),
        ({1: "dry"}, "persona: no field '1'"),
        ({"style": 3}, "persona: style: "),
        (7, "expected a name, a description or a mapping of fields, got 7"),
    ],
)
def test_what_is_no_persona_is_told(value: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_persona(value)


@given(st.builds(Persona, description=st.text(), style=st.text(), language=st.text()))
def test_a_field_never_spreads_over_lines(persona: Persona) -> None:
    fields = [line.partition(":")[0] for line in persona.describe().splitlines()]
    told = {field for field in ("description", "style", "language") if getattr(persona, field).strip()}
    assert fields == [field for field in Persona.model_fields if field in told]


def test_each_persona_gets_its_share_of_keys_and_a_key_always_the_same() -> None:
    personas = [(3.0, Persona(name="brief")), (1.0, Persona(name="wordy"))]
    names = [persona_for(f"row-{place}", personas).name for place in range(2000)]
    assert 0.72 < names.count("brief") / 2000 < 0.78
    assert names == [persona_for(f"row-{place}", personas).name for place in range(2000)]
