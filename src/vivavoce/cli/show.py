"""`viva show`: show a run, or one of its conversations."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from vivavoce.cli.options import TableOption
from vivavoce.cli.output import StoreOption, out, print_json, print_lines, store_of
from vivavoce.errors import NotFound, UsageError
from vivavoce.extensions import answers
from vivavoce.plugins import lazy
from vivavoce.records.replies import JudgeExchange
from vivavoce.records.run import Grading, Outcome
from vivavoce.records.score import Usage
from vivavoce.report.details import target_names
from vivavoce.report.graded_run import GradedRun, continuing, errors_again, partial_note
from vivavoce.report.terminal import label, run_report
from vivavoce.report.text import count, record_json, strict_json
from vivavoce.report.worst_samples import worst
from vivavoce.store.runs.naming import no_conversation
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    sample: Annotated[
        str | None, typer.Argument(help="The id of a sample, or SAMPLE#2 for its second trial.", show_default=False)
    ] = None,
    *,
    grading: Annotated[str | None, typer.Option(help="The grading to show; default: the newest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False,
    table: TableOption = False,
    exchange: Annotated[
        str | None,
        typer.Option(help="Show the prompts and answers of this grader's judge.", metavar="GRADER"),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Show the summary of a run, or the whole conversation of one sample with the scores of each turn.

    Turns and trials count from 1 here, and from 0 in the records that --json prints.
    """
    if table and (sample is not None or as_json):
        raise UsageError("--table shows the samples of a whole run; leave out the sample and --json")
    if exchange is not None and sample is None:
        raise UsageError("--exchange shows one conversation; name its sample: viva show RUN SAMPLE")
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        scores = opened.grading(found.id, grading)
        place = ["--store", store] if store else []
        if sample is None:
            chosen = ["--grading", scores.id] if grading else []
            graded = GradedRun(opened, found, scores)
            if table:
                out().print(lazy("vivavoce.report.matrix:sample_table")(graded, [*chosen, *place]))
            _show_run(graded, as_json, chosen, place)
        else:
            _show_sample(GradedRun(opened, found, scores), sample, exchange, as_json, place)


def _show_run(graded: GradedRun, as_json: bool, chosen: list[str], place: list[str]) -> None:
    store, run, grading = graded.store, graded.run, graded.grading
    if as_json:
        both = {"run": run.model_dump(mode="json"), "grading": grading.model_dump(mode="json")}
        print_json(json.dumps(both, indent=2))
        return
    summary = graded.summary()
    console = out()
    sets = len(store.gradings(run.id))
    more = f" · {grading.id}, one of {sets} sets of scores" if sets > 1 else ""
    console.print(f"{run.id} · {run.status} · {count(summary.attempts, 'conversation')}{more}", style="bold")
    if note := partial_note(run):
        console.print(note)
    print_lines(answers("run_report", store=store, run=run))
    options = [*chosen, *place]
    used: dict[str, Usage] = {}
    if len(target_names(summary)) > 1:
        used = lazy("vivavoce.report.matrix:used_by_targets")(graded)
    bad = worst(store, grading)
    console.print(run_report(summary, bad, run.id, options, passed_added=grading.passed_added, used=used))
    if run.status != "finished":
        console.print(continuing(run, place))
    if again := errors_again(store, grading, summary, place):
        console.print(again)


def _show_sample(graded: GradedRun, name: str, grader: str | None, as_json: bool, place: list[str]) -> None:
    store, run, grading = graded.store, graded.run, graded.grading
    sample, trial = store.named_conversation(run.id, name)
    held = list(store.outcomes(grading.id, sample_id=sample))
    if not held:
        raise NotFound("sample", sample, within=f"run {run.id}", known=_some_ids(store, grading))
    outcomes = [one for one in held if trial in (None, one.attempt.key.trial)]
    if not outcomes:
        raise no_conversation(run.id, sample, None, trial, (one.attempt.key for one in held))
    for outcome in outcomes:
        if grader is not None:
            judge_exchange = lazy("vivavoce.suites.judge_requests:judge_exchange")  # what only reads builds no grader
            _show_exchange(outcome, judge_exchange(store, run, grading, outcome, grader), as_json)
            continue
        if as_json:
            print_json(
                json.dumps(json.loads(strict_json(lazy("vivavoce.report.json_file:sample_data")(outcome))), indent=2)
            )
            continue
        console = out()
        console.print(_head(outcome), style="bold")
        for line in lazy("vivavoce.report.transcript:cause_lines")(outcome):
            console.print(line)
        console.print(lazy("vivavoce.report.transcript:conversation")(outcome))
        for line in answers("conversation_report", store=store, run=run, key=outcome.attempt.key, options=place):
            console.print(line, soft_wrap=True)


def _show_exchange(outcome: Outcome, found: JudgeExchange, as_json: bool) -> None:
    if as_json:
        print_json(record_json(found))
        return
    out().print(_head(outcome), style="bold")
    out().print(lazy("vivavoce.report.transcript:exchange_lines")(found))


def _some_ids(store: Store, grading: Grading) -> set[str]:
    found: set[str] = set()
    for row in store.scores(grading.id):
        found.add(row.key.sample_id)
        if len(found) == 1000:
            break
    return found


def _head(outcome: Outcome) -> str:
    return f"{label(outcome.attempt.key)} · {outcome.attempt.key.target}"
