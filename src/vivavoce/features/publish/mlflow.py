"""MLflow: a run as a run of the experiment with the name of its suite, through the extra `[mlflow]`.

Where it is kept is said by MLflow's own settings, such as `MLFLOW_TRACKING_URI`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.features.publish.conversation import COLUMNS, LABEL_COLUMNS, Cell, label_cells, sample_cells
from vivavoce.features.publish.scores import figures, parameters
from vivavoce.records.run import Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import count, strict_json

GRADING, COMPLETE = "vivavoce.grading", "vivavoce.complete"
"""Tags of a run: which set of scores it holds, and that it holds all of it."""
TABLE, LABELS = "samples.json", "labels.json"
_MAX_CHARS = 500
"""Characters of a parameter, which every store of MLflow takes."""
_PARAMS_AT_ONCE, _METRICS_AT_ONCE = 100, 1000
_NOT_IN_A_NAME = re.compile(r"[^\w\-. :/]")
_PASSWORD = re.compile(r"//[^/@]*@")


def publish(graded: GradedRun) -> list[str]:
    """Log a run and return what was done, in words.

    A set of scores that is there already is left as it is; only its tables are rewritten, for people may have
    labelled it since.

    Raises:
        MissingExtra: MLflow is not installed.
        UsageError: MLflow refuses it, or cannot be reached.
    """
    mlflow = load()
    try:
        return _publish(graded, mlflow)
    except mlflow.exceptions.MlflowException as error:
        raise UsageError(f"MLflow: {error}") from error


def load() -> Any:
    """Return the package.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import mlflow  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtra("MLflow", "mlflow") from error
    return cast("Any", mlflow)


def _publish(graded: GradedRun, mlflow: Any) -> list[str]:
    client = mlflow.MlflowClient()
    suite = graded.run.suite
    stored_experiment = client.get_experiment_by_name(suite)
    experiment = stored_experiment.experiment_id if stored_experiment is not None else client.create_experiment(suite)
    place = f"experiment '{suite}' at {_PASSWORD.sub('//***@', mlflow.get_tracking_uri())}"
    for known in client.search_runs([experiment], f"tags.`{GRADING}` = '{graded.grading.id}'"):
        if known.data.tags.get(COMPLETE):
            also = _tables(graded, client, known.info.run_id)
            return [f"the scores {graded.grading.id} already exist: run {known.info.run_id} of the {place}{also}"]
        client.delete_run(known.info.run_id)
    tags = {GRADING: graded.grading.id, "vivavoce.run": graded.run.id}
    if graded.grading.verdict is not None:
        tags["vivavoce.verdict"] = graded.grading.verdict
    stored_run = client.create_run(
        experiment, start_time=_milliseconds(graded.run.started_at), tags=tags, run_name=graded.run.id
    )
    identity = stored_run.info.run_id
    known_as, numbers, also = _log(graded, client, identity, mlflow.entities)
    if graded.ended:
        client.set_tag(identity, COMPLETE, "1")
    client.set_terminated(identity, _status(graded.run), end_time=_milliseconds(graded.run.finished_at))
    return [f"{known_as} parameters, {numbers} metrics and the samples: run {identity} of the {place}{also}"]


def _log(graded: GradedRun, client: Any, identity: str, entities: Any) -> tuple[int, int, str]:
    at = _milliseconds(graded.run.finished_at or graded.run.started_at) or 0
    known = _rename_keys(parameters(graded))
    params = [entities.Param(name, value[:_MAX_CHARS]) for name, value in known.items()]
    metrics = [entities.Metric(name, value, at, 0) for name, value in _rename_keys(figures(graded.summary())).items()]
    for start in range(0, len(params), _PARAMS_AT_ONCE):
        client.log_batch(identity, params=params[start : start + _PARAMS_AT_ONCE])
    for start in range(0, len(metrics), _METRICS_AT_ONCE):
        client.log_batch(identity, metrics=metrics[start : start + _METRICS_AT_ONCE])
    return len(params), len(metrics), _tables(graded, client, identity)


def _tables(graded: GradedRun, client: Any, identity: str) -> str:
    """Write the tables, and return what the one of labels has, in words."""
    labels = [list(cells) for cells in label_cells(graded)]
    tables: dict[str, tuple[tuple[str, ...], list[list[Cell]]]] = {
        TABLE: (COLUMNS, [list(cells) for cells in sample_cells(graded)])
    }
    if labels:
        tables[LABELS] = (LABEL_COLUMNS, labels)
    for path, (columns, rows) in tables.items():
        client.log_text(identity, strict_json({"columns": list(columns), "data": rows}), path)
    logged = [{"path": path, "type": "table"} for path in tables]
    client.set_tag(identity, "mlflow.loggedArtifacts", strict_json(logged))
    return f", with {count(len(labels), 'label')}" if labels else ""


def _rename_keys(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return values under names that MLflow takes; names that become the same get a number."""
    renamed: dict[str, Any] = {}
    for name, value in known.items():
        free = base = _NOT_IN_A_NAME.sub("_", name)
        number = 1
        while free in renamed:
            number += 1
            free = f"{base}_{number}"
        renamed[free] = value
    return renamed


def _status(run: Run) -> str:
    return {"finished": "FINISHED", "interrupted": "KILLED", "running": "RUNNING"}[run.status]


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
