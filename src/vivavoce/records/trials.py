"""`TrialsSpent`: how many trials a run made that could end early, and whether it learned what it was to learn."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TrialsSpent(BaseModel):
    """The trials of a run that makes `most` of each sample unless fewer are enough.

    `spent` conversations were held of the `planned` ones, None where their number was not known. They were to decide
    the gate, or with a `half_width` to give the interval of something, `of` in words, at most that half width; `met`
    says whether they did. `by_sample` says that samples have different numbers of trials, so that no interval of a mean
    over all trials is stated.
    """

    model_config = ConfigDict(frozen=True)

    spent: int
    planned: int | None = None
    most: int
    half_width: float | None = None
    of: str | None = None
    met: bool
    by_sample: bool = False
