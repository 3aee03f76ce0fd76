"""A baseline: the scores of a run in a small file for version control, which later runs are compared with.

It has the scores of each sample and hashes of what decided them, and none of the texts of the conversations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.records.score import State
from vivavoce.report.graded_run import GradedRun, partial_note
from vivavoce.report.sides import GradedSide, Origin, side_of
from vivavoce.report.strict_json import strict_json
from vivavoce.store.browse.scenarios import Planned, ScenarioScores, Scored

MAKE_ONE = "make one with: viva export RUN --format baseline --output FILE"
"""The next step of somebody whose file is no baseline."""


class BaselineAttempt(BaseModel):
    """One conversation: a hash of what was asked, and by grader the value with whether it passes, or the state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample: str
    target: str
    scenario: str
    scores: dict[str, tuple[Annotated[float, Field(ge=0, le=1)], bool] | State]


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
        planned = {i: Planned(one.sample, one.target, one.scenario) for i, one in enumerate(self.attempts)}
        scored: dict[str, dict[int, Scored]] = {name: {} for name in self.graders}
        unscored: dict[str, dict[int, State]] = {name: {} for name in self.graders}
        for i, attempt in enumerate(self.attempts):
            for name, score in attempt.scores.items():
                if isinstance(score, str):
                    unscored[name][i] = score
                else:
                    scored[name][i] = score
        return side_of(self.origin, ScenarioScores(planned, self.graders, scored, unscored))


def write_baseline(graded: GradedRun, out: TextIO) -> None:
    """Write the baseline that a run makes, a line for each conversation, so that changes of it can be reviewed.

    Raises:
        UsageError: the run is partial or not complete, or nothing was scored.
    """
    if partial := partial_note(graded.run):
        raise UsageError(f"{graded.run.id} is {partial}")
    if not graded.ended:
        raise UsageError(f"{graded.run.id} is not complete, and so no baseline; continue it with viva run --resume")
    found = graded.store.scenarios.scores(graded.grading)
    if not any(found.scores.values()):
        raise UsageError(f"the grading '{graded.grading.id}' has no scores, and so is no baseline")
    origin = Origin.of(graded.run, graded.grading)
    head = f'"baseline":1,\n"origin":{strict_json(origin.model_dump())},\n"graders":{strict_json(list(found.graders))}'
    lines = (strict_json(_attempt(found, number).model_dump()) for number in found.attempts)
    out.write(f'{{\n{head},\n"attempts":[\n' + ",\n".join(lines) + "\n]\n}\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: the file cannot be read, or is no baseline.
    """
    try:
        found = Baseline.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; {MAKE_ONE}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is no baseline: {place or 'the whole'}: {first['msg']}; {MAKE_ONE}") from error
    except ValueError as error:
        raise UsageError(f"{path} is no baseline: it is not JSON ({error}); {MAKE_ONE}") from error
    unknown = next((name for one in found.attempts for name in one.scores if name not in found.graders), None)
    if unknown is not None:
        raise UsageError(f"{path} is no baseline: it has scores of '{unknown}', which is not among its graders")
    return found


def _attempt(found: ScenarioScores, number: int) -> BaselineAttempt:
    sample, target, scenario = found.attempts[number]
    scores: dict[str, Scored | State] = {}
    for name in found.graders:
        if (score := found.scores[name].get(number)) is not None:
            scores[name] = score
        elif (state := found.unscored[name].get(number)) is not None:
            scores[name] = state
    return BaselineAttempt(sample=sample, target=target, scenario=scenario, scores=scores)
