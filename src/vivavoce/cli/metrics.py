"""`viva metrics test`: does a metric see known defects, and only these?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from vivavoce.cli.forecast import forecast_line
from vivavoce.cli.judge import ExportOption, FromOption, ImportOption, import_answers, named_judge
from vivavoce.cli.metric_runs import INCONCLUSIVE, Chosen, MetricRuns, chosen_conversations
from vivavoce.cli.options import CostOption, NoCacheOption, ReplayOption, named_paths
from vivavoce.cli.output import StoreOption, existing, notes, out, print_json, print_lines, store_of
from vivavoce.errors import UsageError
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.metric_names import read_metrics
from vivavoce.testing.metric_test import MetricTest
from vivavoce.testing.metric_test_lines import gate_lines, inconclusive, markdown_lines, terminal_lines

Metrics = Annotated[
    str,
    typer.Argument(help="Metrics, separated by commas, as in viva judge --metrics. See: viva validate list metrics"),
]
JudgesOption = Annotated[
    list[str] | None,
    typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE. Repeat it to compare judges."),
]
OnOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Recorded conversations that went well; default: ten built-in ones."),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="Use only conversations that this label calls good; default: those that all judges pass."),
]
GoodFromOption = Annotated[
    float | None, typer.Option(help="With --label: the number at or above which a conversation is good.")
]
DefectsOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these defects, separated by commas. See: viva validate list defects"),
]
DetectionOption = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, help="Fail if the share of detected defects is below this.")
]
AlarmsOption = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="Fail if the share of harmless edits that change a score is above this."),
]
FieldsOption = Annotated[
    list[str] | None,
    typer.Option(help="Map a field to another column, such as goal=metadata.wish; repeat for more."),
]


def command(
    what: Annotated[Literal["test"], typer.Argument(help="The action.")],
    metrics: Metrics,
    *,
    judge: JudgesOption = None,
    on: OnOption = None,
    label: LabelOption = None,
    good_from: GoodFromOption = None,
    defects: DefectsOption = None,
    min_detection: DetectionOption = None,
    max_false_alarms: AlarmsOption = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N conversations.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="The seed that decides where a defect is placed.")
    ] = 0,
    from_: FromOption = None,
    field: FieldsOption = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum concurrent conversations.")] = 64,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls per run.")] = None,
    max_cost: CostOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    export_requests: ExportOption = None,
    import_responses: ImportOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and count the calls without making any.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the figures as Markdown.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Plant known defects in good conversations, and measure whether metrics detect them.

    Code, not a model, changes each conversation: a wrong argument, a forgotten fact, an insult, a loop and more, one at
    a time. A metric should fail these, and name the turn. Harmless edits of the same conversations (other names, the
    order of keys, Markdown, padding, flattery) should not change a score. Only good conversations are changed: those
    that --label calls good, or else those that all judges pass. Every answer is cached, so that a repetition costs
    nothing.

    Exit codes: 0 done, 1 --min-detection or --max-false-alarms not met, 2 wrong usage, 3 inconclusive (an error, or
    nothing to compare), 130 interrupted.
    """
    judges: list[str | None] = [*dict.fromkeys(judge or ())] or [None]
    _check(judges, label, good_from, export_requests or import_responses, as_json=as_json, markdown=markdown)
    offline = replay or import_responses is not None or export_requests is not None
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, cache=not no_cache, replay=offline)
    chosen = Chosen(
        None if on is None else existing(on), label, good_from, max_samples, named_paths(field or []), from_
    )
    test = MetricRuns(read_metrics(metrics), judges, defects, seed, max_concurrent, options, quiet)
    samples, good = chosen_conversations(chosen)
    if dry_run:
        for forecast in test.forecasts(good):
            out().print(forecast_line(forecast))
        return
    with Store.open(store_of(store)) as opened:
        if import_responses is not None:
            import_answers(existing(import_responses), opened, named_judge(judges[0]))
        found = test.figures(opened, samples, good, judged=label is None, to=export_requests)
    if found is None:
        return
    _print(found, as_json=as_json, markdown=markdown)
    failed = list(gate_lines(found, min_detection, max_false_alarms))
    for line in failed:
        notes().print(line, soft_wrap=True, markup=False, highlight=False)
    unsure = inconclusive(found, min_detection, max_false_alarms)
    raise typer.Exit(1 if failed else INCONCLUSIVE if unsure else 0)


def _check(
    judges: list[str | None],
    label: str | None,
    good_from: float | None,
    file: Path | None,
    *,
    as_json: bool,
    markdown: bool,
) -> None:
    if good_from is not None and label is None:
        raise UsageError("--good-from needs --label")
    if as_json and markdown:
        raise UsageError("--json and --markdown cannot be combined")
    if len(judges) > 1 and file is not None:
        raise UsageError("--export-requests and --import-responses are for one judge at a time")


def _print(found: MetricTest, *, as_json: bool, markdown: bool) -> None:
    if as_json:
        print_json(found.model_dump_json(indent=2))
        return
    print_lines(markdown_lines(found) if markdown else terminal_lines(found))
