"""A graded run as Markdown, for a pull request: the verdict, the result of each grader, and the worst samples.

Where the verdict is not a pass, the worst samples and the command that shows the first of them follow the verdict.

What models, targets and suites wrote is in code spans. Inside them nothing is HTML, a link, an image or a mention;
characters that could end a span or a table cell, the backtick and the bar, are replaced by similar ones.

Source of the format: the GitHub Flavored Markdown Spec, tables and HTML blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from vivavoce.comparing.thresholds import score_text, share_text
from vivavoce.extensions import answers_of
from vivavoce.records.details import by_role
from vivavoce.records.run import Run
from vivavoce.records.score import conversation_label
from vivavoce.report.details import (
    HEADS,
    agent_rows,
    agents_line,
    latency_lines,
    mean_text,
    measured_lines,
    recorded_lines,
    sampled_lines,
    sentences,
    skip_lines,
    spent_lines,
    tags_line,
    target_names,
    variance_lines,
    who_failed,
)
from vivavoce.report.graded_run import GradedRun, partial_note, show_command
from vivavoce.report.matrix import Matrix, cell_text, figures, matrix_of
from vivavoce.report.text import count, inert, one_line
from vivavoce.report.verdict import (
    breach_lines,
    corrected_lines,
    explain_verdict,
    finding,
    spoiled_lines,
    unverified_lines,
)
from vivavoce.report.worst_samples import Exchange, Worst, WorstSamples, worst
from vivavoce.run.summary import GraderSummary, Summary

_VERDICTS = {"pass": "passed", "fail": "failed", "inconclusive": "is inconclusive", None: "has no gate"}
_LOOKALIKES = str.maketrans("`|", "ˋ∣")
_WIDTH = 160
MATRIX = 50
"""Samples in the table by target, the worst of the run if it has more."""
_GRADER_HEADS = ["grader", "target", "scored", "error", "skipped", "mean", "95% interval", "pass rate"]
_SIDES = "llrrrrrr"


def write_markdown(graded: GradedRun, out: TextIO) -> None:
    """Write the summary of a graded run.

    An empty line ends it, so that more can be appended: without one, what follows would belong to the last table.
    """
    summary = graded.summary()
    out.write("\n".join([*_lines(graded, summary, worst(graded.store, graded.grading)), "", ""]))


def code(text: str, width: int = _WIDTH) -> str:
    """Return a text as a code span on one line that its content cannot end; a dash if it is empty."""
    line = inert(one_line(text, width)).translate(_LOOKALIKES)
    return f"`{line}`" if line else "–"


def _lines(graded: GradedRun, summary: Summary, worst_samples: WorstSamples) -> Iterator[str]:
    yield f"**{code(graded.run.suite)} {_VERDICTS[summary.verdict]}**"
    yield ""
    yield f"{code(finding(summary, graded.grading), 400)}"
    yield ""
    yield from _remarks(graded.run)
    for reason in explain_verdict(summary):
        yield f"- {code(reason)}"
    is_bad = summary.verdict in ("fail", "inconclusive")
    if is_bad and worst_samples.samples:
        yield from ("", *_worst(worst_samples), *_command(graded.run.id, worst_samples), "")
    broken = f", {summary.failed_attempts} of them with an error" if summary.failed_attempts else ""
    conversations = f"{count(summary.attempts, 'conversation')}{broken}"
    yield f"- {conversations} · run {code(graded.run.id)}, grading {code(graded.grading.id)}"
    if note := partial_note(graded.run):
        yield f"- {note}"
    if used := by_role(summary.usage):
        yield f"- {used}"
    yield from (
        f"- {code(line, 400)}"
        for line in (
            *skip_lines(summary),
            *recorded_lines(summary),
            *spent_lines(summary),
            *latency_lines(summary),
            *variance_lines(summary),
        )
    )
    yield ""
    yield from table(
        _GRADER_HEADS,
        _SIDES,
        (_grader(grader) for grader in summary.graders),
    )
    notes = (
        *spoiled_lines(summary),
        *unverified_lines(summary),
        *breach_lines(summary),
        *measured_lines(summary),
        *sampled_lines(summary),
    )
    for sentence in (*sentences(summary), *notes, *corrected_lines(summary, graded.run.id)):
        yield ""
        yield code(sentence, 400)
    if len(target_names(summary)) > 1:
        matrix = matrix_of(graded, MATRIX)
        title = f"The samples by target{f', and {matrix.left_out}' if matrix.left_out else ''}"
        yield from fold(title, _matrix(matrix))
    if summary.tags:
        yield from fold("Results by tag", _tags(graded, summary))
    if summary.agents:
        yield from fold("Results by agent", _agents(summary))
    if worst_samples.samples and not is_bad:
        more = f", and {worst_samples.more:,} more" if worst_samples.more else ""
        yield from fold(f"The worst samples{more}", _worst(worst_samples))


def _remarks(run: Run) -> Iterator[str]:
    """Yield what people say of a run."""
    remarks = [("title", run.title), ("tags", ", ".join(run.tags)), ("notes", run.notes)]
    if known := [(name, text) for name, text in remarks if text]:
        yield from (f"- {name}: {code(text, 1000)}" for name, text in known)
        yield ""


def _matrix(matrix: Matrix) -> Iterator[str]:
    """Yield the scores of one grader by sample and target, and the figures of each target below."""
    yield f"Scores of {code(matrix.grader)}"
    yield ""
    rows = [[code(row.sample), *(cell_text(row.cells.get(name)) for name in matrix.columns)] for row in matrix.rows]
    feet = [[f"**{name}**", *(text or "–" for text in texts)] for name, texts in figures(matrix, matrix.columns)]
    heads = ["sample", *map(code, matrix.columns)]
    yield from table(heads, "l" * len(heads), [*rows, *feet])


def _tags(graded: GradedRun, summary: Summary) -> Iterator[str]:
    for finding_of_tags in answers_of(str, "tag_finding", store=graded.store, grading=graded.grading):
        yield from (code(finding_of_tags, 600), "")
    rows = ([code(tag.tag), *_grader(grader)] for tag in summary.tags for grader in tag.graders)
    yield from table(["tag", *_GRADER_HEADS], "l" + _SIDES, rows)
    yield ""
    if line := tags_line(summary):
        yield from (line, "")


def _agents(summary: Summary) -> Iterator[str]:
    if line := who_failed(summary):
        yield from (code(line, 400), "")
    rows = ([code(row[0]) if row[0] else "", *row[1:5], code(row[5]), *row[6:]] for row in agent_rows(summary))
    yield from table([*HEADS], "lrrrrlrrrr", rows)
    yield ""
    if line := agents_line(summary):
        yield from (line, "")


def _worst(worst_samples: WorstSamples) -> Iterator[str]:
    errors = [sample for sample in worst_samples.samples if sample.score is None]
    low = [sample for sample in worst_samples.samples if sample.score is not None]
    for title, samples in (("Could not be scored", errors), ("Lowest scores", low)):
        if samples:
            yield f"**{title}**"
            yield ""
            rows = (
                [_sample(sample), code(sample.key.target), number(sample.score), _why(sample)] for sample in samples
            )
            yield from table(["sample", "target", "score", "why"], "llrl", rows)
            yield ""


def _command(run_id: str, worst_samples: WorstSamples) -> Iterator[str]:
    """Yield how many more samples did not pass, and the command that shows the first of the worst."""
    if worst_samples.more:
        yield from (f"and {worst_samples.more:,} more", "")
    key = worst_samples.samples[0].key
    yield f"See the worst with {code(show_command(run_id, conversation_label(key.sample_id, key.trial)), 400)}"


def _question_label(exchange: Exchange) -> str:
    return f"asked in {code(exchange.session)}" if exchange.session else "asked"


def _why(sample: Worst) -> str:
    exchange = sample.exchange
    if exchange is None:
        return code(sample.why)
    question = f"{_question_label(exchange)}: {code(exchange.question)}"
    return f"{code(sample.why)}<br>{question}<br>said: {code(exchange.answer)}"


def fold(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines inside a folded section; the empty lines switch back to Markdown."""
    yield from ("", "<details>", f"<summary>{title}</summary>", "")
    yield from lines
    yield "</details>"


def table(heads: list[str], sides: str, rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield a table; `sides` has a letter for each column, `l` or `r`."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---:' if side == 'r' else '---' for side in sides)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _grader(grader: GraderSummary) -> list[str]:
    rate = "–" if grader.pass_rate is None else share_text(grader.pass_rate)
    counts = [str(grader.scored), str(grader.errors), str(grader.skipped)]
    return [code(grader.name), code(grader.target), *counts, mean_text(grader), interval(grader.low, grader.high), rate]


def _sample(sample: Worst) -> str:
    if sample.group is not None:
        return sample.group
    return code(conversation_label(sample.key.sample_id, sample.key.trial))


def number(value: float | None) -> str:
    """Return a score, or a dash if there is none."""
    return "–" if value is None else score_text(value)


def interval(low: float | None, high: float | None) -> str:
    """Return a 95% interval, or a dash if there is none."""
    return "–" if low is None or high is None else f"{low:.3f} … {high:.3f}"
