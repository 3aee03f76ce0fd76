"""`find_clusters`: the failures of a graded run, by what they have in common."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vivavoce.errors import NotFound
from vivavoce.features.clusters.reasons import Compared, group_texts
from vivavoce.features.clusters.records import Cluster, Clusters, Example, Kind
from vivavoce.features.clusters.signatures import MAX_CHARS, Signature, mask_details, of_failure, of_finding, of_tool
from vivavoce.features.clusters.words import most_telling, stems_of
from vivavoce.grading.scores import Population
from vivavoce.models.embedder import EmbedderLike
from vivavoce.records.run import AttemptKey, FailureRow, Grading, Sampling, ScoreRow
from vivavoce.report.text import one_line
from vivavoce.stats.intervals import TrialCounts, share_interval
from vivavoce.store.store import Store

EXAMPLES = 3
"""Failures of a cluster that are shown."""
WIDTH = 400
"""Characters of a reason at most."""
NO_REASON = "no reason was given"


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """Clusters, and which conversations each has, by its id, in the order of the plan of the run."""

    report: Clusters
    members: Mapping[str, Sequence[AttemptKey]]

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of an id.

        Raises:
            NotFound: there is none.
        """
        for cluster in self.report.clusters:
            if cluster.id == name:
                return cluster
        known = {cluster.id for cluster in self.report.clusters}
        raise NotFound("cluster", name, within=f"run {self.report.run}", known=known)


@dataclass(frozen=True, slots=True)
class _Group:
    kind: Kind
    key: str
    title: str
    rows: Sequence[FailureRow]


def find_clusters(
    store: Store, grading: Grading, *, grader: str | None = None, embedder: EmbedderLike | None = None
) -> ClusterResult:
    """Group what failed in a graded run: by equal signatures, and reasons without one by what they say.

    `grader` leaves only failures of that grader. `embedder` compares the reasons: `words`, `local`, or the name of
    another; by default `local` where it is installed and the reasons are few. The result is the same each time.

    Raises:
        UsageError: there is no such grader or embedder.
        ModelFault: the embedder failed.
    """
    every = list(store.failures(grading.id))
    scored = list(store.scores(grading.id))
    names = {row.name for row in scored if row.kind == "grade"} | set(grading.fingerprints)
    if grader is not None and grader not in names:
        raise NotFound("grader", grader, within=f"run {grading.run_id}", known=names)
    rows = [row for row in every if grader is None or row.grader == grader]
    everyone = list(dict.fromkeys(row.key for row in (*scored, *every)))
    exact: defaultdict[Signature, list[FailureRow]] = defaultdict(list)
    by_reason: defaultdict[str, list[FailureRow]] = defaultdict(list)
    for row in rows:
        if signatures := _signatures(row):
            for signature in signatures:
                exact[signature].append(row)
        else:
            by_reason[mask_details(row.reason) or NO_REASON].append(row)
    texts = sorted(by_reason, key=lambda text: (-len(by_reason[text]), text))
    how = group_texts(texts, embedder)
    groups = [*map(_of_signature, exact, exact.values()), *_of_reasons(texts, by_reason, how)]
    ids = {group.key: _id(group) for group in groups}
    everywhere, total = stems_of([row.reason[:MAX_CHARS] for row in rows]), max(1, len(rows))
    share = _Shares(everyone, _population(store.run(grading.run_id).sampling, scored, everyone))
    clusters = [_cluster(group, ids[group.key], share, everywhere, total) for group in groups]
    clusters.sort(key=lambda cluster: (-cluster.conversations, -cluster.failures, cluster.title, cluster.id))
    report = Clusters(
        run=grading.run_id,
        grading=grading.id,
        grader=grader,
        conversations=len(everyone),
        failed=len({row.key for row in rows}),
        failures=len(rows),
        method=how.method,
        clusters=tuple(clusters),
    )
    return ClusterResult(report, {ids[group.key]: _keys(group.rows) for group in groups})


def _signatures(row: FailureRow) -> list[Signature]:
    if row.failure is not None:
        return [of_failure(row.failure, row.grader)]
    missed = [of_finding(finding, row.grader or "") for finding in row.findings]
    signatures = [*missed, *(of_tool(tool.tool, tool.text) for tool in row.tools)]
    return list(dict.fromkeys(signature for signature in signatures if signature is not None))


def _of_signature(signature: Signature, rows: Sequence[FailureRow]) -> _Group:
    kinds: Mapping[str, Kind] = {"error": "error", "tool": "tool", "expectation": "expectation"}
    return _Group(kinds[signature.kind], "\n".join(signature), f"{signature.source}: {signature.text}", rows)


def _of_reasons(texts: Sequence[str], by_reason: Mapping[str, list[FailureRow]], how: Compared) -> Iterable[_Group]:
    """Yield the groups of reasons; the most frequent reason of each is its title."""
    members: defaultdict[int, list[str]] = defaultdict(list)
    for text, group in zip(texts, how.groups, strict=True):
        members[group].append(text)
    for inside in members.values():
        rows = [row for text in inside for row in by_reason[text]]
        typical = by_reason[inside[0]][0].reason or NO_REASON
        yield _Group("reason", f"reason\n{inside[0]}", typical, rows)


def _id(group: _Group) -> str:
    return hashlib.sha256(f"{group.kind}\n{group.key}".encode("utf-8", "replace")).hexdigest()[:10]


def _keys(rows: Iterable[FailureRow]) -> list[AttemptKey]:
    return list(dict.fromkeys(row.key for row in rows))


def _population(sampling: Sampling | None, rows: Sequence[ScoreRow], keys: Sequence[AttemptKey]) -> Population | None:
    """Return what conversations stand for, None where all were judged."""
    if sampling is None:
        return None
    probabilities = {row.key: row.drawn for row in rows if row.drawn is not None}
    return Population(sampling, [probabilities[key] for key in keys])


class _Shares:
    """Parts of all conversations, including those that are not judged; trials of one sample are not independent."""

    def __init__(self, everyone: Sequence[AttemptKey], population: Population | None) -> None:
        self._everyone = everyone
        self._population = population
        self._trials = Counter(key.sample_id for key in everyone)
        self._samples_by_trials = Counter(self._trials.values())

    def of(self, keys: Sequence[AttemptKey]) -> tuple[float, float | None, float | None]:
        share = len(keys) / len(self._everyone)
        if self._population is not None:
            inside = set(keys)
            estimate = self._population.mean([float(key in inside) for key in self._everyone])
            return (share, None, None) if estimate is None else (estimate.mean, estimate.low, estimate.high)
        interval = share_interval(self._counts(keys))
        return (share, None, None) if interval is None else (share, interval.low, interval.high)

    def _counts(self, keys: Sequence[AttemptKey]) -> TrialCounts:
        """Return how many samples have p of n conversations inside, by (p, n), without a look at those outside."""
        inside = Counter(key.sample_id for key in keys)
        counts = Counter((number, self._trials[sample]) for sample, number in inside.items())
        left = self._samples_by_trials - Counter(self._trials[sample] for sample in inside)
        counts.update({(0, trials): number for trials, number in left.items()})
        return counts


def _cluster(group: _Group, name: str, shares: _Shares, everywhere: Counter[str], total: int) -> Cluster:
    keys = _keys(group.rows)
    share, low, high = shares.of(keys)
    firsts = {row.key: row for row in reversed(group.rows)}
    return Cluster(
        id=name,
        kind=group.kind,
        title=one_line(group.title, WIDTH),
        words=tuple(most_telling([row.reason[:MAX_CHARS] for row in group.rows], everywhere, total)),
        graders=tuple(sorted({row.grader for row in group.rows if row.grader is not None})),
        conversations=len(keys),
        failures=len(group.rows),
        share=share,
        low=low,
        high=high,
        examples=tuple(_example(firsts[key]) for key in keys[:EXAMPLES]),
    )


def _example(row: FailureRow) -> Example:
    sample_id, target, trial = row.key
    reason = one_line(row.reason or NO_REASON, WIDTH)
    return Example(sample_id=sample_id, trial=trial, target=target, turn=row.turn, grader=row.grader, reason=reason)
