"""`Sampling`: of which population the conversations of a run were drawn, and how."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

SAMPLING = "sampling"
"""The option of a run under which its sampling is stored."""


class Drawn(NamedTuple):
    """How a conversation came to be drawn: from which stratum, a place in the list of all, and how likely that was."""

    stratum: int
    probability: float


class Stratum(BaseModel):
    """Conversations that are alike in what they were told apart by: their number, and how many of them were drawn."""

    model_config = ConfigDict(frozen=True)

    name: str
    size: int
    drawn: int


class Sampling(BaseModel):
    """How the conversations of a run were drawn from those of a file.

    `by` are the things that strata are made of, `weight_by` what the probability within a stratum is in proportion to;
    without either each conversation is as likely. `places` is a hash of the places of those that were drawn.
    """

    model_config = ConfigDict(frozen=True)

    by: list[str]
    weight_by: str | None = None
    strata: list[Stratum]
    places: str

    @property
    def population(self) -> int:
        """How many conversations there are."""
        return sum(one.size for one in self.strata)

    @property
    def drawn(self) -> int:
        """How many of them were drawn."""
        return sum(one.drawn for one in self.strata)

    @property
    def even(self) -> bool:
        """Whether those that were drawn are a picture of all as they are, without weights."""
        return self.weight_by is None and len(self.strata) == 1
