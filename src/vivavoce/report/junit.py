"""A graded run as JUnit XML, which CI servers read: failures, errors and skips are separate.

Source of the format: the schema of Jenkins' xUnit plugin, https://github.com/jenkinsci/xunit-plugin (junit-10.xsd).
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import TextIO
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import quoteattr

from vivavoce.comparing.thresholds import limit_text
from vivavoce.records.details import AS_RECORDED
from vivavoce.records.run import Attempt, Outcome, Run
from vivavoce.records.score import Score, conversation_label, shorten, to_number
from vivavoce.report.details import estimate_text, lines_of, measured_text, skip_text
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.tables import truth_text
from vivavoce.report.text import one_line
from vivavoce.report.verdict import corrected_text, explain_verdict, net_text
from vivavoce.report.worst_samples import exchange_of
from vivavoce.run.summary import Summary

IN_MEMORY = 1 << 20
"""Characters of one target's test cases that are kept in memory before they go to a temporary file."""

_COUNTED_TAGS = ("failure", "error", "skipped")
"""The elements of a test case that count."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(graded: GradedRun, out: TextIO) -> None:
    """Write a test suite for each target, with a test case for each attempt and grader, and one for the gate.

    A test case is a `failure` where the score did not pass, an `error` where there is no score because of an error, and
    `skipped` where the grader does not apply, or only measures. Its `message` is the reason. A miss that only warns is
    in the output of its test case. The gate's fails or, when the run is inconclusive, is an error. Characters that are
    not allowed in XML become U+FFFD.
    """
    name, summary = graded.run.suite, graded.summary()
    only_warn = {grader.name for grader in summary.graders if grader.severity == "warn"}
    with ExitStack() as open_files:
        suites: dict[str, _Suite] = {}
        for outcome in graded.outcomes():
            target = outcome.attempt.key.target
            if target not in suites:
                suites[target] = _Suite(target, open_files.enter_context(_aside()))
            suites[target].add(outcome, f"{name}.{target}", only_warn)
        all_suites = [*suites.values()]
        if summary.verdict is not None:
            all_suites.append(_Suite("gate", open_files.enter_context(_aside())))
            all_suites[-1].write(_gate_case(name, summary))
        total = sum((suite.counts for suite in all_suites), Counter[str]())
        out.write('<?xml version="1.0" encoding="utf-8"?>\n')
        out.write(f"<testsuites name={_attribute(name)} {_count_attributes(total)}>\n")
        for suite in all_suites:
            suite.copy_to(out, graded.run, _properties(graded.run, summary, suite.name))
        out.write("</testsuites>\n")


def _aside() -> SpooledTemporaryFile[str]:
    return SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="")


@dataclass(slots=True)
class _Suite:
    """The test cases of one target, buffered until their number is known."""

    name: str
    cases: SpooledTemporaryFile[str]
    counts: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0

    def add(self, outcome: Outcome, classname: str, only_warn: Collection[str] = ()) -> None:
        """Add the test cases of one attempt; its time is included once, so that sums are right.

        A miss of a grader that may `only_warn` is not a failure.
        """
        attempt = outcome.attempt
        seconds = attempt.trajectory.seconds or 0.0
        self.seconds += seconds
        scores = dict(outcome.scores)
        if outcome.reward is not None:
            scores["reward"] = outcome.reward
        if not scores:
            self.write(_unscored_case(attempt, classname, seconds))
        for i, (grader, grade) in enumerate(scores.items()):
            case = _case(f"{_title(attempt)} · {grader}", classname, 0.0 if i else seconds)
            self.write(_score_case(case, attempt, grade, warns=grader in only_warn))

    def write(self, case: Element) -> None:
        """Add one test case."""
        self.counts["tests"] += 1
        self.counts.update(child.tag for child in case if child.tag in _COUNTED_TAGS)
        self.cases.write(tostring(case, encoding="unicode") + "\n")

    def copy_to(self, out: TextIO, run: Run, properties: Mapping[str, str]) -> None:
        """Write the test suite."""
        timestamp = datetime.fromtimestamp(run.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        out.write(f'<testsuite name={_attribute(self.name)} timestamp="{timestamp}" {_count_attributes(self.counts)}')
        out.write(f' time="{self.seconds:.3f}">\n')
        if properties:
            elements = (
                f"<property name={_attribute(name)} value={_attribute(it)}/>" for name, it in properties.items()
            )
            out.write(f"<properties>{''.join(elements)}</properties>\n")
        self.cases.seek(0)
        shutil.copyfileobj(self.cases, out)
        out.write("</testsuite>\n")


def _properties(run: Run, summary: Summary, target: str) -> dict[str, str]:
    """Return what is said of a test suite: what it repeats, how far it went as recorded, its skips, and its rates.

    Those are without the errors of the judge, estimates for all conversations where only some were judged, and net of
    the conversations that the tester spoiled.
    """
    known = {} if run.partial_of is None else {"partial_of": run.partial_of}
    lines = [line for recording in summary.recording if recording.target == target for line in lines_of(recording)]
    known |= {f"{AS_RECORDED}.{number}": line for number, line in enumerate(lines, 1)}
    known |= {f"skipped.{skip.name}": skip_text(skip) for skip in summary.skips if skip.target == target}
    rates = {
        f"corrected.{grader.name}": corrected_text(grader.corrected, run.id)
        for grader in summary.graders
        if grader.target == target and grader.corrected is not None
    }
    rates |= {
        f"estimated.{grader.name}": text
        for grader in summary.graders
        if grader.target == target and (text := estimate_text(grader))
    }
    net = {
        f"net.{grader.name}": text
        for grader in summary.graders
        if grader.target == target and (text := net_text(grader))
    }
    return {**known, **rates, **net}


def _score_case(case: Element, attempt: Attempt, score: Score, *, warns: bool) -> Element:
    properties = SubElement(case, "properties")
    sample, trial = attempt.key.sample_id, to_number(attempt.key.trial)
    known = {
        "sample_id": sample,
        "trial": trial,
        "state": score.state,
        "score": score.value,
        "measured": score.measured,
    }
    for name, value in known.items():
        if value is not None:
            SubElement(properties, "property", name=name, value=_legal(str(value)))
    if score.passed is False and warns:
        SubElement(case, "system-out").text = _legal(f"only a warning: {_evidence(attempt, score)}")
    elif score.passed is False:
        message = score.reason or f"scored {limit_text(score.value or 0.0)}, which does not pass"
        _result(case, "failure", "score", message, _evidence(attempt, score))
    elif score.state == "error":
        failure = score.failure
        kind = f"{failure.blame}.{failure.kind}" if failure else "unknown"
        message = str(failure) if failure else score.reason or "no reason"
        _result(case, "error", kind, message, failure.evidence if failure else None)
    elif score.measured is not None:
        SubElement(case, "skipped", message=f"measured {measured_text(score.measured)}; no threshold says what passes")
    elif score.state == "skipped":
        SubElement(case, "skipped", message=_line(score.reason or "does not apply"))
    return case


def _unscored_case(attempt: Attempt, classname: str, seconds: float) -> Element:
    case = _case(_title(attempt), classname, seconds)
    if attempt.failure is not None:
        kind = f"{attempt.failure.blame}.{attempt.failure.kind}"
        _result(case, "error", kind, str(attempt.failure), attempt.failure.evidence)
    else:
        SubElement(case, "skipped", message="not graded yet")
    return case


def _gate_case(suite: str, summary: Summary) -> Element:
    case = _case("gate", f"{suite}.gate", 0.0)
    reasons = explain_verdict(summary)
    lines = "\n".join(reasons)
    if summary.verdict != "pass":
        tag = "failure" if summary.verdict == "fail" else "error"
        _result(case, tag, "gate", "; ".join(reasons) or f"the verdict is {summary.verdict}", lines)
    elif summary.warnings:
        SubElement(case, "system-out").text = _legal(lines)
    return case


def _case(name: str, classname: str, seconds: float) -> Element:
    return Element("testcase", name=_line(name), classname=_line(classname), time=f"{seconds:.3f}")


def _result(case: Element, tag: str, kind: str, message: str, text: str | None) -> None:
    SubElement(case, tag, type=_legal(kind), message=_line(message)).text = _legal(text or "")


def _title(attempt: Attempt) -> str:
    return conversation_label(attempt.key.sample_id, attempt.key.trial)


def _evidence(attempt: Attempt, score: Score) -> str:
    lines = [score.reason]
    if (exchange := exchange_of(attempt, score)) is not None:
        lines += [
            f"{exchange.question_label}: {exchange.question}",
            *([] if exchange.answer == score.submission else [f"said: {exchange.answer}"]),
        ]
    if score.submission:
        lines.append(f"submission: {shorten(score.submission)}")
    if score.ground_truth is not None:
        lines.append(f"ground truth: {shorten(truth_text(score.ground_truth))}")
    return "\n".join(line for line in lines if line)


def _count_attributes(counts: Mapping[str, int]) -> str:
    names = {"tests": "tests", "failures": "failure", "errors": "error", "skipped": "skipped"}
    return " ".join(f'{name}="{counts.get(tag, 0)}"' for name, tag in names.items())


def _line(text: str) -> str:
    return _legal(one_line(text, 400))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)


def _attribute(text: str) -> str:
    return quoteattr(_line(text))
