"""What a summary says besides the means: what the run used, how long replies took, its tags, where scores vary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vivavoce.records.details import Latency, SkipSummary, VarianceSummary
from vivavoce.records.run import AttemptKey, Grading, ScoreRow
from vivavoce.run.agents import by_agent
from vivavoce.run.recorded import recording_summaries
from vivavoce.run.summary import Summary, TagSummary, grader_summary
from vivavoce.run.tallies import Tallies, Tally, tally
from vivavoce.stats.components import components
from vivavoce.stats.intervals import percentile
from vivavoce.store.store import Store

if TYPE_CHECKING:  # what reads a summary need not load all that a suite may name
    from vivavoce.grading.grader import Grader

SKIP_REASONS = 3
"""Reasons of skips that are named for each grader."""
MOST_TAGS = 50
"""Tags that are summed up: those with the most samples."""


def detailed(
    summary: Summary,
    tallies: Tallies,
    store: Store,
    grading: Grading,
    graders: Sequence[Grader] = (),
    *,
    running: bool = False,
) -> Summary:
    """Return a summary with the details of its run and its set of scores, read from the store.

    What agents did takes reading all conversations, which is not done while a run is `running`.
    """
    tags = store.details.tags(grading.run_id)
    like = next(iter(tallies.values()), Tally())
    seconds = store.details.seconds(grading.run_id)
    targets = dict.fromkeys([*(one.target for one in summary.graders), *seconds])  # in the order of the suite
    found = {
        "usage": store.details.usage(grading),
        "latency": [_latency(target, seconds[target]) for target in targets if target in seconds],
        "tags": _by_tag(tags, store, grading, graders, like),
        "more_tags": max(len({tag for each in tags.values() for tag in each}) - MOST_TAGS, 0),
        "variance": _variance(tallies, store, grading, graders),
        "skips": _skips(tallies, store, grading),
        "recording": recording_summaries(store, grading),
        **({} if running else by_agent(store, grading)),
    }
    return summary.model_copy(update=found)


def _skips(tallies: Tallies, store: Store, grading: Grading) -> list[SkipSummary]:
    """Return why graders did not apply to conversations, in the order of the graders."""
    if not any(tally.skipped for tally in tallies.values()):
        return []
    reasons: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for target, name, reason, number in store.details.skips(grading):
        reasons[target, name][reason] = number
    return [
        _skip(target, name, tally, reasons[target, name]) for (target, name), tally in tallies.items() if tally.skipped
    ]


def _skip(target: str, name: str, tally: Tally, reasons: Mapping[str, int]) -> SkipSummary:
    frequent = dict(sorted(reasons.items(), key=lambda item: -item[1])[:SKIP_REASONS])
    return SkipSummary(
        name=name,
        target=target,
        skipped=tally.skipped,
        conversations=tally.skipped + tally.errors + len(tally.values),
        reasons=frequent,
        other=tally.skipped - sum(frequent.values()),
    )


def _latency(target: str, seconds: Sequence[float]) -> Latency:
    p50, p95 = percentile(seconds, 50), percentile(seconds, 95)
    return Latency(target=target, replies=len(seconds), p50=p50 or 0.0, p95=p95 or 0.0)


def _by_tag(
    tags: Mapping[str, frozenset[str]],
    store: Store,
    grading: Grading,
    graders: Sequence[Grader],
    like: Tally,
) -> list[TagSummary]:
    """Return the results by tag, with intervals `like` those of the whole.

    Of a population of which only some were drawn, a tag is the part that has it: others are outside of it.
    """
    if not tags:
        return []
    counts = Counter(tag for each in tags.values() for tag in each)
    kept = sorted(sorted(counts, key=lambda tag: (-counts[tag], tag))[:MOST_TAGS])
    rows: dict[str, list[ScoreRow]] = {tag: [] for tag in kept}
    others: dict[str, list[ScoreRow]] = {tag: [] for tag in kept}
    for row in store.scores(grading.id):
        mine = tags.get(row.key.sample_id, ())
        for tag in kept if row.drawn is not None else mine:
            if tag in rows:
                (rows if tag in mine else others)[tag].append(row)
    known = {grader.name: grader for grader in graders}
    return [
        TagSummary(
            tag=tag,
            graders=[
                grader_summary(*key, one, known.get(key[1])) for key, one in _part(rows[tag], others[tag], like).items()
            ],
        )
        for tag in kept
    ]


def _part(rows: Sequence[ScoreRow], others: Sequence[ScoreRow], like: Tally) -> Tallies:
    """Return the tallies of some rows; `others` are those of the rest of what was drawn."""
    found = tally(rows, like.intervals, like.sampling)
    for row in others:
        part = found.get((row.key.target, row.name))
        if part is not None and row.drawn is not None and row.state != "error":
            part.outside.append(row.drawn)
    return found


def _variance(tallies: Tallies, store: Store, grading: Grading, graders: Sequence[Grader]) -> list[VarianceSummary]:
    """Return where the scores of each grader vary, where anything repeats."""
    votes: dict[tuple[AttemptKey, str], list[float]] = {}
    for key, name, values in store.details.votes(grading):
        votes[key, name] = values
    judged = {grader.name for grader in graders if grader.judged}
    found: list[VarianceSummary] = []
    for (target, name), one in tallies.items():
        judgements = _judgements(target, name, one, votes)
        if not any(len(trials) > 1 or len(trials[0]) > 1 for trials in judgements.values()):
            continue
        split = components(judgements)
        found.append(
            VarianceSummary(
                name=name,
                target=target,
                samples=split.samples,
                trials=split.trials,
                judgements=split.judgements,
                counted=len(judgements),
                judged=name in judged or split.judgements is not None,
            )
        )
    return found


def _judgements(
    target: str, name: str, one: Tally, votes: dict[tuple[AttemptKey, str], list[float]]
) -> dict[str, list[list[float]]]:
    """Return the judgements of each trial of each sample: the votes, or the score where it was judged once."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    for (sample, trial), value in zip(one.keys, one.values, strict=True):
        found[sample].append(votes.get((AttemptKey(sample, target, trial), name), [value]))
    return found
