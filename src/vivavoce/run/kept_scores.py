"""Keeping what a stored conversation was measured at: in a set of scores of its run that decides nothing.

Such a set is never complete, so that no list, comparison or trend takes it for the scores of the run. The same metrics
have one set for all conversations of a run; where a conversation is in it already, the next one is begun.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any

from vivavoce.errors import StoreError
from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.records.run import AttemptKey, Grading, Run
from vivavoce.records.score import Score
from vivavoce.store.store import Store

_DECIDING = frozenset(("gate", "reward", "agreement"))
"""Keys of a suite that say what follows from scores."""


async def keep_scores(
    store: Store,
    run: Run,
    key: AttemptKey,
    scores: Mapping[str, Score],
    metrics: Sequence[BaseMultiTurnMetric],
    graders: Mapping[str, Any],
) -> str | None:
    """Store the scores of a conversation by metrics, and return the id of their set; None where none can be kept.

    `graders` are the metrics as data, as in a suite.

    Raises:
        StoreError: the store cannot be written, or the run is not there any more.
    """
    kept = [metric for metric in metrics if can_be_kept(scores[metric.name])]
    if not kept:
        return None
    prints = {metric.name: metric_grader(metric.name, metric).fingerprint for metric in kept}
    spec = {name: value for name, value in run.spec.items() if name not in _DECIDING}
    spec["graders"] = {name: graders[name] for name in prints}
    digest = blake2b(json.dumps(prints, sort_keys=True).encode(), digest_size=3).hexdigest()
    for number in count(1):
        set_id = f"{run.id}-m{digest}" + (f"-{number}" if number > 1 else "")
        _begin(store, Grading(id=set_id, run_id=run.id, spec=spec, fingerprints=prints, created_at=time.time()))
        if _has(store, set_id, key):
            continue
        try:
            async with store.writer(run.id, set_id, prints) as writer:
                await writer.put_scores(key, {name: scores[name] for name in prints}, None)
        except StoreError:
            if not _has(store, set_id, key):  # else another request was a moment earlier
                raise
        else:
            return set_id
    raise AssertionError("there is always a next set")


def can_be_kept(score: Score) -> bool:
    """Return whether a score has a place in a set: it has a value from 0 to 1, is a measurement, or is not scored."""
    return score.state != "scored" or score.value is not None or score.measured is not None


def _begin(store: Store, grading: Grading) -> None:
    """Add a set of scores unless it is there."""
    if _is_there(store, grading):
        return
    try:
        store.add_grading(grading)
    except StoreError:
        if not _is_there(store, grading):  # else another request was a moment earlier
            raise


def _is_there(store: Store, grading: Grading) -> bool:
    return any(one.id == grading.id for one in store.gradings(grading.run_id))


def _has(store: Store, set_id: str, key: AttemptKey) -> bool:
    found = store.outcomes(set_id, sample_id=key.sample_id)
    return any(outcome.scores for outcome in found if outcome.attempt.key == key)
