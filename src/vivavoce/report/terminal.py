"""A run in the terminal: its verdict, its worst samples, its figures, and the command that shows a conversation.

A run that failed starts with what failed and that command; any other run ends with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from vivavoce.comparing.thresholds import score_text, share_text
from vivavoce.records.details import usage_text
from vivavoce.records.score import Usage, conversation_label
from vivavoce.report.details import (
    HEADS,
    agent_rows,
    agents_line,
    detail_lines,
    mean_text,
    measured_lines,
    sampled_lines,
    sentences,
    standings,
    tags_line,
    target_names,
    who_failed,
)
from vivavoce.report.graded_run import show_command
from vivavoce.report.text import Column, FittingTable, Labelled, count, one_line
from vivavoce.report.verdict import (
    breach_lines,
    corrected_lines,
    explain_verdict,
    failures,
    spoiled_lines,
    unverified_lines,
)
from vivavoce.report.worst_samples import Worst, WorstSamples
from vivavoce.run.summary import AgreementSummary, GraderSummary, Summary
from vivavoce.safe_text import safe

PASSED_ADDED = (
    "Pass or fail was added to these scores when the store was upgraded: 1 passes, unless the metric has its own rule."
)
"""The note for scores from before each score recorded whether it passes."""

STYLES: dict[str, str] = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}

_TARGET = Column("target", rank=1)
_GRADERS = (
    Column("grader"),
    Column("scored", "right"),
    Column("error", "right"),
    Column("skipped", "right", rank=2),
    Column("mean", "right"),
    Column("95% interval", rank=3),
    Column("pass rate", "right", rank=4),
)
_BEST = Column("", rank=5)
_AGENT_RANKS = (1, 3, 4, 5, 0, 2, 0, 0, 6)
"""Which columns about agents a narrow terminal drops first: those with the highest number."""
_WORST = (Column("sample"), Column("score", "right"), Column("why", flows=True))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number, or a dash if there is none."""
    return "–" if value is None else score_text(value, digits)


def interval(low: float | None, high: float | None) -> str:
    """Return a 95% interval as text."""
    return "" if low is None or high is None else f"{low:.3f} … {high:.3f}"


def run_report(
    summary: Summary,
    worst: WorstSamples,
    run_id: str,
    options: Sequence[str] = (),
    *,
    passed_added: bool = False,
    used: Mapping[str, Usage] | None = None,
) -> Group:
    """Return the report at the end of a run, with the command that shows a conversation.

    The report of a run that failed, or is inconclusive because of what it names, starts with that and the command.
    `options` are those that this command needs to find the same scores, such as `--store` and its value; `used` is
    what each of several targets used, `passed_added` that of the grading.
    """
    several = len(target_names(summary)) > 1
    figures: list[RenderableType] = [summary_table(summary)]
    figures += [Text(safe(sentence)) for sentence in sentences(summary)]
    figures += [Text(f"{safe(name)} used {usage_text(usage)}") for name, usage in (used or {}).items() if several]
    notes = (*spoiled_lines(summary), *unverified_lines(summary), *breach_lines(summary), *measured_lines(summary))
    figures += [*trial_lines(summary), *map(Text, notes)]
    figures += [Labelled(Text(), Text(line)) for line in sampled_lines(summary)]
    figures += [Labelled(Text(), Text(line)) for line in corrected_lines(summary, run_id)]
    figures += [agreement_line(agreement) for agreement in summary.agreement]
    figures += [Labelled(Text(), Text(safe(line))) for line in detail_lines(summary)]
    figures += [Text(), Text("by tag", style="bold"), tag_table(summary)] if summary.tags else []
    figures += [Text(line)] if (line := tags_line(summary)) else []
    figures += [*_agents(summary)] if summary.agents else []
    figures += [Text(PASSED_ADDED)] if passed_added else []
    hint = _hint(worst, run_id, options)
    if summary.verdict == "fail" or (summary.verdict == "inconclusive" and worst.samples):
        samples = [Text(), *_worst(worst, several=several)] if worst.samples else []
        return Group(*verdict_lines(summary), *samples, Text(), hint, Text(), *figures)
    heading = Text("the worst samples", style="bold")
    samples = [Text(), heading, *_worst(worst, several=several)] if worst.samples else []
    return Group(*figures, *samples, Text(), *verdict_lines(summary), Text(), hint)


def _worst(worst: WorstSamples, *, several: bool) -> Iterator[RenderableType]:
    """Yield the table of the worst samples, and how many more there are."""
    yield worst_table(worst.samples, several=several)
    if worst.more:
        yield Text(f"and {worst.more:,} more")


def summary_table(summary: Summary) -> FittingTable:
    """Return a row for each grader: scores in each state, the mean with its interval, and the pass rate.

    With several targets there is a row for each of them, grader by grader, and the best one is marked.
    """
    if len(target_names(summary)) < 2:
        return FittingTable(_GRADERS, [_cells(grader) for grader in summary.graders])
    best = {(standing.grader, standing.best) for standing in standings(summary)}
    names = list(dict.fromkeys(grader.name for grader in summary.graders))
    ordered = sorted(summary.graders, key=lambda grader: names.index(grader.name))
    marks = [Text("best" if (grader.name, grader.target) in best else "") for grader in ordered]
    return FittingTable(
        [_TARGET, *_GRADERS, *([_BEST] if any(marks) else [])],
        [
            [Text(safe(grader.target)), *_cells(grader), *([mark] if any(marks) else [])]
            for grader, mark in zip(ordered, marks, strict=True)
        ],
    )


def _cells(grader: GraderSummary) -> list[Text]:
    rate = "–" if grader.pass_rate is None else share_text(grader.pass_rate)
    return [
        Text(safe(grader.label or grader.name)),
        Text(str(grader.scored)),
        Text(str(grader.errors), style="bold yellow" if grader.errors else ""),
        Text(str(grader.skipped)),
        Text(mean_text(grader)),
        Text(interval(grader.low, grader.high)),
        Text(rate),
    ]


def tag_table(summary: Summary) -> FittingTable:
    """Return a row for each tag and grader, as in the table of the whole run."""
    several = len({grader.target for grader in summary.graders}) > 1
    return FittingTable(
        [Column("tag"), *([_TARGET] if several else []), *_GRADERS],
        [
            [Text(safe(tag.tag)), *([Text(safe(grader.target))] if several else []), *_cells(grader)]
            for tag in summary.tags
            for grader in tag.graders
        ],
    )


def _agents(summary: Summary) -> Iterator[RenderableType]:
    yield from (Text(), Text("by agent", style="bold"), agent_table(summary))
    yield from (Labelled(Text(), Text(line)) for line in (who_failed(summary), agents_line(summary)) if line)


def agent_table(summary: Summary) -> FittingTable:
    """Return a row for each agent, and below it one for each grader that found a fault of it."""
    columns = zip(HEADS[1:], _AGENT_RANKS, strict=True)
    sides = (Column(head, "left" if head == "found by" else "right", rank=rank) for head, rank in columns)
    rows = [[Text(cell, style="" if row[0] else "dim") for cell in row] for row in agent_rows(summary)]
    return FittingTable([Column(HEADS[0]), *sides], rows)


def trial_lines(summary: Summary) -> Iterator[Text]:
    """Yield pass@k and pass^k of each grader whose samples have several trials."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.pass_hat:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            hat = "  ".join(f"{k}: {value:.3f}" for k, value in grader.pass_hat.items())
            at = "  ".join(f"{k}: {value:.3f}" for k, value in grader.pass_at.items())
            yield Text(f"{name}  pass^k  {hat}")
            yield Text(f"{' ' * len(name)}  pass@k  {at}")
            most = max(grader.pass_hat)
            samples = grader.pass_samples.get(most)
            if samples is not None and grader.scored != most * samples:
                yield Text(
                    f"{' ' * len(name)}  trial counts differ: this is over the {count(samples, 'sample')} with "
                    f"{most} or more, the mean and the pass rate are over all trials"
                )
            if most in grader.pass_hat_intervals:
                low, high = grader.pass_hat_intervals[most]
                yield Text(f"{' ' * len(name)}  95% interval of pass^{most}  {interval(low, high)}")


def agreement_line(agreement: AgreementSummary) -> Text:
    """Return how well a grader predicts another."""
    return Text(
        f"{safe(agreement.predictor)} predicts {safe(agreement.truth)}: precision {number(agreement.precision)}, "
        f"recall {number(agreement.recall)}, accuracy {number(agreement.accuracy)}, κ {number(agreement.kappa)} "
        f"(n {agreement.n}: {agreement.tp} both, {agreement.fp} only predicted, {agreement.fn} missed, "
        f"{agreement.tn} neither" + (f"; {agreement.left_out} without both scores)" if agreement.left_out else ")")
    )


def worst_table(worst: Sequence[Worst], *, several: bool) -> FittingTable:
    """Return a line for each of the worst samples, with why; of a run of several targets, also with the target."""
    return FittingTable(
        [*([_TARGET] if several else []), *_WORST],
        [[*([Text(safe(sample.key.target))] if several else []), *_worst_cells(sample)] for sample in worst],
        header=False,
    )


def _worst_cells(sample: Worst) -> list[Text]:
    score = Text("error", style="yellow") if sample.score is None else Text(f"{sample.score:.2f}")
    exchange = "" if sample.exchange is None else f"\n{sample.exchange}"
    why = sample.why if sample.score is None else one_line(sample.why, 140)
    return [Text(sample.group or label(sample.key)), score, Text(f"{why}{exchange}")]


def label(key: tuple[str, str, int]) -> str:
    """Return the name of an attempt: its sample, and its trial if that is not the first."""
    return safe(conversation_label(key[0], key[2]))


def verdict_lines(summary: Summary) -> Iterator[RenderableType]:
    """Yield the verdict, and the reason of each condition."""
    if summary.verdict is None:
        yield Text("no gate: the run cannot fail", style="dim")
        return
    verdict, reasons = summary.verdict.upper(), explain_verdict(summary)
    if summary.stopped is not None:
        verdict, reasons = f"{verdict}: {safe(summary.stopped)}", reasons[1:]
    yield Text(verdict, style=STYLES[summary.verdict])
    for reason in reasons:
        yield Labelled(Text("  "), Text(safe(reason)))
    if where := failures(summary):
        yield Labelled(Text("  "), Text(where))


def _hint(worst: WorstSamples, run_id: str, options: Sequence[str]) -> Text:
    """Return the command that shows the worst sample, or any sample if none failed."""
    first = worst.samples[0].key if worst.samples else None
    sample = first and conversation_label(first.sample_id, first.trial)
    command = show_command(run_id, sample or "SAMPLE", options)
    return Text(f"show {'the worst' if worst.samples else 'a conversation'}: {command}", style="dim")
