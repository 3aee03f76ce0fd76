"""`viva labels`: the human labels of a run, for other programs, and how well a judge agrees with them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import typer

from vivavoce.cli.output import StoreOption, files, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.features.labels.agreement import agreement_lines, differing_line, figures, items, people_markdown
from vivavoce.features.labels.labelling import questions
from vivavoce.records.label import DifferingLabels, Label, LabelAgreement
from vivavoce.records.score import conversation_label, to_number, turn_label
from vivavoce.report.graded_run import GradedRun, require_grader
from vivavoce.report.label_agreement import agreement_of_all, collect_rated, people_lines
from vivavoce.report.tables import cell
from vivavoce.report.terminal import number
from vivavoce.report.text import strict_json
from vivavoce.store.store import Store


def command(
    what: Annotated[Literal["export", "agreement", "differing"], typer.Argument(help="The action.")] = "export",
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    grader: Annotated[str | None, typer.Option(help="Only this grader; agreement without --label needs it.")] = None,
    author: Annotated[str | None, typer.Option(help="Only labels by this person.")] = None,
    to: Annotated[Literal["jsonl", "csv"], typer.Option("--format", "-f", help="export: the format.")] = "jsonl",
    turns: Annotated[
        bool, typer.Option("--turns", help="agreement: compare labels of turns, not of whole conversations.")
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(
            help="agreement: compare with this label of the dataset, a dotted path in the labels of its rows, "
            "instead of labels from the pages."
        ),
    ] = None,
    good_from: Annotated[
        float | None,
        typer.Option(help="agreement with --label: the number at or above which a conversation should pass."),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="agreement with --label: only rows with this tag.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="agreement, differing: print one JSON object per grader, or per difference.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="agreement: show how well people agree with each other, as Markdown.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Export the human labels of a run, show how well a grader agrees with them, or list where people differ.

    People label conversations on the pages (`viva view`, Label) or through the API. Scores do not change. With
    --label, graders are compared with the `labels` of the dataset's rows: one Markdown table per grader.
    """
    if label is None and (good_from is not None or tag is not None):
        raise UsageError("--good-from and --tag need --label")
    if markdown and (what != "agreement" or label is not None or as_json):
        raise UsageError(
            "--markdown is for viva labels agreement; with --label, the output is already Markdown unless you "
            "give --json"
        )
    if label is not None and (what != "agreement" or author is not None or turns):
        raise UsageError("--label is for viva labels agreement, without --author and --turns")
    with Store.open(store_of(store), create=False) as opened:
        stored_run = opened.run(run)
        if label is not None:
            _agree_with_dataset(
                GradedRun(opened, stored_run, opened.grading(stored_run.id)), grader, label, good_from, tag, as_json
            )
            return
        if what == "export":
            _export(opened.labels.all(stored_run.id, grader=grader, author=author), to, stored_run.id)
            return
        if what == "differing":
            _print_differing(opened.decisions.differing(stored_run.id, grader=grader), as_json=as_json)
            return
        if grader is None:
            raise UsageError("name the grader to compare with: --grader NAME")
        scores = opened.grading(stored_run.id)
        require_grader(grader, scores)
        pairs = opened.labels.paired(scores, grader, author=author, turns=turns)
        decisions = opened.decisions.all(stored_run.id, grader=grader) if author is None else []
    agreement = agreement_of_all(pairs, decisions)
    if as_json:
        print_json(strict_json(agreement))
    elif markdown:
        _print_lines(people_markdown(agreement.people))
    else:
        _print_agreement(agreement)


def _print_differing(labels: Sequence[DifferingLabels], *, as_json: bool) -> None:
    """Print the places where people differ, each with what they say and what was decided."""
    if as_json:
        for label in labels:
            print_json(strict_json(label))
        return
    if not labels:
        notes().print("no conversation or turn has both a pass and a fail label", soft_wrap=True)
    _print_lines(map(differing_line, labels))


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        out().print(line, soft_wrap=True, markup=False, highlight=False)


def _agree_with_dataset(
    graded: GradedRun, grader: str | None, label: str, good_from: float | None, tag: str | None, as_json: bool
) -> None:
    """Print how far graders, or the one that is named, agree with a label of the dataset."""
    if grader is not None:
        require_grader(grader, graded.grading)
    graders = [grader] if grader is not None else [question.grader for question in questions(graded.grading)]
    for rated_cases in collect_rated(graded.outcomes(), graders, label, tag):
        measures, item_figures = figures(rated_cases, good_from), items(rated_cases, good_from)
        if as_json:
            counts = {
                name: getattr(rated_cases, name) for name in ("grader", "label", "errors", "skipped", "unlabelled")
            }
            print_json(strict_json({**counts, "usage": rated_cases.usage, "figures": measures, "items": item_figures}))
            continue
        for line in agreement_lines(rated_cases, measures, item_figures):
            out().print(line, soft_wrap=True, markup=False, highlight=False)


def _export(labels: Iterable[Label], to: Literal["jsonl", "csv"], run_id: str) -> None:
    if not _write(labels, to):
        notes().print(f"no labels for {run_id}; add some on the pages: viva view", soft_wrap=True)


def _write(labels: Iterable[Label], to: Literal["jsonl", "csv"]) -> bool:
    """Write labels, and return whether there were any."""
    any_label = False
    writer = csv.writer(files(), lineterminator="\n")
    if to == "csv":
        writer.writerow(Label.model_fields)
    for label in labels:
        any_label = True
        if to == "jsonl":
            print_json(strict_json(label))
        else:
            writer.writerow([_cell(name, value) for name, value in label])
    return any_label


def _cell(name: str, value: object) -> object:
    """Return a value as a cell for people; turns and trials count from 1."""
    if isinstance(value, int) and name in ("trial", "turn"):
        return to_number(value)
    return cell(value) if isinstance(value, str) else value


def _print_agreement(label_agreement: LabelAgreement) -> None:
    lines = [
        f"{label_agreement.n} compared: {label_agreement.both_pass} both pass, {label_agreement.both_fail} both fail, "
        f"{label_agreement.too_lenient} judge too lenient, {label_agreement.too_strict} judge too strict"
    ]
    if label_agreement.unsure or label_agreement.unscored:
        lines.append(
            f"not compared: {label_agreement.unsure} labelled 'cannot tell', {label_agreement.unscored} without a score"
        )
    if label_agreement.kappa is not None and label_agreement.low is not None and label_agreement.high is not None:
        interval = f"95% interval {number(label_agreement.low)} to {number(label_agreement.high)}"
        lines.append(f"agreement {number(label_agreement.agreement)}, κ {number(label_agreement.kappa)}, {interval}")
    elif label_agreement.n:
        lines.append(f"agreement {number(label_agreement.agreement)}, κ – (only one kind of label)")
    for disagreement in label_agreement.disagreements:
        label = disagreement.label
        turn = "" if label.turn is None else f" {turn_label(label.turn)}"
        kind = "too lenient" if disagreement.lenient else "too strict"
        lines.append(f"{kind}  {conversation_label(label.sample_id, label.trial)}{turn}  {label.note or ''}".rstrip())
    if label_agreement.decided:
        lines.append(f"{label_agreement.decided} of them settled a disagreement")
    _print_lines([*lines, *people_lines(label_agreement.people)])
