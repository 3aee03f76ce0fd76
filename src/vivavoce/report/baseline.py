"""A baseline: the scores of a run in a small file for version control, which later runs are compared with.

It has the scores of each sample and hashes of what decided them, and none of the texts of the conversations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TextIO

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.records.score import State
from vivavoce.report.details import check_even
from vivavoce.report.graded_run import GradedRun, partial_note
from vivavoce.report.sides import GradedSide, Origin, side_of
from vivavoce.report.strict_json import strict_json
from vivavoce.store.browse.scenarios import GraderScores, ScenarioScores

MAKE_ONE = "make one with: viva export RUN --format baseline --output FILE"
"""The next step of somebody whose file is not a baseline."""


_COLUMNS = ("sample", "target", "scenario")


class BaselineAttempt(BaseModel):
    """One conversation: a hash of what was asked, and by grader the value with whether it passes, or the state.

    A measurement is a number alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample: str
    target: str
    scenario: str
    scores: dict[str, tuple[Annotated[float, Field(ge=0, le=1)], bool] | float | State]


class Baseline(BaseModel):
    """The scores of a run, with what decided them; `graders` are in the order of the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: Literal[1] = 1
    origin: Origin
    graders: list[str]
    attempts: list[BaselineAttempt]

    @property
    def side(self) -> GradedSide:
        """The baseline as a side of a comparison."""
        samples, targets, scenarios = ([getattr(attempt, name) for attempt in self.attempts] for name in _COLUMNS)
        graders = {name: _scores(name, self.attempts) for name in self.graders}
        return side_of(self.origin, ScenarioScores(samples, targets, scenarios, graders))


def write_baseline(graded: GradedRun, out: TextIO) -> None:
    """Write the baseline that a run makes, a line for each conversation, so that changes of it can be reviewed.

    Raises:
        UsageError: the run is partial or not complete, its conversations were drawn with unequal probabilities, or
        nothing was scored.
    """
    if partial := partial_note(graded.run):
        raise UsageError(f"{graded.run.id} is {partial}")
    check_even(graded.run, "it is no baseline")
    if not graded.ended:
        raise UsageError(
            f"{graded.run.id} is not complete, so it cannot be a baseline; continue it with viva run --resume"
        )
    found = graded.store.scenarios.scores(graded.grading)
    if not any(np.isfinite(one.values).any() or one.measured for one in found.graders.values()):
        raise UsageError(f"the grading '{graded.grading.id}' has no scores, so it cannot be a baseline")
    origin = Origin.of(graded.run, graded.grading)
    head = f'"baseline":1,\n"origin":{strict_json(origin.model_dump())},\n"graders":{strict_json(list(found.graders))}'
    lines = (strict_json(_attempt(found, number).model_dump()) for number in range(len(found.samples)))
    out.write(f'{{\n{head},\n"attempts":[\n' + ",\n".join(lines) + "\n]\n}\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: the file cannot be read, or is not a baseline.
    """
    try:
        found = Baseline.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; {MAKE_ONE}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is not a baseline: {place or 'the file'}: {first['msg']}; {MAKE_ONE}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not a baseline: it is not JSON ({error}); {MAKE_ONE}") from error
    unknown = next((name for attempt in found.attempts for name in attempt.scores if name not in found.graders), None)
    if unknown is not None:
        raise UsageError(f"{path} is not a baseline: it has scores of '{unknown}', which is not among its graders")
    return found


def _scores(name: str, attempts: Sequence[BaselineAttempt]) -> GraderScores:
    """Return the scores of one grader."""
    values, passes = np.full(len(attempts), np.nan), np.zeros(len(attempts), dtype=np.bool_)
    unscored: dict[int, State] = {}
    measured: dict[int, float] = {}
    for place, attempt in enumerate(attempts):
        match attempt.scores.get(name):
            case None:
                pass
            case str() as state:
                unscored[place] = state
            case int() | float() as number:
                measured[place] = float(number)
            case value, passed:
                values[place], passes[place] = value, passed
    return GraderScores(values, passes, unscored, measured)


def _attempt(found: ScenarioScores, place: int) -> BaselineAttempt:
    scores: dict[str, tuple[float, bool] | float | State] = {}
    for name, of in found.graders.items():
        if not np.isnan(of.values[place]):
            scores[name] = float(of.values[place]), bool(of.passes[place])
        elif place in of.measured:
            scores[name] = of.measured[place]
        elif (state := of.unscored.get(place)) is not None:
            scores[name] = state
    sample, target, scenario = found.samples[place], found.targets[place], found.scenarios[place]
    return BaselineAttempt(sample=sample, target=target, scenario=scenario, scores=scores)
