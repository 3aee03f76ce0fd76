"""Where the labels are that a judge is compared with: on the pages, in a file, or in the rows of the dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import existing
from vivavoce.errors import UsageError
from vivavoce.features.calibration.calibration import find_calibration, from_dataset, from_file
from vivavoce.records.label import Calibration
from vivavoce.report.graded_run import GradedRun
from vivavoce.settings import user_name

LabelsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A JSON Lines file of labels, as viva labels export writes it; default: labels from the pages.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="Use this label of the dataset instead, a dotted path in the labels of its rows."),
]
GoodFromOption = Annotated[
    float | None, typer.Option(help="With --label: the number at or above which a conversation is good.")
]
RandomOption = Annotated[
    bool,
    typer.Option("--random", help="Treat the labels of --labels or --label as a random sample."),
]


@dataclass(frozen=True, slots=True)
class LabelSource:
    """The options of a command that say where labels are."""

    labels: Path | None
    label: str | None
    good_from: float | None
    at_random: bool

    def check(self) -> None:
        """Check that the options go together.

        Raises:
            UsageError: they do not.
        """
        if self.labels is not None and self.label is not None:
            raise UsageError("--labels and --label cannot be combined")
        if self.good_from is not None and self.label is None:
            raise UsageError("--good-from needs --label")
        if self.at_random and self.labels is None and self.label is None:
            raise UsageError("--random is for --labels and --label; labels from the pages record how they were sampled")

    def gather(self, graded: GradedRun, grader: str) -> tuple[Calibration, bool]:
        """Return the labels next to the verdicts of a grader, and whether they were kept before."""
        author = user_name()
        if self.labels is not None:
            return from_file(graded, grader, existing(self.labels), author, at_random=self.at_random), False
        if self.label is not None:
            calibration = from_dataset(
                graded, grader, self.label, author, good_from=self.good_from, at_random=self.at_random
            )
            return calibration, False
        return find_calibration(graded.store, graded.grading, grader, author)
