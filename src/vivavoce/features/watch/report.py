"""How a watch is doing, on the terminal."""

from __future__ import annotations

from rich.table import Table

from vivavoce.cli.output import out, print_json
from vivavoce.errors import UsageError
from vivavoce.features.watch.state import Watched, alert_line, budget_lines, read_watch
from vivavoce.report.text import count, one_line, record_json
from vivavoce.run.summary import EXIT_CODES
from vivavoce.store.store import Store


def print_status(place: str, name: str, *, check: bool, as_json: bool) -> int:
    """Print how a watch is doing; return the exit code, with `check` that of its gate.

    Raises:
        UsageError: there is no such watch, or with `check` its suite has no gate.
    """
    with Store.open(place, create=False) as store:
        report = read_watch(store, name)
    if check and report.state.alert is None:
        raise UsageError(f"the watch '{name}' has no gate; start it with --suite FILE, where FILE has a gate")
    if as_json:
        print_json(record_json(report))
    else:
        _print(report)
    return EXIT_CODES[report.verdict] if check else 0


def _print(report: Watched) -> None:
    alert, total = report.state.alert, report.total
    out().print(one_line(f"{report.name}: {report.note or 'watching'}", 200), soft_wrap=True)
    if alert is not None:
        out().print(one_line(f"gate {alert.state}: {alert_line(alert)}", 400), soft_wrap=True)
    if report.state.spending is not None:
        used = " · ".join(f"{what} {words}" for what, _, words in budget_lines(report.state.spending))
        spent = "; spent, so it judges no more conversations" if report.state.spending.spent else ""
        out().print(one_line(f"run {report.state.spending.run}: {used}{spent}", 200), soft_wrap=True)
    if report.state.split:
        split = f"{count(report.state.split, 'conversation')} also judged by the watch '{report.state.split_with}'"
        out().print(one_line(f"{split}: send all traces of a conversation to one receiver", 300), soft_wrap=True)
    seen = (
        f"{count(total.arrived, 'conversation')} in {report.span}, {total.sampled:,} sampled, {total.judged:,} judged"
    )
    left = f", {total.broken:,} with an error, {total.passed_over:,} not judged, {report.state.waiting:,} waiting"
    out().print(seen + left, soft_wrap=True)
    if total.rates:
        out().print(_rates(report))
    for failure in report.failing:
        out().print(
            one_line(f"failed: {failure.sample_id} in {failure.run}: {failure.grader}: {failure.reason}", 200),
            soft_wrap=True,
        )


def _rates(report: Watched) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("grader")
    for column in ("scored", "errors", "skipped", "pass rate", "95% interval"):
        table.add_column(column, justify="right")
    for name, rate in report.total.rates.items():
        counts = (f"{rate.scored:,}", f"{rate.errors:,}", f"{rate.skipped:,}")
        share = "–" if rate.share is None else f"{rate.share:.1%}"
        ends = "–" if rate.low is None or rate.high is None else f"{rate.low:.1%} … {rate.high:.1%}"
        table.add_row(one_line(name, 40), *counts, share, ends)
    return table
