"""Gathering labels beside the verdicts of a judge: from the pages, from a file, or from the rows of the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import NotFound, Problem, UsageError
from vivavoce.files.rows import format_of, read_rows
from vivavoce.records.label import Calibration, HumanVerdict, Label, LabelledVerdict
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import conversation_label
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.rated import rated
from vivavoce.store.labels.agreement import Paired
from vivavoce.store.labels.calibrations import KeyedVerdict, new_calibration
from vivavoce.store.labels.people import people_agreement
from vivavoce.store.labels.truth import Truth, truth_of
from vivavoce.store.store import Store


class FileLabel(BaseModel):
    """A line of a file of labels, as `viva labels export` writes them; more fields are ignored."""

    model_config = ConfigDict(frozen=True)

    sample_id: str
    verdict: HumanVerdict
    target: str | None = None
    trial: int = Field(default=0, ge=0)
    turn: int | None = None
    grader: str = ""
    author: str = ""
    blind: bool = True
    drawn: float | None = Field(default=None, gt=0)


def from_people(store: Store, grading: Grading, grader: str, author: str) -> Calibration:
    """Return the labels that people gave on the pages and through the API, beside the verdicts of a grader.

    Where people differ, the decision counts, else what most of them say. `author` is who calibrates.

    Raises:
        NotFound: there is no such grader.
    """
    pairs, decisions = store.labels.paired(grading, grader), store.decisions.all(grading.run_id, grader=grader)
    truth = truth_of(pairs, decisions)
    truth.people = people_agreement([one.label for one in pairs])
    _drawn_in_all(truth, store.calibrations.verdicts(grading, grader))
    return new_calibration(grading, grader, truth, "people", author)


def shown(
    store: Store, grading: Grading, grader: str, author: str, kept: str | None = None
) -> tuple[Calibration, bool]:
    """Return the calibration of a grader to look at, and whether it is a kept one.

    That is the one with the id `kept`; without one the labels of people as they are now; where there are none, the
    newest kept one of this judge in this run.

    Raises:
        NotFound: there is no such grader, or no calibration `kept` of it.
    """
    if kept is None:
        found = from_people(store, grading, grader, author)
        if found.labels:
            return found, False
        mine = grading.fingerprints[grader]
        same = [one for one in store.calibrations.of_run(grading.run_id, grader) if one.fingerprint == mine]
        return (same[0], True) if same else (found, False)
    for one in store.calibrations.of_run(grading.run_id, grader):
        if one.id == kept:
            return one, True
    raise NotFound("calibration", kept, within=f"run {grading.run_id}")


def from_file(graded: GradedRun, grader: str, path: Path, author: str, *, at_random: bool) -> Calibration:
    """Return the labels of a file beside the verdicts of a grader.

    `at_random` says that its conversations were drawn at random; otherwise only those count as drawn of which the file
    says so, or all where every conversation has a label.

    Raises:
        UsageError: a line is no label, or of a conversation that the run does not have. NotFound: no such grader.
    """
    if format_of(path) == "csv":
        raise UsageError(Problem("labels are read from JSON Lines: viva labels export > labels.jsonl", path))
    places, pairs = _Places.of(graded, grader), list[Paired]()
    for number, row in read_rows(path):
        one = _line(row, path, number)
        if one.turn is None and one.grader in ("", grader):
            try:
                pairs.append(places.paired(one, grader, at_random=at_random))
            except ValueError as error:
                raise UsageError(Problem(str(error), path, number)) from None
    if not pairs:
        raise UsageError(Problem(f"has no label of a whole conversation for grader '{grader}'", path))
    truth = truth_of(pairs)
    truth.people = people_agreement([one.label for one in pairs])
    _drawn_in_all(truth, list(places.verdicts.values()))
    return new_calibration(graded.grading, grader, truth, "file", author)


def from_dataset(
    graded: GradedRun, grader: str, label: str, author: str, *, good_from: float | None, at_random: bool
) -> Calibration:
    """Return a label of the rows of the dataset beside the verdicts of a grader; `at_random` as in `from_file`.

    Raises:
        UsageError: no row has the label, or it is no yes or no and `good_from` is missing. NotFound: no such grader.
    """
    (found,) = rated(graded.outcomes(), [grader], label)
    truth, drawn = Truth(unscored=found.skipped + found.errors.total()), 1.0 if at_random else None
    numbers = 0
    for case in found.cases:
        good = case.ratings.good(good_from)
        numbers += not case.ratings.boolean and good_from is None
        if good is None or case.passed is None:
            truth.split += good is None
            truth.unscored += good is not None
            continue
        said = LabelledVerdict(
            **case.key._asdict(),
            good=good,
            passed=case.passed,
            score=case.order[0],
            confidence=case.confidence,
            drawn=drawn,
            blind=True,
        )
        truth.labels.append(said)
    if numbers:
        raise UsageError(f"labels.{label} is a number: say from which one a conversation is good, as in --good-from 4")
    _drawn_in_all(truth, graded.store.calibrations.verdicts(graded.grading, grader))
    return new_calibration(graded.grading, grader, truth, "dataset", author)


def _drawn_in_all(truth: Truth, verdicts: Sequence[KeyedVerdict]) -> None:
    """Say how likely each label was drawn: where every conversation with a verdict has one, nothing was chosen.

    Where the conversations of the run were drawn themselves with unequal probabilities, a label had to be drawn twice.
    """
    if truth.labels and len(truth.labels) == len(verdicts):
        truth.labels = [one.model_copy(update={"drawn": 1.0}) for one in truth.labels]
    likely = {_key(one): one.drawn.probability for one in verdicts if one.drawn is not None}
    if len(set(likely.values())) > 1:
        truth.labels = [
            one.model_copy(update={"drawn": one.drawn and one.drawn * likely[one.key]}) for one in truth.labels
        ]


def _line(row: dict[str, Any], path: Path, number: int) -> FileLabel:
    try:
        return FileLabel.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f'{where}: {first["msg"]}; a label is {{"sample_id": …, "verdict": "pass" or "fail"}}'
        raise UsageError(Problem(message, path, number)) from None


@dataclass(frozen=True, slots=True)
class _Places:
    """The conversations of a run by sample and trial, and the verdicts of a grader."""

    run_id: str
    keys: Mapping[tuple[str, int], Sequence[AttemptKey]]
    verdicts: Mapping[AttemptKey, KeyedVerdict]

    @classmethod
    def of(cls, graded: GradedRun, grader: str) -> Self:
        keys: dict[tuple[str, int], list[AttemptKey]] = {}
        for key in sorted(graded.store.done(graded.run.id)):
            keys.setdefault((key.sample_id, key.trial), []).append(key)
        found = graded.store.calibrations.verdicts(graded.grading, grader)
        return cls(graded.run.id, keys, {_key(one): one for one in found})

    def paired(self, one: FileLabel, grader: str, *, at_random: bool) -> Paired:
        """Return a label of a file with its score.

        Raises:
            ValueError: it is of no conversation of the run, or of several.
        """
        key = self._found(one)
        label = Label(
            **key._asdict(),
            grader=grader,
            author=one.author,
            verdict=one.verdict,
            blind=one.blind,
            drawn=one.drawn or (1.0 if at_random else None),
            created_at=0.0,
        )
        score = self.verdicts.get(key)
        if score is None:
            return Paired(label, None, None, None)
        return Paired(label, "scored", score.score, score.passed, score.confidence)

    def _found(self, one: FileLabel) -> AttemptKey:
        held = self.keys.get((one.sample_id, one.trial), ())
        named = [key for key in held if one.target in (None, key.target)]
        if len(named) == 1:
            return named[0]
        name = conversation_label(one.sample_id, one.trial)
        if named:
            raise ValueError(f"{name} has several targets; name one of {', '.join(key.target for key in named)}")
        raise ValueError(f"run {self.run_id} has no conversation {name}")


def _key(one: KeyedVerdict) -> AttemptKey:
    return AttemptKey(one.sample_id, one.target, one.trial)
