"""Weights & Biases: a run as a run of the project with the name of its suite, through the extra `[wandb]`.

Where it is kept is said by its own settings: `WANDB_API_KEY`, `WANDB_ENTITY`, `WANDB_PROJECT`, `WANDB_MODE=offline`.
"""

from __future__ import annotations

import os
import re
from typing import Any, cast

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.features.publish.conversation import COLUMNS, LABEL_COLUMNS, label_cells, sample_cells
from vivavoce.features.publish.scores import figures, parameters
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import count

_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")
_MAX_CHARS = 128
"""Characters of the name of a project."""


def publish(graded: GradedRun) -> list[str]:
    """Log a run and return what was done, in words; logged again, the same set of scores is the same run there.

    Raises:
        MissingExtra: wandb is not installed.
        UsageError: wandb refuses it, or cannot be reached.
    """
    wandb = load()
    project = os.environ.get("WANDB_PROJECT") or _NOT_IN_A_NAME.sub("-", graded.run.suite)[:_MAX_CHARS]
    numbers = figures(graded.summary())
    known = {**parameters(graded), "run": graded.run.id, "grading": graded.grading.id}
    identity = _NOT_IN_A_NAME.sub("-", graded.grading.id)
    try:
        with wandb.init(
            project=project,
            id=identity,
            name=graded.run.id,
            resume="allow",
            config=known,
            job_type="evaluation",
            settings=wandb.Settings(silent=True, console="off"),
        ) as run:
            run.summary.update(numbers)
            if graded.grading.verdict is not None:
                run.summary["verdict"] = graded.grading.verdict
            tables = {"samples": wandb.Table(columns=list(COLUMNS), data=[list(row) for row in sample_cells(graded)])}
            labels = [list(cell) for cell in label_cells(graded)]
            if labels:
                tables["labels"] = wandb.Table(columns=list(LABEL_COLUMNS), data=labels)
            run.log(tables)
            place = run.dir if run.offline else run.url
    except wandb.Error as error:
        raise UsageError(f"Weights & Biases: {error}") from error
    also = f", with {count(len(labels), 'label')}" if labels else ""
    what = f"{len(known)} settings, {len(numbers)} figures and the samples"
    return [f"{what}: run {identity} of '{project}', {place}{also}"]


def load() -> Any:
    """Return the package.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import wandb  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtra("Weights & Biases", "wandb") from error
    return cast("Any", wandb)
