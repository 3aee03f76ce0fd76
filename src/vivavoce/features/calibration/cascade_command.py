"""`viva cascade`: where a cheap judge may decide alone, chosen on labels, and what that saves."""

from __future__ import annotations

from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, print_json, print_lines, store_of
from vivavoce.features.calibration.cascade import cascade_report
from vivavoce.features.calibration.cascade_report import cascade_lines
from vivavoce.features.calibration.label_source import (
    GoodFromOption,
    LabelOption,
    LabelsOption,
    LabelSource,
    RandomOption,
)
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.labelling import check_question
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    first: Annotated[str, typer.Option(help="The grader with the cheap judge or metric.")],
    then: Annotated[str, typer.Option(help="The grader with the expensive judge.")],
    labels: LabelsOption = None,
    label: LabelOption = None,
    good_from: GoodFromOption = None,
    at_random: RandomOption = False,
    cost: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="The most that it may cost, as a share of the expensive judge alone."),
    ] = 1.0,
    grading: Annotated[str | None, typer.Option(help="A set of scores; default: the newest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Choose on labels where a cheap judge decides alone, and send only the rest to the expensive one.

    Both are graders of one run. Every pair of thresholds is tried on one half of the labels; chosen is the cheapest
    under which the whole agrees with people as far as the expensive judge does. The figures are those of the other
    half, because a choice looks better on the labels it was made on than it is. Labels are read as by viva calibrate,
    and only those of conversations that were drawn at random count.
    """
    source = LabelSource(labels, label, good_from, at_random)
    source.check()
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        graded = GradedRun(opened, found, opened.grading(found.id, grading))
        check_question(first, graded.grading)
        check_question(then, graded.grading)
        calibration, _ = source.gathered(graded, then)
        report = cascade_report(graded, first, calibration, cost)
    if as_json:
        print_json(report.model_dump_json(indent=2))
        return
    print_lines(cascade_lines(report))
