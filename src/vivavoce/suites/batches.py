"""What a run has with batch services, and an end to it."""

from __future__ import annotations

from vivavoce.pacing.budget import Budget
from vivavoce.records.batch import Batch
from vivavoce.records.run import Run
from vivavoce.run.execution import kept_answers
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import build_experiment
from vivavoce.suites.opening import options_of
from vivavoce.suites.stored import stored_suite


async def cancel_batches(store: Store, run: Run) -> list[Batch]:
    """Ask the services of a run to answer no more, and return the batches that this is about.

    What they have answered is charged, and taken when the run goes on.

    Raises:
        UsageError: the judges of the run cannot be opened, as where a key is missing.
        ModelFault: a service refuses.
    """
    going = [one for one in store.batches.of_run(run.id) if one.ended_at is None and one.service_id is not None]
    if not going:
        return []
    options = RunOptions.model_validate({**options_of(run), "batch": True, "max_calls": None, "max_cost": None})
    async with kept_answers(store, cache=True) as replies:
        experiment = build_experiment(stored_suite(run), options, Budget(), replies)
        models = experiment.batches.models if experiment.batches is not None else {}
        try:
            for batch in going:
                await models[batch.identity].service.cancel(batch.service_id or "")
        finally:
            for model in models.values():
                await model.service.close()
            await experiment.close()
    return going
