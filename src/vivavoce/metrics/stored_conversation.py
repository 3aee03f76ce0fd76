"""Evaluating a conversation of a stored run, and what a metric is given of it."""

from __future__ import annotations

import json
import os

from pydantic import ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import describe
from vivavoce.metrics.evaluation import EvaluationReport, Named, OneOrMore, Several, evaluate_input
from vivavoce.metrics.types import MultiTurnEvaluationInput, metric_input
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.loops import wait_for
from vivavoce.records.run import Attempt, Run
from vivavoce.samples.sample import Sample
from vivavoce.settings import settings
from vivavoce.store.runs.naming import no_conversation, split_conversation
from vivavoce.store.store import Store


def evaluate_test_result(
    test_result_id: str,
    metrics: OneOrMore[Named | Several],
    *,
    model: ModelLike | None = None,
    store: str | os.PathLike[str] | None = None,
) -> EvaluationReport:
    """Measure a stored conversation with several metrics; nothing in the store changes.

    `test_result_id` is `RUN/SAMPLE`, or `RUN/SAMPLE#2` for the second of several trials; without a number it is the
    first. For a run with one conversation `RUN` is enough; it may be `latest`. The metrics get what the sample knows,
    such as its goal. `model` judges for the metrics given by name.

    Raises:
        UsageError: there is no such run, sample or trial; or a metric is unknown.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    with Store.open(store or settings().store, create=False) as opened:
        _, attempt = stored_attempt(opened, test_result_id)
        stored = input_of(attempt)
    return wait_for(evaluate_input(stored, metrics, model, close=True))


def stored_attempt(store: Store, test_result_id: str) -> tuple[Run, Attempt]:
    """Return a stored conversation, and its run.

    Raises:
        UsageError: there is no such run, sample or trial.
    """
    only = "/" not in test_result_id and _only_conversation(store, test_result_id)
    name, sample = only or split_conversation(test_result_id)
    run = store.run(name)
    sample, trial = store.named_conversation(run.id, sample)
    attempts = list(store.attempts(run.id, sample_id=sample))
    if not attempts:
        samples = {key.sample_id for key in store.done(run.id)}
        raise NotFound("sample", sample, within=f"run {run.id}", known=samples)
    for attempt in attempts:
        if attempt.key.trial == (trial or 0) or (trial is None and len(attempts) == 1):
            return run, attempt
    raise no_conversation(run.id, sample, None, trial, (attempt.key for attempt in attempts))


def _only_conversation(store: Store, name: str) -> tuple[str, str] | None:
    """Return the run of a name and its sample, where there is such a run and it has one conversation."""
    try:
        keys = store.done(store.run(name).id)
    except NotFound:
        return None
    return (name, next(iter(keys)).sample_id) if len(keys) == 1 else None


def input_of(attempt: Attempt) -> MultiTurnEvaluationInput:
    """Return what a metric is given of a stored conversation.

    Raises:
        UsageError: its row is of an older vivavoce and cannot be read any more.
    """
    row = json.loads(attempt.sample)
    messages = attempt.trajectory.messages
    try:
        sample = Sample.model_validate(row if "input" in row else {**row, "messages": messages})
    except ValidationError as error:
        raise UsageError(f"sample '{attempt.key.sample_id}': {describe(error)}") from error
    trajectory = attempt.trajectory
    return metric_input(
        sample,
        messages,
        [turn.seconds for turn in trajectory.turns],
        state=trajectory.state,
        test=trajectory.test,
        trial=attempt.key.trial,
    )
