"""How often each sample is run: a number, or as often as something needs to be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from vivavoce.suites.part import Spec


class TrialsUntil(Spec):
    """Trials of each sample until something is known, and `max` at most.

    `until: decided` makes them until the gate is decided, `half_width` until the interval of the graded figure reaches
    no further than this from its middle.
    """

    max: int = Field(ge=2, le=10_000)
    until: Literal["decided"] | None = None
    half_width: float | None = Field(default=None, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.until is None) == (self.half_width is None):
            raise ValueError("needs either until: decided or a half_width; for a fixed number of trials write it alone")
        return self


NUMBER, UNTIL = "a number of trials", "trials until"
"""The two forms, as the schema names them; neither is a key of a suite."""


def _trials_form(value: Any) -> str:
    return UNTIL if isinstance(value, Mapping | TrialsUntil) else NUMBER


TrialsSpec = Annotated[
    Annotated[int, Field(ge=1), Tag(NUMBER)] | Annotated[TrialsUntil, Tag(UNTIL)], Discriminator(_trials_form)
]
"""A number of trials, or a rule that ends them."""
