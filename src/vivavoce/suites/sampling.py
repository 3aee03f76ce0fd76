"""Drawing some conversations of a file to judge, so that what they say holds for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vivavoce.errors import UsageError
from vivavoce.grading.gates import Gate, LogicalGate, SamplesGate
from vivavoce.records.sampling import Drawn, Sampling, Stratum
from vivavoce.samples.sample import Sample
from vivavoce.stats.drawing import allocation, inclusion, systematic, with_floor
from vivavoce.suites.traits import Trait, trait_of

MOST = 50
"""Strata at most, those with the most conversations; the others are one."""
OTHER = "other"

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Draw:
    """The conversations that were drawn, by their place in the file from 0, and how."""

    sampling: Sampling
    places: Mapping[int, Drawn]


@dataclass(slots=True)
class Sampler:
    """Reads a whole dataset, keeps of each conversation what it is told apart by, and draws `size` of them."""

    size: int
    by: Sequence[Trait] = ()
    weight_by: Trait | None = None
    population: int = field(default=0, init=False)

    @classmethod
    def of(cls, size: int, by: Sequence[str], weight_by: str | None, base: Path) -> Self:
        """Return one that tells conversations apart by what is named; files are relative to `base`.

        Raises:
            UsageError: they cannot be told apart by that.
        """
        weight = None if weight_by is None else trait_of(weight_by, base)
        return cls(size, [trait_of(one, base) for one in dict.fromkeys(by)], weight)

    def add(self, sample: Sample) -> None:
        """Take the next conversation.

        Raises:
            UsageError: a metric cannot measure it.
        """
        self.population += 1
        for trait in self.by:
            trait.add(sample)
        if self.weight_by is not None:
            self.weight_by.add(sample)

    def draw(self, dataset: str) -> Draw | None:
        """Return what was drawn, the same for the same `dataset`, a hash; None where all are to be judged.

        Raises:
            UsageError: no conversation has what they are told apart by.
        """
        strata, names = self._strata()
        weights = None if self.weight_by is None else with_floor(self.weight_by.weights())
        if self.size >= self.population:
            return None
        sizes = np.bincount(strata, minlength=len(names)).tolist()
        counts = allocation(sizes, self.size)
        places: dict[int, Drawn] = {}
        for stratum, count in enumerate(counts):
            mine = np.flatnonzero(strata == stratum)
            random = np.random.RandomState(_seed(f"{dataset} {names[stratum]}"))
            chances = inclusion(np.ones(len(mine)) if weights is None else weights[mine], count)
            for at in systematic(chances, random).tolist():
                places[int(mine[at])] = Drawn(stratum, float(chances[at]))
        ordered = dict(sorted(places.items()))
        sampling = Sampling(
            by=[trait.name for trait in self.by],
            weight_by=None if self.weight_by is None else self.weight_by.name,
            strata=[Stratum(name=a, size=b, drawn=c) for a, b, c in zip(names, sizes, counts, strict=True)],
            places=hashlib.blake2b(repr([*ordered.items()]).encode(), digest_size=16).hexdigest(),
        )
        return Draw(sampling, ordered)

    @property
    def note(self) -> str:
        """What to say where all are judged."""
        number = f"{self.population:,} conversation{'s' * (self.population != 1)}"
        return f"the file has {number}, so --sample {self.size} judges all: nothing is estimated"

    def _strata(self) -> tuple[Places, list[str]]:
        """Return the stratum of each conversation and the names of the strata, the largest first and rare ones as one.

        Rare are those of which less than one is drawn in proportion, and those beyond the most.
        """
        joined, names = np.zeros(self.population, dtype=np.intp), [""]
        for trait in self.by:
            groups, of_groups = trait.groups()
            both, joined = np.unique(joined * len(of_groups) + groups, return_inverse=True)
            pairs = (divmod(int(one), len(of_groups)) for one in both)
            names = [", ".join(filter(None, (names[before], of_groups[mine]))) for before, mine in pairs]
            joined, names = _with_rare(joined, names, self.size)
        return joined, [name or "all" for name in names]


def _seed(text: str) -> int:
    """Return a seed that is the same wherever the same is drawn from; each stratum has its own, whatever the others."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest())


def _with_rare(joined: Places, names: Sequence[str], size: int) -> tuple[Places, list[str]]:
    counts = np.bincount(joined, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    most = max(1, min(MOST, size // 2))
    large = [int(one) for one in order if counts[one] * size >= len(joined)]
    kept = large if len(large) == len(names) <= most else large[: most - 1]
    place = np.full(len(names), len(kept))
    place[kept] = np.arange(len(kept))
    rest = [one for one in range(len(names)) if one not in set(kept)]
    last = [] if not rest else [names[rest[0]] if len(rest) == 1 else OTHER if kept else ""]
    return place[joined], [*(names[one] for one in kept), *last]


def check_gate(gate: Gate | None) -> None:
    """Refuse a gate that conversations which were not judged could decide otherwise.

    Raises:
        UsageError: it is about each conversation, and not about a mean.
    """
    if gate is None:
        return
    if isinstance(gate, LogicalGate):
        for one in gate.conditions:
            check_gate(one)
        return
    if isinstance(gate, SamplesGate):
        raise UsageError("a gate about each sample is about all of them, and not all are judged: leave out sample")
    what = gate.threshold.aggregation
    if what not in ("avg_score", "accuracy"):
        raise UsageError(f"a gate on {what} cannot be decided by a sample: use avg_score or accuracy, or judge all")
