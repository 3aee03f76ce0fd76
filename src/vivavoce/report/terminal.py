"""A run in the terminal: its summary, its worst samples, one of its conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import GradeResult, State, TurnGrade
from vivavoce.report.text import one_line, safe
from vivavoce.report.worst import Worst
from vivavoce.run.summary import AgreementSummary, GraderSummary, Summary

STYLES: dict[str, str] = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}
MARKS: dict[State, str] = {"scored": " ", "error": "!", "skipped": "–"}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """Return a 95 % interval as text."""
    return "" if low is None or high is None else f"{low:.3f} … {high:.3f}"


def summary_table(summary: Summary) -> Table:
    """Return a row for each grader: how many scores of each state, the mean with its interval, how many pass."""
    several = len({grader.target for grader in summary.graders}) > 1
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head, justify in _heads(several):
        table.add_column(head, justify=justify, overflow="fold")
    for grader in summary.graders:
        table.add_row(*([safe(grader.target)] if several else []), *_cells(grader))
    return table


def _heads(several: bool) -> list[tuple[str, JustifyMethod]]:
    heads: list[tuple[str, JustifyMethod]] = [
        ("grader", "left"),
        ("scored", "right"),
        ("error", "right"),
        ("skipped", "right"),
    ]
    more: list[tuple[str, JustifyMethod]] = [("mean", "right"), ("95 % interval", "left"), ("pass rate", "right")]
    return [*([("target", "left")] if several else []), *heads, *more]


def _cells(grader: GraderSummary) -> list[RenderableType]:
    errors = Text(str(grader.errors), style="bold yellow" if grader.errors else "")
    rate = "–" if grader.pass_rate is None else f"{grader.pass_rate:.1%}"
    mean = number(grader.mean)
    states: list[RenderableType] = [str(grader.scored), errors, str(grader.skipped)]
    return [safe(grader.label or grader.name), *states, mean, interval(grader.low, grader.high), rate]


def trial_lines(summary: Summary) -> Iterator[Text]:
    """Yield pass@k and pass^k of each grader whose samples have several trials."""
    for grader in summary.graders:
        if grader.pass_hat:
            fewer = {k: f" (n {n})" for k, n in grader.pass_samples.items() if n < grader.samples}
            hat = "  ".join(f"{k}: {value:.3f}{fewer.get(k, '')}" for k, value in grader.pass_hat.items())
            at = "  ".join(f"{k}: {value:.3f}{fewer.get(k, '')}" for k, value in grader.pass_at.items())
            yield Text(f"{safe(grader.name)}  pass^k  {hat}")
            yield Text(f"{' ' * len(safe(grader.name))}  pass@k  {at}")


def agreement_line(found: AgreementSummary) -> Text:
    """Return how well a grader predicts another."""
    return Text(
        f"{safe(found.predictor)} predicts {safe(found.truth)}: precision {number(found.precision)}, "
        f"recall {number(found.recall)}, accuracy {number(found.accuracy)}, κ {number(found.kappa)} "
        f"(n {found.n}: {found.tp} both, {found.fp} only predicted, {found.fn} missed, {found.tn} neither"
        + (f"; {found.left_out} without both scores)" if found.left_out else ")")
    )


def run_report(summary: Summary, worst: Sequence[Worst]) -> Group:
    """Return everything the end of a run says."""
    parts: list[RenderableType] = [summary_table(summary), *trial_lines(summary)]
    parts += [agreement_line(found) for found in summary.agreement]
    if worst:
        parts += [Text(), Text("the worst samples", style="bold"), worst_table(worst)]
    parts += [Text(), *verdict_lines(summary)]
    return Group(*parts)


def worst_table(worst: Sequence[Worst]) -> Table:
    """Return a line for each of the worst samples, with why."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    several = len({one.key.target for one in worst}) > 1
    for column in (*(["target"] if several else []), "sample", "score", "why"):
        table.add_column(column, overflow="ellipsis", no_wrap=column != "why")
    for one in worst:
        score = Text("error", style="yellow") if one.score is None else Text(f"{one.score:.2f}")
        table.add_row(*([safe(one.key.target)] if several else []), label(one.key), score, one_line(one.why, 140))
    return table


def label(key: tuple[str, str, int]) -> str:
    """Return how an attempt is called: its sample, and its trial where it is not the first."""
    return safe(key[0]) + (f" #{key[2] + 1}" if key[2] else "")


def verdict_lines(summary: Summary) -> Iterator[Text]:
    """Yield the verdict, and the reason of each condition."""
    if summary.verdict is None:
        yield Text("no gate: nothing can fail", style="dim")
        return
    yield Text.assemble((summary.verdict.upper(), STYLES[summary.verdict]))
    for reason in summary.reasons:
        yield Text(f"  {safe(reason)}")


def conversation(outcome: Outcome) -> Group:
    """Return a conversation as it went, turn by turn, with the grades of each turn beside it."""
    trajectory = outcome.attempt.trajectory
    parts: list[RenderableType] = [_message(message) for message in trajectory.opening]
    for turn in trajectory.turns:
        seconds = "" if turn.seconds is None else f" · {turn.seconds:.2f} s"
        parts.append(Text(f"── turn {turn.index}{seconds}", style="dim"))
        parts += [_message(message) for message in turn.messages]
        if turn.failure is not None:
            parts.append(Text(f"  ! {safe(str(turn.failure))}", style="bold yellow"))
            parts += [Text(f"    {line}", style="dim") for line in _evidence(turn.failure.evidence)]
        parts += list(_turn_grades(outcome, turn.index))
    if trajectory.failure is not None and not any(turn.failure for turn in trajectory.turns):
        parts.append(Text(f"! {safe(str(trajectory.failure))}", style="bold yellow"))
    parts += [Text("── grades", style="dim"), *_totals(outcome)]
    if outcome.reward is not None:
        parts.append(_line("reward", outcome.reward.state, outcome.reward.score, outcome.reward.rationale))
    return Group(*parts)


_SPEAKER_STYLES = {"user": "bold cyan", "assistant": "bold", "tool": "dim", "system": "dim", "developer": "dim"}


def _message(message: AnyMessage) -> Text:
    words = safe(message.text) or ("" if isinstance(message, AIMessage) and message.tool_calls else "(no text)")
    line = Text.assemble((f"{message.role:>9}  ", _SPEAKER_STYLES[message.role]), words.replace("\n", "\n" + " " * 11))
    if isinstance(message, AIMessage):
        for call in message.tool_calls or ():
            line.append(f"\n{'':11}→ {safe(call.name)}({one_line(call.function.arguments, 400)})", style="magenta")
    return line


def _evidence(text: str | None) -> list[str]:
    """Return the last lines of what was seen, which in a traceback are the ones that matter."""
    lines = [line for line in safe(text or "").splitlines() if line.strip(" ^~")]
    return [one_line(line, 160) for line in lines[-6:]]


def _turn_grades(outcome: Outcome, index: int) -> Iterator[Text]:
    for name, grade in outcome.grades.items():
        for turn in grade.per_turn_grades or ():
            if turn.turn == index:
                yield _line(name, turn.state, turn.score, _why(turn, outcome))


def _why(grade: TurnGrade | GradeResult, outcome: Outcome) -> str | None:
    """Return the reason of a grade; what the conversation itself says of its failure is not repeated."""
    failure = outcome.attempt.failure
    return "not graded: the target failed" if failure is not None and grade.failure == failure else grade.rationale


def _totals(outcome: Outcome) -> Iterator[Text]:
    for name, grade in outcome.grades.items():
        yield _line(name, grade.state, grade.score, _why(grade, outcome))


def _line(name: str, state: State, score: float | None, why: str | None) -> Text:
    value = state if score is None else f"{score:.2f}"
    style = "yellow" if state == "error" else "dim" if state == "skipped" else "red" if (score or 0) < 1 else "green"
    return Text.assemble(
        (f"{MARKS[state]:>2} {value:>7}  ", style), (safe(name), "bold"), f"  {one_line(why or '', 200)}"
    )
