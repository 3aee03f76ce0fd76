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
