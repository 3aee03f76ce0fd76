"""Pairing the samples of two runs: which are the same scenario, and which have no match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Scenario: TypeAlias = str | frozenset[str]
"""The content of a sample; several if every recorded trial is a conversation of its own."""

Scenarios: TypeAlias = Mapping[str, Scenario]
"""The scenario of each sample."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs of sample ids, first side and second, and the ids without a match."""

    pairs: tuple[tuple[str, str], ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def scenarios_of(samples: Sequence[str], scenarios: Sequence[str]) -> dict[str, Scenario]:
    """Return the scenario of each sample, from the sample and the scenario of each attempt."""
    found: dict[str, Scenario] = dict(zip(samples, scenarios, strict=True))
    if len(found) == len(samples):
        return found
    found = {}
    for sample, scenario in zip(samples, scenarios, strict=True):
        known = found.setdefault(sample, scenario)
        if known != scenario:
            found[sample] = (frozenset((known,)) if isinstance(known, str) else known) | {scenario}
    return found


def pair(a: Scenarios, b: Scenarios) -> Pairing:
    """Pair the samples of two sides with the same content, whatever their ids.

    If several samples of a side share a scenario, samples with the same id are paired.
    """
    (firsts_a, shared_a), (firsts_b, shared_b) = _by_scenario(a), _by_scenario(b)
    if not shared_a and not shared_b:
        pairs = [(one, firsts_b[scenario]) for scenario, one in firsts_a.items() if scenario in firsts_b]
    else:
        pairs = list(_shared_pairs(firsts_a, shared_a, firsts_b, shared_b))
    return Pairing(tuple(pairs), _left(a, [one for one, _ in pairs]), _left(b, [other for _, other in pairs]))


def _shared_pairs(
    firsts_a: Mapping[Scenario, str],
    shared_a: Mapping[Scenario, Sequence[str]],
    firsts_b: Mapping[Scenario, str],
    shared_b: Mapping[Scenario, Sequence[str]],
) -> Iterator[tuple[str, str]]:
    """Yield the pairs where several samples of a side share a scenario."""
    for scenario, one in firsts_a.items():
        other = firsts_b.get(scenario)
        if other is None:
            continue
        if scenario in shared_a or scenario in shared_b:
            same = set(shared_b.get(scenario, [other]))
            yield from ((known, known) for known in shared_a.get(scenario, [one]) if known in same)
        else:
            yield one, other


def _left(samples: Scenarios, taken: Sequence[str]) -> tuple[str, ...]:
    """Return the samples that are in no pair; none is in two."""
    if len(taken) == len(samples):
        return ()
    known = set(taken)
    return tuple(one for one in samples if one not in known)


def _by_scenario(samples: Scenarios) -> tuple[dict[Scenario, str], dict[Scenario, list[str]]]:
    """Return the first sample of each scenario, and all samples of those that have several."""
    firsts = dict(zip(samples.values(), samples, strict=True))
    if len(firsts) == len(samples):
        return firsts, {}
    firsts = dict[Scenario, str]()
    shared: dict[Scenario, list[str]] = {}
    for sample, scenario in samples.items():
        first = firsts.setdefault(scenario, sample)
        if first != sample:
            shared.setdefault(scenario, [first]).append(sample)
    return firsts, shared
