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
from vivavoce.report.verdict import breach_lines, corrected_lines, explained, finding, spoiled_lines, unverified_lines
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


def _lines(graded: GradedRun, summary: Summary, found: WorstSamples) -> Iterator[str]:
    yield f"**{code(graded.run.suite)} {_VERDICTS[summary.verdict]}**"
    yield ""
    yield f"{code(finding(summary, graded.grading), 400)}"
    yield ""
    yield from _remarks(graded.run)
    for reason in explained(summary):
        yield f"- {code(reason)}"
    is_bad = summary.verdict in ("fail", "inconclusive")
    if is_bad and found.shown:
        yield from ("", *_worst(found), *_command(graded.run.id, found), "")
    broken = f", {summary.failed_attempts} of them with an error" if summary.failed_attempts else ""
    held = f"{count(summary.attempts, 'conversation')}{broken}"
    yield f"- {held} · run {code(graded.run.id)}, grading {code(graded.grading.id)}"
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
        yield from folded(title, _matrix(matrix))
    if summary.tags:
        yield from folded("Results by tag", _tags(graded, summary))
    if summary.agents:
        yield from folded("Results by agent", _agents(summary))
    if found.shown and not is_bad:
        more = f", and {found.more:,} more" if found.more else ""
        yield from folded(f"The worst samples{more}", _worst(found))


def _remarks(run: Run) -> Iterator[str]:
    """Yield what people say of a run."""
    said = [("title", run.title), ("tags", ", ".join(run.tags)), ("notes", run.notes)]
    if known := [(name, text) for name, text in said if text]:
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


def _worst(found: WorstSamples) -> Iterator[str]:
    errors = [one for one in found.shown if one.score is None]
    low = [one for one in found.shown if one.score is not None]
    for title, listed in (("Could not be scored", errors), ("Lowest scores", low)):
        if listed:
            yield f"**{title}**"
            yield ""
            rows = ([_sample(one), code(one.key.target), number(one.score), _why(one)] for one in listed)
            yield from table(["sample", "target", "score", "why"], "llrl", rows)
            yield ""


def _command(run_id: str, found: WorstSamples) -> Iterator[str]:
    """Yield how many more samples did not pass, and the command that shows the first of the worst."""
    if found.more:
        yield from (f"and {found.more:,} more", "")
    key = found.shown[0].key
    yield f"See the worst with {code(show_command(run_id, conversation_label(key.sample_id, key.trial)), 400)}"


def _asked(said: Exchange) -> str:
    return f"asked in {code(said.session)}" if said.session else "asked"


def _why(one: Worst) -> str:
    if one.said is None:
        return code(one.why)
    return f"{code(one.why)}<br>{_asked(one.said)}: {code(one.said.question)}<br>said: {code(one.said.answer)}"


def folded(title: str, lines: Iterable[str]) -> Iterator[str]:
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


def _grader(one: GraderSummary) -> list[str]:
    rate = "–" if one.pass_rate is None else share_text(one.pass_rate)
    counts = [str(one.scored), str(one.errors), str(one.skipped)]
    return [code(one.name), code(one.target), *counts, mean_text(one), interval(one.low, one.high), rate]


def _sample(one: Worst) -> str:
    if one.group is not None:
        return one.group
    return code(conversation_label(one.key.sample_id, one.key.trial))


def number(value: float | None) -> str:
    """Return a score, or a dash if there is none."""
    return "–" if value is None else score_text(value)


def interval(low: float | None, high: float | None) -> str:
    """Return a 95% interval, or a dash if there is none."""
    return "–" if low is None or high is None else f"{low:.3f} … {high:.3f}"
