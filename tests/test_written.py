from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from vivavoce.written import Written


class Options(Written):
    share: float = 1.0
    most: Annotated[int, Field(ge=1)] | None = None
    on: bool = False
    either: int | bool = 0
    kind: Literal[1, "one"] = 1
    anything: Any = None


@pytest.mark.parametrize("field", ["share", "most", "kind"])
@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_are_no_numbers(field: str, value: bool) -> None:
    with pytest.raises(ValidationError, match=f"{field}\n.*must be a number, got {str(value).lower()}"):
        Options.model_validate({field: value})


def test_they_stand_where_they_may() -> None:
    options = Options.model_validate({"on": True, "either": True, "anything": True, "share": "0.5", "most": 2})
    assert (options.on, options.either, options.anything) == (True, True, True)
    assert (options.share, options.most) == (0.5, 2)


class Nested(Written):
    weights: dict[str, float] | None = None
    limits: list[int] | None = None
    levels: dict[str, list[int]] | None = None
    flags: dict[str, bool] | None = None
    anything: dict[str, Any] | None = None


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"weights": {"a": 1, "b": True}}, "weights.b"),
        ({"limits": [1, False]}, "limits.1"),
        ({"levels": {"a": [1, True]}}, "levels.a.1"),
    ],
)
def test_they_are_no_numbers_inside_of_others_either(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=f"{place}\n.*must be a number"):
        Nested.model_validate(fields)


def test_they_stand_inside_of_others_where_they_may() -> None:
    nested = Nested.model_validate({"flags": {"a": True}, "anything": {"a": True}, "weights": {"a": 1}})
    assert (nested.flags, nested.anything, nested.weights) == ({"a": True}, {"a": True}, {"a": 1.0})
