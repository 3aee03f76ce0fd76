"""`viva calibrate` and `viva calibrate cascade`: how far to believe a judge, and where a cheap one may decide."""

from __future__ import annotations

from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, notes, out, print_json, print_lines, store_of
from vivavoce.errors import UsageError
from vivavoce.features.calibration.calibration import WIDTH, calibration_report
from vivavoce.features.calibration.cascade import cascade_report
from vivavoce.features.calibration.cascade_report import cascade_lines
from vivavoce.features.calibration.label_source import (
    GoodFromOption,
    LabelOption,
    LabelsOption,
    LabelSource,
    RandomOption,
)
from vivavoce.features.calibration.report import markdown_lines, terminal_lines
from vivavoce.report.graded_run import GradedRun, require_grader
from vivavoce.report.text import count, record_json
from vivavoce.settings import user_name
from vivavoce.store.queues import QueuePlan
from vivavoce.store.store import Store


def calibrate(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    grader: Annotated[str, typer.Option(help="Calibrate this grader's judge.")],
    labels: LabelsOption = None,
    label: LabelOption = None,
    good_from: GoodFromOption = None,
    at_random: RandomOption = False,
    width: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="The target width of the rate's 95% interval.")
    ] = WIDTH,
    draw: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Sample N conversations to label; more informative ones are more likely."
        ),
    ] = None,
    people: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With --draw: who labels them, separated by commas.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="With --draw: the random seed.")] = 1,
    grading: Annotated[str | None, typer.Option(help="The grading to use; default: the newest.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the figures without saving the labels.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the figures as Markdown.")] = False,
    store: StoreOption = None,
) -> None:
    """Calibrate a judge against human labels, and save the labels to correct the judge's rates.

    Only labels of randomly sampled conversations count: from a blind queue in random order, from --draw, or from a file
    or dataset with --random or with a label for every conversation. The labels are saved with the fingerprint of the
    judge: its prompt, model and settings. Every run with this fingerprint then shows the corrected rate next to the
    judge's own, and a gate can use it with on: corrected_lower. With --draw, the command assigns conversations to
    people instead, who find them under Label on the pages.
    """
    source = LabelSource(labels, label, good_from, at_random)
    source.check()
    _check(draw, people, with_figures=bool(labels or label or as_json or markdown))
    if as_json and markdown:
        raise UsageError("--json and --markdown cannot be combined")
    with Store.open(store_of(store), create=False) as opened:
        stored_run = opened.run(run)
        graded = GradedRun(opened, stored_run, opened.grading(stored_run.id, grading))
        require_grader(grader, graded.grading)
        if draw is not None:
            _draw(graded, grader, draw, people or "", seed)
            return
        calibration, is_saved = source.gather(graded, grader)
        keep = not dry_run and not is_saved and bool(calibration.drawn_labels)
        if keep:
            opened.calibrations.add(calibration)
        report = calibration_report(opened, graded.grading, calibration, width=width, is_saved=is_saved or keep)
    if as_json:
        print_json(record_json(report))
        return
    print_lines(markdown_lines(report) if markdown else terminal_lines(report))
    if is_saved:
        notes().print(f"already saved as {report.id}; there are no new labels from the pages", soft_wrap=True)
    elif keep:
        note = f"saved as {report.id}; corrects the rates of this judge until its prompt, model or settings change"
        notes().print(note, soft_wrap=True)
    elif not dry_run:
        notes().print("nothing was saved: no label is of a randomly sampled conversation")


def cascade(
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
        typer.Option(min=0.001, max=1.0, help="The maximum cost, as a share of the cost of the expensive judge alone."),
    ] = 1.0,
    grading: Annotated[str | None, typer.Option(help="The grading to use; default: the newest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Choose, from labels, when a cheap judge decides alone, and send only the rest to the expensive judge.

    Both are graders of one run. The command tries every pair of thresholds on one half of the labels, and chooses the
    cheapest pair with which the cascade agrees with people as well as the expensive judge does. The figures come from
    the other half, because a choice looks too good on the labels it was made from. Labels are read as in viva
    calibrate, and only those of randomly sampled conversations count.
    """
    source = LabelSource(labels, label, good_from, at_random)
    source.check()
    with Store.open(store_of(store), create=False) as opened:
        stored_run = opened.run(run)
        graded = GradedRun(opened, stored_run, opened.grading(stored_run.id, grading))
        require_grader(first, graded.grading)
        require_grader(then, graded.grading)
        calibration, _ = source.gather(graded, then)
        report = cascade_report(graded, first, calibration, cost)
    if as_json:
        print_json(record_json(report))
        return
    print_lines(cascade_lines(report))


def _draw(graded: GradedRun, grader: str, number: int, people: str, seed: int) -> None:
    names = [name.strip() for name in people.split(",") if name.strip()]
    plan = QueuePlan(grader, names, size=number, selection="weighted", seed=seed)
    queue = graded.store.queues.create(graded.grading, plan, user_name())
    each = ", ".join(f"{person.person} {person.assigned}" for person in queue.people)
    out().print(f"{count(queue.items, 'conversation')} sampled into queue {queue.id}: {each}", soft_wrap=True)
    out().print(f"label them under Label on the pages, then: viva calibrate {queue.run_id} --grader {grader}")


def _check(draw: int | None, people: str | None, *, with_figures: bool) -> None:
    if (draw is None) is not (people is None):
        raise UsageError("--draw N and --people NAMES must be used together")
    if draw is not None and with_figures:
        raise UsageError(
            "--draw assigns conversations and shows no figures; it cannot be combined with --labels, --label, "
            "--json or --markdown"
        )
