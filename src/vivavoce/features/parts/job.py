"""`Job`: a suite over a dataset that is worked on in parts, as it is written into the folder of the results."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.features.parts.inputs import PART_ROWS, InputFile, Piece, input_files
from vivavoce.files.places import Folder, absolute
from vivavoce.messages import describe
from vivavoce.records.run import described_targets
from vivavoce.run.experiment_run import new_id
from vivavoce.run.options import RunOptions
from vivavoce.suites.document import fill_variables
from vivavoce.suites.load import Suite, dump_spec, suite_record_from
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.target_spec import AnyTargetSpec

FORMAT = 1
FILE = "job.json"
_RATES = ("requests_per_minute", "tokens_per_minute")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file of a job; `position` is the place of its first conversation in the plan of the run.

    With `again` its file is there, and what has an error in it is to be done once more.
    """

    file: InputFile
    piece: Piece
    name: str
    position: int
    again: bool = False

    def __str__(self) -> str:
        place = self.file.place.partition("?")[0]
        return f"{place}, rows {self.piece.first + 1:,} to {self.piece.first + self.piece.rows:,}"


class Job(BaseModel):
    """A suite as data, the files of its dataset, and the id of the run that all parts make.

    Each row makes `each` conversations: one for every target and trial. `max_concurrent` is how many all workers
    together hold at a time.
    """

    model_config = ConfigDict(frozen=True)

    vivavoce_job: int = FORMAT
    run_id: str
    created_at: float
    spec: dict[str, Any]
    base: str
    source: str
    judge: str | None = None
    trials: int | None = None
    each: int = 1
    cache: bool = True
    max_concurrent: int
    files: list[InputFile] = Field(default_factory=list[InputFile])

    @property
    def parts(self) -> list[Part]:
        """The parts, file by file."""
        return list(self._parts())

    @property
    def rows(self) -> int:
        """How many rows all files have."""
        return sum(file.rows for file in self.files)

    @property
    def dataset(self) -> str:
        """What identifies the dataset: a hash of its files by name, size and time."""
        known = [(file.place, file.size, file.changed) for file in self.files]
        return hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()

    @property
    def most_workers(self) -> int:
        """How many workers there may be, so that each has a conversation at a time with every target."""
        own = [target.get("max_concurrent") for target in described_targets(self.spec)]
        return min([self.max_concurrent, *(limit for limit in own if limit is not None)])

    def _parts(self) -> Iterator[Part]:
        position = 0
        for number, file in enumerate(self.files):
            for at, piece in enumerate(file.pieces):
                yield Part(file, piece, f"part-{number:05d}-{at:05d}", position)
                position += piece.rows * self.each

    def suite_on(self, rows: Path, workers: int) -> Suite:
        """Return the suite with other rows, for one of several workers that share its limits.

        Raises:
            UsageError: a variable of the suite is not set here.
        """
        without_graders = () if self.spec.get("graders") else ("graders",)  # the rows have assertions
        data = {key: part for key, part in self.spec.items() if key not in without_graders}
        document = suite_record_from(data, self.source)
        spec = SuiteSpec.model_validate(fill_variables(document))
        dataset = spec.dataset.model_copy(update={"path": str(rows), "version": None})
        changes: dict[str, Any] = {"dataset": dataset, "max_concurrent": max(1, self.max_concurrent // workers)}
        changes["graders"] = {name: _sharing(grader, workers) for name, grader in spec.graders.items()}
        if spec.target is not None:
            changes["target"] = _held_by_one(spec.target, workers)
        if spec.targets is not None:
            changes["targets"] = [_held_by_one(target, workers) for target in spec.targets]
        return Suite(spec.model_copy(update=changes), document, Path(self.base), self.source, judge=self.judge)


def _held_by_one(target: AnyTargetSpec, workers: int) -> AnyTargetSpec:
    """Return a target with which one of several workers holds its share of conversations at a time."""
    most = target.max_concurrent
    return target if most is None else target.model_copy(update={"max_concurrent": max(1, most // workers)})


def _sharing(grader: Any, workers: int) -> Any:
    """Return a grader whose judge is asked by one of several workers that share its rates."""
    rates = {name: rate / workers for name in _RATES if (rate := getattr(grader, name, None)) is not None}
    return grader.model_copy(update=rates) if rates else grader


def job_of(suite: Suite, patterns: Sequence[str], options: RunOptions, *, rows: int = PART_ROWS) -> Job:
    """Return the job that works on the files of these patterns as a suite says.

    Raises:
        UsageError: no file fits, or the suite cannot be worked on in parts.
    """
    return Job(
        run_id=new_id(suite.spec.name),
        created_at=time.time(),
        spec=dump_spec(suite),
        base=str(suite.base.absolute()),
        source=suite.source,
        judge=suite.judge,
        trials=options.trials,
        each=_each(suite, options),
        cache=options.cache,
        max_concurrent=options.max_concurrent or suite.spec.max_concurrent,
        files=input_files(map(absolute, patterns), rows),
    )


def _each(suite: Suite, options: RunOptions) -> int:
    """Return how many conversations a row makes.

    Raises:
        UsageError: the suite says something of its dataset as a whole.
    """
    spec = suite.spec
    if spec.setup_script is not None:
        raise UsageError("setup_script: runs once in one process, so the suite cannot run in parts")
    if not isinstance(spec.trials, int) and options.trials is None:
        raise UsageError(
            "trials: must be a number when a suite runs in parts, because a part cannot read the results of other parts"
        )
    if spec.max_samples is not None or spec.sample_tags is not None:
        raise UsageError("max_samples and sample_tags: need the whole dataset and cannot be used in parts; remove them")
    targets = sum(len(list(target.names_and_models)) for target in spec.all_targets.values())
    return max(1, targets) * (options.trials or (spec.trials if isinstance(spec.trials, int) else 1))


def kept_job(folder: Folder, job: Job) -> Job:
    """Return the job that a folder has begun, with the files that are new, and keep it there; or begin this one.

    Raises:
        UsageError: the folder holds another job, or a file of it has changed since.
    """
    stored_job = read_job(folder)
    if stored_job is None:
        if folder.names():
            raise UsageError(f"{folder.place} is not empty and has no {FILE}; use an empty or new folder")
        _keep(folder, job)
        return job
    _check_same(folder, stored_job, job)
    known = {file.place: file for file in stored_job.files}
    for file in job.files:
        before = known.get(file.place)
        if before is not None and before.problem is None and _content(before) != _content(file):
            raise UsageError(f"{file.place} has changed since {folder.place} was started; name another folder")
    files = [_now(file, job.files) for file in stored_job.files]
    files += [file for file in job.files if file.place not in known]
    joined = stored_job.model_copy(update={"files": files, "max_concurrent": job.max_concurrent})
    if joined != stored_job:
        _keep(folder, joined)
    return joined


def read_job(folder: Folder) -> Job | None:
    """Return the job of a folder, None where it has none.

    Raises:
        UsageError: it cannot be read.
    """
    if FILE not in folder.names():
        return None
    try:
        found = Job.model_validate_json(folder.read(FILE))
    except ValidationError as error:
        raise UsageError(f"{folder.place_of(FILE)}: {describe(error)}") from error
    if found.vivavoce_job > FORMAT:
        raise UsageError(f"{folder.place} was written by a newer vivavoce; upgrade it: pip install --upgrade vivavoce")
    return found


def _now(file: InputFile, files: Sequence[InputFile]) -> InputFile:
    """Return a file of a job as it is now, where it was broken before."""
    return next((one for one in files if one.place == file.place), file) if file.problem is not None else file


def _content(file: InputFile) -> tuple[int, float | None]:
    return file.size, file.changed


def _keep(folder: Folder, job: Job) -> None:
    folder.write(FILE, job.model_dump_json(indent=1).encode())


def _check_same(folder: Folder, begun: Job, job: Job) -> None:
    decides = {"graders": "its graders", "targets": "its targets", "tester": "its tester", "gate": "its gate"}
    then, now = _decisive(begun), _decisive(job)
    if changed := [name for name in {**then, **now} if then.get(name) != now.get(name)]:
        what = decides.get(changed[0], changed[0])
        raise UsageError(f"{folder.place} was started by a command that differs in {what}; name another folder")


def _decisive(job: Job) -> dict[str, Any]:
    """Return what must be the same in all parts of a job."""
    dataset = {name: one for name, one in job.spec["dataset"].items() if name != "path"}
    return {
        **{name: one for name, one in job.spec.items() if name != "max_concurrent"},
        "dataset": dataset,
        "trials": job.trials,
        "judge": job.judge,
    }
