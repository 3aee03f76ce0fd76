"""A suite as tests of pytest: one for each sample and target, and one for a verdict next to the samples."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import pytest

from vivavoce.errors import VivavoceError
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, to_number
from vivavoce.report.graded_run import show_command
from vivavoce.report.text import inert, one_line
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.options import RunOptions
from vivavoce.samples.sample import Sample
from vivavoce.suites.expectations import states_requirement
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.plan import plan_of
from vivavoce.suites.targets import build_targets
from vivavoce.testing.failure_text import (
    all_scores,
    broken_text,
    decides,
    error_scores,
    missed_scores,
    missed_text,
    reason_line,
)
from vivavoce.testing.session import SharedSession
from vivavoce.testing.suite_run import HeldRun, SuiteSelection, run_once, target_names

OpenSession = Callable[[], SharedSession]
MAX_TRIALS = 3
"""Trials of a sample that are shown."""


class SuiteFile(pytest.File):
    """A file of a suite; its run is held once, for all of its tests that were chosen, when the first of them begins."""

    open_session: OpenSession
    failed: str | None = None
    every: list[SampleItem]

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the tests of the suite, those of samples first.

        Raises:
            CollectError: the suite or its dataset is wrong, or empty.
        """
        self.every = list[SampleItem]()
        try:
            suite = self.suite
            plan = plan_of(suite, RunOptions())
            names = [target.name for target in build_targets(suite, plan.concurrency, keys_needed=False)]
            samples = {sample.id: sample for sample in plan.samples()}
        except VivavoceError as error:
            raise self.CollectError(str(error)) from error
        if not samples:
            raise self.CollectError(f"{self.path}: the dataset has no samples")
        targets = target_names(suite, names)
        for sample in samples.values():
            for target in targets:
                name = sample.id if len(targets) == 1 else f"{sample.id}[{target}]"
                self.every.append(SampleItem.of(self, _selectable(name), sample, target))
        yield from self.every
        if (kind := _decided_beside(suite)) is not None:
            name = kind if kind not in samples else f"{kind} of the suite"
            yield VerdictItem.from_parent(self, name=name)  # pyright: ignore[reportUnknownMemberType]

    @cached_property
    def suite(self) -> Suite:
        """The suite."""
        return load_suite(self.path)

    @cached_property
    def shared(self) -> SharedSession:
        """What all tests share."""
        return self.open_session()

    def require_run(self, item: pytest.Item) -> HeldRun:
        """Return the run of the tests that were chosen; fail where it cannot be held."""
        if self.failed is not None:
            pytest.fail(f"the suite could not be run: see {self.failed}", pytrace=False)
        try:
            return self._held_run
        except VivavoceError as error:
            self.failed, wrong = item.name, str(error)
        pytest.fail(inert(f"the suite could not be run: {wrong}"), pytrace=False)

    @cached_property
    def selected_items(self) -> Sequence[pytest.Item]:
        """The tests of this suite that pytest runs."""
        return [item for item in self.session.items if item.parent is self]

    @cached_property
    def left_out(self) -> int:
        """How many tests of samples were not chosen, where any was."""
        own = [item for item in self.selected_items if isinstance(item, SampleItem)]
        return len(self.every) - len(own) if own else 0

    @property
    def gate_decides(self) -> bool:
        """Whether the gate says what comes of the suite: it is about all samples."""
        has_verdict = any(isinstance(item, VerdictItem) for item in self.selected_items)
        return self.suite.spec.gate is not None and not self.left_out and has_verdict

    @cached_property
    def _held_run(self) -> HeldRun:
        items = [item for item in self.selected_items if isinstance(item, SampleItem)] or self.every
        samples = dict.fromkeys(item.sample_id for item in items)
        every = not self.left_out
        targets = frozenset(item.target for item in items)
        return run_once(self.shared, self.suite, SuiteSelection(None if every else tuple(samples), targets))


class _Item(pytest.Item):
    """A test of a suite, which reads its part of the run."""

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file, no line, and the name."""
        return self.path, None, self.name

    def setup(self) -> None:
        """Hold the run, or read it; with --setup-plan, which carries nothing out, do neither."""
        if not self.config.getoption("setupplan", False):
            self.read()

    @abstractmethod
    def read(self) -> None:
        """Read what came of the test in the run of its suite; an error is one of its set-up."""

    @property
    def _suite(self) -> SuiteFile:
        assert isinstance(self.parent, SuiteFile)
        return self.parent

    @property
    def _held_run(self) -> HeldRun:
        return self._suite.require_run(self)


class SampleItem(_Item):
    """A sample with one target; it passes where each of its trials does."""

    sample_id: str
    target: str

    @classmethod
    def of(cls, parent: SuiteFile, name: str, sample: Sample, target: str) -> SampleItem:
        """Return the test of a sample; `-k` finds it by its tags, too."""
        item = cast("SampleItem", cls.from_parent(parent, name=name))  # pyright: ignore[reportUnknownMemberType]
        item.sample_id, item.target = sample.id, target
        item.extra_keyword_matches.update(sample.tags)
        return item

    def read(self) -> None:
        """Note the scores; what could not be held or judged is an error, unless the gate passes without it."""
        held_run, wrong, outcomes = self._held_run, self._broken, self._outcomes
        run_id, options = held_run.run.id, self._suite.shared.options
        self.user_properties += [("viva_run", run_id), ("viva_sample", self.sample_id), ("viva_target", self.target)]
        self.user_properties += [(f"viva_score_{name}", value) for name, value in _values(outcomes)]
        if not outcomes:
            why = held_run.summary.stopped or "it ended early"
            pytest.fail(inert(f"not run: {why}; continue with: viva run --resume {run_id}"), pytrace=False)
        if self._held_run.nothing_scored and self._skip_reason:
            pytest.fail(inert(f"inconclusive: nothing was scored in the whole run; {self._skip_reason}"), pytrace=False)
        if wrong and self._excused:
            pytest.xfail(inert(one_line(f"the gate still passes: {broken_text(wrong[0], run_id, options)}", 300)))
        if wrong and not self._missed:
            lines = [
                f"{_trial(outcome, outcomes)}{broken_text(outcome, run_id, options)}" for outcome in wrong[:MAX_TRIALS]
            ]
            pytest.fail("\n".join(lines), pytrace=False)

    def runtest(self) -> None:
        """Fail where a score did not pass; where the gate passes all the same, that was to be expected."""
        __tracebackhide__ = True
        outcomes, wrong = self._outcomes, self._missed
        if not wrong:
            self._end_without_a_miss()
            return
        if self._excused:
            pytest.xfail(
                inert(
                    one_line(
                        f"the gate still passes: {reason_line(missed_scores(wrong[0], self._held_run.only_warn))}",
                        300,
                    )
                )
            )
        run_id, options = self._held_run.run.id, self._suite.shared.options
        only_warn = self._held_run.only_warn
        lines = [
            f"{_trial(outcome, outcomes)}{missed_text(outcome, run_id, options, only_warn)}"
            for outcome in wrong[:MAX_TRIALS]
        ]
        if len(outcomes) > 1:
            lines.insert(0, f"{len(outcomes) - len(wrong)} of {len(outcomes)} trials passed; needed {len(outcomes)}")
        pytest.fail("\n".join(lines), pytrace=False)

    def _end_without_a_miss(self) -> None:
        """Say that no grader applies, or that there is a warning."""
        outcomes, only_warn = self._outcomes, self._held_run.only_warn
        if self._skip_reason:
            pytest.skip(inert(self._skip_reason))
        if warnings := next((scores for outcome in outcomes if (scores := missed_scores(outcome))), None):
            only = {name: score for name, score in warnings.items() if name in only_warn}
            pytest.xfail(inert(one_line(f"only a warning: {reason_line(only)}", 300)))

    @property
    def _skip_reason(self) -> str:
        """Why no grader applies or decides anything; empty where one does."""
        outcomes = self._outcomes
        if any(decides(outcome) for outcome in outcomes):
            return ""
        if measured := [name for name, score in all_scores(outcomes[0]).items() if score.measured is not None]:
            return one_line(f"only measured: {', '.join(measured)}; a threshold decides what passes", 300)
        reasons = [f"{name}: {score.reason}" for name, score in outcomes[0].scores.items()]
        return one_line(f"no grader applies: {'; '.join(reasons)}", 300)

    @cached_property
    def _outcomes(self) -> Sequence[Outcome]:
        return self._held_run.of(self.sample_id, self.target)

    @property
    def _excused(self) -> bool:
        """Whether a miss was to be expected, because the gate passes all the same."""
        return self._suite.gate_decides and self._held_run.summary.verdict == "pass"

    @property
    def _missed(self) -> Sequence[Outcome]:
        return [outcome for outcome in self._outcomes if missed_scores(outcome, self._held_run.only_warn)]

    @property
    def _broken(self) -> Sequence[Outcome]:
        return [outcome for outcome in self._outcomes if error_scores(outcome) or outcome.attempt.failure is not None]


class VerdictItem(_Item):
    """The verdict on the run of a suite: its gate, and whether each rule applied."""

    def read(self) -> None:
        """Note the run; an inconclusive verdict is an error."""
        suite, held_run = self._suite, self._held_run
        self.user_properties.append(("viva_run", held_run.run.id))
        if suite.left_out:
            pytest.skip(f"the verdict is about all samples; left out: {suite.left_out:,}")
        if held_run.summary.verdict == "inconclusive":
            pytest.fail(self._text(held_run, "inconclusive"), pytrace=False)

    def runtest(self) -> None:
        """Fail where the run does."""
        if self._held_run.summary.verdict == "fail":
            pytest.fail(self._text(self._held_run, "the run fails"), pytrace=False)

    def _text(self, held_run: HeldRun, head: str) -> str:
        lines = explain_verdict(held_run.summary)
        options = self._suite.shared.options
        command = show_command(held_run.run.id, "", options).removesuffix(" ''")
        return inert("\n".join([f"{head}: {'; '.join(lines)}", f"the run: {command}"]))


def _decided_beside(suite: Suite) -> str | None:
    """Return what is decided next to the samples: the `gate`, or the `verdict` where a rule may apply to none."""
    if suite.spec.gate is not None:
        return "gate"
    graders = suite.spec.graders.values()
    return "verdict" if any(map(states_requirement, graders)) else None


def _selectable(name: str) -> str:
    """Return a name as one line that commands no terminal or CI server, and with which pytest finds its test again."""
    return inert(one_line(name, sys.maxsize)).replace("::", ": :")


def _values(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, object]]:
    """Yield each score by its name, with the trial where there are several."""
    for outcome in outcomes:
        trial = f"#{to_number(outcome.attempt.key.trial)}" if len(outcomes) > 1 else ""
        for name, score in all_scores(outcome).items():
            yield f"{name}{trial}", _value(score)


def _trial(outcome: Outcome, outcomes: Sequence[Outcome]) -> str:
    """Return which trial it is, where there are several."""
    return f"\ntrial {to_number(outcome.attempt.key.trial)}: " if len(outcomes) > 1 else ""


def _value(score: Score) -> object:
    number = score.measured if score.value is None else score.value
    return score.state if number is None else number


def suite_file(path: Path, parent: pytest.Collector, open_session: OpenSession) -> SuiteFile:
    """Return the collector of a suite."""
    collector = SuiteFile.from_parent(parent, path=path)  # pyright: ignore[reportUnknownMemberType]
    collector.open_session = open_session
    return collector
