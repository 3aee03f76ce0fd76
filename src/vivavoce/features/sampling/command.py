"""`viva plan`: how many samples, trials and labels it takes to see a change, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, existing, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.features.sampling.planning import (
    Need,
    Planned,
    basis,
    cost_of,
    make_plan,
    outlook,
    variances,
    wrong_share,
)
from vivavoce.records.run import Grading, Run
from vivavoce.report.text import Column, FittingTable, record_json
from vivavoce.run.summary import Summary
from vivavoce.store.store import Store
from vivavoce.suites.check import Checked, run_checks
from vivavoce.suites.load import load_suite

_COLUMNS = (
    Column("trials", "right"),
    Column("samples", "right"),
    Column("conversations", "right"),
    Column("model calls", "right", rank=1),
    Column("cost", "right", rank=2),
)


def command(
    suite: Annotated[Path, typer.Argument(help="A suite: a YAML file.", show_default=False)],
    *,
    detect: Annotated[
        float, typer.Option(min=0.001, max=0.99, help="The smallest change to detect, from 0 to 1: 0.05 is 5%.")
    ],
    power: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="The power: the share of such comparisons that detect the change.")
    ] = 0.8,
    run: Annotated[
        str | None, typer.Option(help="The run to learn from; default: the latest complete one of the suite.")
    ] = None,
    grader: Annotated[
        str | None, typer.Option(help="The grader whose score changes; default: that of the gate.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Compute how many samples, trials and labels it takes to detect a change of a suite's score, and what that costs.

    Two runs of the same samples are compared. An earlier run shows how scores vary between trials and what a
    conversation costs; the plan uses the upper confidence limit of the variance. Without an earlier run, it assumes the
    worst case, and says so. No model and no target is called.
    """
    checked_suite = run_checks(load_suite(existing(suite)))
    name = checked_suite.prepared.suite.spec.name
    try:
        opened = Store.open(store_of(store), create=False)
    except UsageError:
        if run is not None:
            raise
        plan = _plan(checked_suite, name, None, None, detect=detect, power=power, grader=grader)
    else:
        with opened:
            before = _earlier(opened, name, run)
            plan = _plan(checked_suite, name, opened, before, detect=detect, power=power, grader=grader)
    if as_json:
        print_json(record_json(plan))
        return
    _print(plan)


def _earlier(store: Store, suite: str, run: str | None) -> tuple[Run, Grading] | None:
    """Return the run to learn from.

    Raises:
        UsageError: the named run does not exist, or is of another suite.
    """
    if run is None:
        complete = (each for each in store.runs() if each.suite == suite and each.status == "finished")
        known = next((each for each in complete if each.partial_of is None), None)
        return None if known is None else (known, store.grading(known.id))
    known = store.run(run)
    if known.suite != suite:
        raise UsageError(f"run {known.id} is of the suite '{known.suite}', not of '{suite}'; name a run of this suite")
    return known, store.grading(known.id)


def _plan(
    checked_suite: Checked,
    name: str,
    store: Store | None,
    before: tuple[Run, Grading] | None,
    *,
    detect: float,
    power: float,
    grader: str | None,
) -> Planned:
    graders = {each.name: each for each in checked_suite.prepared.scoring.graders}
    if grader is not None and grader not in {*graders, "reward"}:
        raise UsageError(f"the suite has no grader '{grader}'; it has {', '.join(graders)}")
    based_on = summary = None
    if store is not None and before is not None:
        based_on = variances(store, *before, grader)
        stored = before[1].summary
        summary = None if stored is None else Summary.model_validate(stored)
    gate = checked_suite.prepared.suite.spec.gate
    figure = based_on.grader if based_on is not None else grader or getattr(gate, "metric_key", next(iter(graders)))
    judge = graders.get(figure)
    prints = [] if judge is None else [judge.fingerprint]
    wrong = None if store is None else wrong_share(store.calibrations.with_fingerprints(prints))
    forecast = checked_suite.forecast
    return make_plan(
        name,
        (forecast.samples, forecast.trials, forecast.targets),
        based_on,
        summary,
        detect=detect,
        power=power,
        judged=judge is not None and judge.judged,
        wrong=wrong,
    )


def _print(plan: Planned) -> None:
    seen = f"to see a change of {plan.detect:g} between two runs of the same samples, in {plan.power:.0%} of such pairs"
    for line in (seen, basis(plan)):
        out().print(Text(line), soft_wrap=True)
    out().print()
    costs = any(need.cost is not None for need in plan.needs)
    calls = any(need.calls for need in plan.needs)
    columns = [
        column for column in _COLUMNS if (calls or column is not _COLUMNS[3]) and (costs or column is not _COLUMNS[4])
    ]
    out().print(FittingTable(columns, [_cells(need, calls=calls, costs=costs) for need in plan.needs]))
    out().print()
    for line in outlook(plan):
        out().print(Text(line), soft_wrap=True)


def _cells(need: Need, *, calls: bool, costs: bool) -> list[Text]:
    if need.samples is None or need.conversations is None:
        return [Text(str(need.trials)), Text("too many"), *[Text("–")] * (1 + calls + costs)]
    several = need.fewest is not None and need.fewest < need.samples
    samples = f"{need.fewest:,} to {need.samples:,}" if several else f"{need.samples:,}"
    cells = [f"{need.trials}", samples, f"{need.conversations:,}"]
    cells += ["–" if need.calls is None else f"{need.calls:,}"] if calls else []
    return [Text(cell) for cell in [*cells, *([cost_of(need) or "–"] if costs else [])]]
