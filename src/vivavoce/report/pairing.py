"""Which samples of two runs are the same scenario, and which have no partner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vivavoce.records.run import Attempt

Scenarios = Mapping[str, frozenset[str]]
"""The scenarios of each sample; more than one where every recorded trial is a conversation of its own."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs of sample ids, first side and second, and the ids that have no partner."""

    pairs: tuple[tuple[str, str], ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def scenarios_of(attempts: Iterable[Attempt]) -> dict[str, dict[str, frozenset[str]]]:
    """Return the scenarios of each sample by target; nothing else of an attempt is kept."""
    found: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for attempt in attempts:
        samples = found[attempt.key.target]
        known = samples.get(attempt.key.sample_id, frozenset[str]())
        if attempt.scenario not in known:
            samples[attempt.key.sample_id] = known | {attempt.scenario}
    return dict(found)


def pair(a: Scenarios, b: Scenarios) -> Pairing:
    """Pair the samples of two sides that ask and know the same, whatever their ids.

    Where several samples of a side share a scenario, those with the same id belong together.
    """
    groups_a, groups_b = _by_scenario(a), _by_scenario(b)
    pairs: list[tuple[str, str]] = []
    for scenario, ids_a in groups_a.items():
        ids_b = groups_b.get(scenario, [])
        if len(ids_a) == len(ids_b) == 1:
            pairs.append((ids_a[0], ids_b[0]))
        else:
            same = set(ids_b)
            pairs += [(one, one) for one in ids_a if one in same]
    taken_a, taken_b = {one for one, _ in pairs}, {other for _, other in pairs}
    only_a = tuple(one for one in a if one not in taken_a)
    only_b = tuple(one for one in b if one not in taken_b)
    return Pairing(tuple(pairs), only_a, only_b)


def _by_scenario(samples: Scenarios) -> dict[frozenset[str], list[str]]:
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for sample_id, scenario in samples.items():
        groups[scenario].append(sample_id)
    return groups
