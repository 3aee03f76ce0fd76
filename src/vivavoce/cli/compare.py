"""`viva compare`: what changed between two runs, and how certain that is."""

from __future__ import annotations

from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, files, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.records.run import Grading
from vivavoce.report.compare import compare
from vivavoce.report.markdown_comparison import markdown_comparison
from vivavoce.report.side_by_side import comparison
from vivavoce.store.store import Store


def command(
    a: Annotated[
        str, typer.Argument(help="The earlier run: its id, the beginning or end of its id, or 'latest~1'.")
    ] = "latest~1",
    b: Annotated[str, typer.Argument(help="The later run.")] = "latest",
    *,
    grading_a: Annotated[str | None, typer.Option(help="A set of scores of run a; default: the newest.")] = None,
    grading_b: Annotated[str | None, typer.Option(help="A set of scores of run b; default: the newest.")] = None,
    target_a: Annotated[str | None, typer.Option(help="The target of run a to compare.")] = None,
    target_b: Annotated[str | None, typer.Option(help="The target of run b to compare.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the comparison as Markdown, for a pull request.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Compare two runs, sample by sample; only samples that ask the same in both runs are compared.

    For each grader, shows the difference of the means with its 95% interval, the samples that flipped between pass and
    fail, and what could not be compared. If a grader itself changed between the runs, there is a warning.
    """
    with Store.open(store_of(store), create=False) as opened:
        first, second = _scores(opened, a, grading_a), _scores(opened, b, grading_b)
        found = compare(opened, first, second, target_a, target_b)
    if as_json:
        print_json(found.model_dump_json(indent=2))
    elif as_markdown:
        files().write(markdown_comparison(found))
    else:
        out().print(comparison(found))


def _scores(store: Store, run: str, grading: str | None) -> Grading:
    found = store.grading(store.run(run, whole=True).id, grading)
    if found.finished_at is None:
        raise UsageError(f"the scores {found.id} are not complete; continue with: viva run --resume {found.run_id}")
    return found
