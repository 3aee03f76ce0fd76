"""A graded run as annotations of a GitHub workflow: one for the verdict, one for each of the worst samples.

Each is a line that the runner reads as a command, so nothing that models, targets and suites wrote may begin a line or
end a part of one: line breaks, `%`, and in the title `:` and `,` stand escaped.

Source of the form and of the escapes: "Workflow commands for GitHub Actions" and the toolkit's `@actions/core`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from vivavoce.report.details import recorded_lines, sentences, skip_lines, target_names
from vivavoce.report.graded_run import GradedRun, partial_note
from vivavoce.report.terminal import label
from vivavoce.report.text import one_line
from vivavoce.report.verdict import explain_verdict
from vivavoce.report.worst_samples import Worst, worst

_LEVELS = {"pass": "notice", "fail": "error", "inconclusive": "warning", None: "notice"}
_WIDTH = 300


def write_github(graded: GradedRun, out: TextIO) -> None:
    """Write the annotations of a graded run, a line each."""
    out.writelines(f"{line}\n" for line in _lines(graded))


def _lines(graded: GradedRun) -> Iterator[str]:
    summary = graded.summary()
    verdict = summary.verdict or "no gate"
    yield _command(
        _LEVELS[summary.verdict], f"{graded.run.suite}: {verdict}", "; ".join(explain_verdict(summary)) or verdict
    )
    several = len(target_names(summary)) > 1
    worst_samples = worst(graded.store, graded.grading)
    for sample in worst_samples.samples:
        title = _title(f"{graded.run.suite}: {sample.key.target}" if several else graded.run.suite, sample)
        yield _command("warning" if sample.score is None else _LEVELS[summary.verdict], title, _message(sample))
    if worst_samples.more:
        yield _command("notice", graded.run.suite, f"and {worst_samples.more:,} more; see run {graded.run.id}")
    if note := partial_note(graded.run):
        yield _command("notice", graded.run.suite, note)
    for line in (*sentences(summary), *skip_lines(summary), *recorded_lines(summary)):
        yield _command("notice", graded.run.suite, line)


def _message(sample: Worst) -> str:
    return sample.why if sample.exchange is None else f"{sample.why} · {sample.exchange}"


def _title(tested: str, sample: Worst) -> str:
    score = "error" if sample.score is None else f"{sample.score:.2f}"
    return f"{tested}: {sample.group or label(sample.key)}: {score}"


def _command(level: str, title: str, message: str) -> str:
    safe_title = _escape(one_line(title, _WIDTH)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={safe_title}::{_escape(one_line(message, _WIDTH)) or '-'}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
