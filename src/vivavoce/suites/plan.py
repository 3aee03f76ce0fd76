"""The plan of a suite: which samples run, how often, how many at a time, and which gates can end the trials early."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.grading.gates import Gate, LogicalGate, SamplesGate, SimpleGate
from vivavoce.pacing.limits import affordable
from vivavoce.plugins import lazy
from vivavoce.records.run import DrawRecord, Sampling
from vivavoce.run.options import RunOptions
from vivavoce.samples.rows import Selection, read_samples
from vivavoce.samples.sample import Sample
from vivavoce.stats.intervals import LEVEL
from vivavoce.suites.dataset import dataset_source, policy_of, with_policy
from vivavoce.suites.document import KeyPath
from vivavoce.suites.grading_spec import (
    AnyGateSpec,
    ConditionSpec,
    CustomRewardSpec,
    LogicalGateSpec,
    SamplesGateSpec,
    WeightedGateSpec,
)
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import SuiteSpec, TrialsUntil

if TYPE_CHECKING:
    from vivavoce.run.stopping import Stopping


IN_ONE_RUN = "only a run of a suite, or viva judge, asks its judges in batches"
"""What is wrong with batches for anything else."""


MAX_KEPT_BYTES = 16_000_000
"""Bytes of a file whose samples are kept between the check and the run; a larger one is read twice."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The conversations that were drawn, by their place in the file from 0, and how."""

    sampling: Sampling
    places: Mapping[int, DrawRecord]


class Sampler(Protocol):
    """Reads a whole dataset and draws some of its conversations."""

    def add(self, sample: Sample) -> None:
        """Take the next conversation.

        Raises:
            UsageError: a metric cannot measure it.
        """
        ...

    def check_gate(self, gate: Gate | None) -> None:
        """Refuse a gate that conversations which were not judged could decide otherwise.

        Raises:
            UsageError: it is about each conversation, and not about a mean.
        """
        ...

    def draw(self, dataset: str) -> Draw | None:
        """Return what was drawn, the same for the same `dataset`, a hash; None where all are to be judged.

        Raises:
            UsageError: no conversation has what they are distinguished by.
        """
        ...

    @property
    def note(self) -> str:
        """What to say where all are judged."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The samples and trials of a run of a suite; `until` may end them before `trials` of each sample are made.

    Of recorded conversations `sample` are to be drawn, by `sample_by` and `weight_by`; `draw` says which, once it is
    known. `ready_samples` are the samples with the tags as the check has read them, for whoever reads them next.
    """

    source: Path | list[dict[str, Any]]
    base: Path
    fields: Mapping[str, str]
    replays: bool
    trials: int
    max_samples: int | None
    tags: Sequence[str] | None
    selection: Selection | None
    concurrency: int
    policy: str | None = None
    format: str | None = None
    until: TrialsUntil | None = None
    sample: int | None = None
    sample_by: Sequence[str] = ()
    weight_by: str | None = None
    draw: Draw | None = None
    ready_samples: list[Sample] = field(default_factory=list[Sample], compare=False, repr=False)

    @property
    def is_small(self) -> bool:
        """Whether the samples may be kept between the check and the run."""
        source = self.source
        return isinstance(source, Path) and source.is_file() and source.stat().st_size <= MAX_KEPT_BYTES

    def samples(self) -> Iterator[Sample]:
        """Yield the chosen samples, one at a time."""
        if self.draw is not None:
            yield from self._read_draw(self.draw)
            return
        sample_count = 0
        for sample in self.every(self.tags):
            if self.selection is not None and sample.id not in self.selection:
                continue
            yield sample
            sample_count += 1
            if sample_count == self.max_samples:
                return

    def _read_draw(self, draw: Draw) -> Iterator[Sample]:
        """Yield the samples that were drawn; where tags choose, places are those among the chosen ones."""
        if self.tags is None:
            yield from self._read(places=draw.places)
        else:
            yield from (sample for place, sample in enumerate(self.every(self.tags)) if place in draw.places)

    def every(self, tags: Sequence[str] | None = None) -> Iterator[Sample]:
        """Yield the samples of the dataset, those that are not chosen too; `tags` filters them."""
        return self._read(tags=tags)

    def _read(self, tags: Sequence[str] | None = None, places: Container[int] | None = None) -> Iterator[Sample]:
        if self.ready_samples and places is None and tags == self.tags:
            samples = self.ready_samples[::-1]
            self.ready_samples.clear()
            return with_policy(_let_go(samples), self.policy)
        read = read_samples(
            self.source, fields=self.fields, base=self.base, tags=tags, format=self.format, places=places
        )
        return with_policy(read, self.policy)

    @property
    def takes_all(self) -> bool:
        """Whether every sample with one of the tags is chosen."""
        return self.selection is None and self.max_samples is None and self.draw is None

    @property
    def dataset(self) -> str:
        """What identifies this dataset: a hash of its file, or of its rows, and of its policy."""
        rows = (
            hash_file(self.source)
            if isinstance(self.source, Path)
            else _hash(json.dumps(self.source, sort_keys=True, default=str))
        )
        return rows if self.policy is None else _hash(f"{rows} {self.policy}")

    def count(self, rows: int) -> int:
        """Return how many rows of the dataset are chosen.

        Raises:
            UsageError: no row has one of the ids, or fits one of the patterns, or no row is chosen at all.
        """
        if self.draw is not None:
            return len(self.draw.places)
        if self.selection is None:
            return min(rows, self.max_samples or rows)
        every = {sample.id for sample in self.every()}
        missing = self.selection.missing(every)
        where = self.source if isinstance(self.source, Path) else "the list of rows"
        if missing:
            raise UsageError(f"{where} has no sample '{missing[0]}'{did_you_mean(missing[0], every)}")
        number = sum(1 for _ in self.samples())
        if not number:
            raise UsageError(f"none of the chosen samples of {where} has the tags {', '.join(self.tags or ())}")
        return number


def _let_go(samples: list[Sample]) -> Iterator[Sample]:
    """Yield samples from the last to the first, without keeping any that was yielded."""
    while samples:
        yield samples.pop()


def plan_of(suite: Suite, options: RunOptions) -> Plan:
    """Return the plan of a run.

    Raises:
        UsageError: the options do not fit the suite.
    """
    spec = suite.spec
    replays = spec.driver == "replay"
    until = spec.trials if isinstance(spec.trials, TrialsUntil) and options.trials is None else None
    trials = options.trials or (spec.trials.max if isinstance(spec.trials, TrialsUntil) else spec.trials)
    if options.batch and not replays:
        raise UsageError("batches are for recorded conversations; a run with a target calls its judges directly")
    if options.sample is not None and not replays:
        raise UsageError("sample draws from recorded conversations; for a run with a target, use max_samples")
    if replays and trials > 1:
        raise UsageError("a replay has only the recorded trials; map them with dataset.fields.trial instead")
    return Plan(
        source=dataset_source(suite),
        base=suite.base,
        fields=spec.dataset.fields,
        replays=replays,
        trials=trials,
        max_samples=options.max_samples or spec.max_samples,
        tags=options.tags if options.tags is not None else spec.sample_tags,
        selection=None if options.samples is None else Selection.of(options.samples),
        concurrency=affordable(options.max_concurrent or spec.max_concurrent),
        policy=policy_of(suite),
        format=spec.dataset.format,
        until=until,
        sample=options.sample,
        sample_by=options.sample_by or (),
        weight_by=options.weight_by,
    )


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def hash_file(path: Path) -> str:
    """Return a hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


Refuse = Callable[[KeyPath, str], Problem]
_MEANS = ("avg_score", "accuracy")


def refusals(suite: Suite, rule: TrialsUntil, deciding: Sequence[str]) -> list[Problem]:
    """Return why the trials of a suite cannot end early, each with its place; empty where they can.

    `deciding` names the graders whose scores pass or fail.
    """
    spec, refuse = suite.spec, suite.document.problem
    problems: list[Problem] = []
    if sum(len(target.names_and_models) for target in spec.all_targets.values()) > 1:
        several = "several targets are compared over the same trials; write trials as a number, or a suite for each"
        problems.append(refuse(("trials",), several))
    if spec.gate is None:
        if rule.until is not None:
            problems.append(refuse(("trials", "until"), "there is no gate to decide; write a gate, or half_width"))
        elif spec.reward is None and not deciding:
            problems.append(refuse(("trials", "half_width"), "no grader has a threshold, so no mean has an interval"))
        return problems
    return [*problems, *_of_gate(spec.gate, ("gate",), spec, rule, refuse)]


def _of_gate(gate: AnyGateSpec, at: KeyPath, spec: SuiteSpec, rule: TrialsUntil, refuse: Refuse) -> Iterator[Problem]:
    if isinstance(gate, LogicalGateSpec):
        for place, condition in enumerate(gate.conditions):
            inner = (*at, "conditions", place)
            if isinstance(condition, SamplesGateSpec):
                yield refuse(inner, _early("a condition on each sample next to others", "kind: samples alone"))
            else:
                yield from _of_gate(condition, inner, spec, rule, refuse)
    elif isinstance(gate, SamplesGateSpec):
        if rule.half_width is not None:
            yield refuse(at, "a condition on each sample has no interval to make narrow; write until: decided")
        elif gate.min_pass > rule.max:
            yield refuse((*at, "min_pass"), f"needs {gate.min_pass} trials of each sample; max is {rule.max}")
    elif isinstance(gate, WeightedGateSpec):
        yield refuse(at, _early("a weighted mean of aggregates", "a reward of kind: weighted, and a gate on reward"))
    else:
        yield from _of_condition(gate, at, spec, refuse)


def _of_condition(gate: ConditionSpec, at: KeyPath, spec: SuiteSpec, refuse: Refuse) -> Iterator[Problem]:
    if gate.aggregation not in _MEANS:
        yield refuse((*at, "aggregation"), _early(gate.aggregation, "avg_score or accuracy"))
        return
    if gate.on != "mean":
        hint = "on: mean, which passes only where its whole interval does"
        yield refuse((*at, "on"), _early(f"on: {gate.on}", hint))
    if gate.op == "eq":
        yield refuse((*at, "op"), _early("op: eq", "gt, gte, lt or lte"))
    end = 100.0 if gate.aggregation == "accuracy" else 1.0
    if gate.value in (0.0, end):
        no_side = f"no interval lies wholly on one side of {gate.value:g} or at it; write a value between 0 and {end:g}"
        yield refuse((*at, "value"), f"{no_side}, or kind: samples, or trials as a number")
    if gate.needs_calibration is not None:
        yield refuse((*at, "needs_calibration"), _early("a calibration", "trials as a number"))
    if gate.max_findings:
        yield refuse((*at, "max_findings"), _early("a limit on findings", "trials as a number"))
    if gate.metric_key == "reward" and isinstance(spec.reward, CustomRewardSpec):
        yield refuse((*at, "metric_key"), _early("a reward computed by a function", "a grader, or a weighted reward"))


def _early(what: str, instead: str) -> str:
    return f"{what} cannot be decided while trials are still made; write {instead}"


def early_gate(gate: Gate, most: int, conditions: int = 1) -> Gate:
    """Return a gate that is decided while trials are still made; the level is shared among all conditions."""
    if isinstance(gate, LogicalGate):
        parts = len(gate.conditions) * conditions
        return replace(gate, conditions=[early_gate(condition, most, parts) for condition in gate.conditions])
    if isinstance(gate, SimpleGate):
        return replace(gate, level=1 - (1 - LEVEL) / conditions)
    return replace(gate, most=most) if isinstance(gate, SamplesGate) else gate


def stopping(rule: TrialsUntil, spec: SuiteSpec, gate: Gate | None, graders: Sequence[str]) -> Stopping:
    """Return when the trials of a run end.

    A half width is of what the first condition of the gate compares; without a gate of the mean of the reward, else of
    the first grader.
    """
    make: type[Stopping] = lazy("vivavoce.run.stopping:Stopping")
    if rule.half_width is None:
        return make(rule.max, gate)
    first = spec.gate
    while isinstance(first, LogicalGateSpec):
        first = first.conditions[0]
    if isinstance(first, ConditionSpec):
        return make(rule.max, gate, rule.half_width, first.metric_key, first.aggregation == "accuracy")
    return make(rule.max, gate, rule.half_width, "reward" if spec.reward is not None else graders[0])
