"""`Population`: the conversations that scores stand for, where only some of them were drawn and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from vivavoce.plugins import lazy
from vivavoce.records.sampling import Drawn, Sampling

if TYPE_CHECKING:
    from vivavoce.stats.sampled import PopulationMean


@dataclass(frozen=True, slots=True)
class Population:
    """How each scored conversation was drawn (`drawn`), each without a score because of an error, and each `outside`.

    Those outside have no score because the grader does not apply to them.
    """

    sampling: Sampling
    drawn: Sequence[Drawn]
    missing: Sequence[Drawn] = ()
    outside: Sequence[Drawn] = ()

    def mean(
        self, values: Sequence[float], level: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
    ) -> PopulationMean | None:
        """Return the mean over the population, from a value for each scored conversation; None where there is none.

        Conversations without a score because of an error are as the others of their stratum are.
        """
        estimate = lazy("vivavoce.stats.sampled:population_mean")  # numpy takes long to load, and few runs are drawn
        return cast("PopulationMean | None", estimate(values, *self._in_columns(), level, bounds))

    def weights(self) -> list[float]:
        """Return for how many conversations each scored one stands."""
        return cast("list[float]", lazy("vivavoce.stats.sampled:population_weights")(*self._in_columns()))

    def _in_columns(self) -> tuple[object, object, object]:
        units, design = lazy("vivavoce.stats.sampled:Units"), lazy("vivavoce.stats.sampled:Design")
        strata = self.sampling.strata
        sizes = design([one.size for one in strata], [one.drawn for one in strata])
        return units(*_columns(self.drawn)), sizes, units(*_columns(self.outside))

    def filled(self, errors: int) -> Population:
        """Return it as if those with an error had a score, after the others; 0 errors change nothing."""
        return replace(self, drawn=[*self.drawn, *self.missing], missing=()) if errors else self


def _columns(drawn: Sequence[Drawn]) -> tuple[list[int], list[float]]:
    return [one.stratum for one in drawn], [one.probability for one in drawn]
