"""The schema of a suite, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from vivavoce.exchange.formats import format_named, names, no_format
from vivavoce.samples.content import VERSION
from vivavoce.suites.document import KeyPath
from vivavoce.suites.gate_spec import AnyGateSpec, AnyRewardSpec
from vivavoce.suites.grader_spec import AnyGraderSpec
from vivavoce.suites.part import Spec
from vivavoce.suites.recording_spec import RecordingSpec
from vivavoce.suites.target_spec import AnyTargetSpec
from vivavoce.suites.tester_spec import TesterSpec
from vivavoce.suites.trials_spec import TrialsSpec


class DatasetSpec(Spec):
    """Where the samples are: in a file, or here as `rows`.

    `format` is that of a file whose conversations are not rows of ours; without it, the first ones tell.

    `fields` maps a field of a sample to the dotted path of its value in a row, which every row has unless the name of
    the field ends with `?`. `policy`, text or a file, is that of the rows without one. `version` is the only content
    that the file may have, as `viva dataset keep` names it.
    """

    path: str | None = None
    rows: list[dict[str, Any]] | None = None
    format: str | None = Field(default=None, json_schema_extra={"enum": [*names(), None]})
    fields: dict[str, str] = Field(default_factory=dict)
    policy: str | None = None
    policy_path: str | None = None
    version: str | None = None

    @field_validator("format")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in names():
            raise ValueError(no_format(name))
        if name is not None and format_named(name).read is None:
            raise ValueError(f"'{name}' is a format that is written only")
        return name

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.rows is None):
            raise ValueError("needs either path or rows")
        if self.format is not None and self.path is None:
            raise ValueError("has a format, which is that of a file: give its path in place of rows")
        if self.version is not None and self.path is None:
            raise ValueError("has a version, which is that of a file: give its path in place of rows")
        if self.version is not None and not VERSION.fullmatch(self.version):
            raise ValueError(f"version is v with 16 digits or letters, as viva dataset keep says; got '{self.version}'")
        if self.policy is not None and self.policy_path is not None:
            raise ValueError("has a policy or a policy_path, not both")
        return self

    @property
    def place(self) -> str:
        """Where the samples are, in words."""
        return "the rows of the suite" if self.path is None else f"'{self.path}'"


class AgreementSpec(Spec):
    """How well one grader predicts another; a pass counts as yes, or with a `threshold` any score from there on."""

    predictor: str
    truth: str
    threshold: float | None = Field(default=None, ge=0, le=1)


class SuiteSpec(Spec):
    """A suite: what to ask, which targets, how to grade, and when the run passes.

    A `recording` answers the tools of the targets, and the conversations are compared with it.
    """

    name: str = Field(min_length=1)
    description: str | None = None
    dataset: DatasetSpec
    driver: Literal["scripted", "replay", "penelope"] = "scripted"
    tester: TesterSpec | None = None
    target: AnyTargetSpec | None = None
    targets: list[AnyTargetSpec] | None = Field(default=None, min_length=1)
    recording: RecordingSpec | None = None
    graders: dict[str, AnyGraderSpec] = Field(default_factory=dict, min_length=1)
    reward: AnyRewardSpec | None = None
    gate: AnyGateSpec | None = None
    agreement: list[AgreementSpec] = Field(default_factory=lambda: list[AgreementSpec]())
    trials: TrialsSpec = 1
    max_samples: int | None = Field(default=None, ge=1)
    sample_tags: list[str] | None = None
    max_concurrent: int = Field(default=15, ge=1, le=10_000)
    setup_script: str | None = None
    output: str | None = None

    @field_validator("dataset", mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _driver_and_target(self) -> Self:
        if self.target is not None and self.targets is not None:
            raise ValueError("has a target and targets; put every one into the list of targets")
        if self.driver != "replay" and not self.all_targets:
            raise ValueError("needs a target: the system under test (or driver: replay, for recorded conversations)")
        if self.driver == "replay" and self.all_targets:
            raise ValueError("driver: replay reads recorded conversations and calls no target; remove the target")
        if self.driver != "penelope" and self.tester is not None:
            raise ValueError("a tester is only for driver: penelope; name that driver, or remove the tester")
        if "reward" in self.graders:
            raise ValueError("'reward' is the name of the reward of a sample; give the grader another name")
        return self

    @property
    def all_targets(self) -> Mapping[KeyPath, AnyTargetSpec]:
        """Every target by its place in the suite: that of `target`, or those of `targets`."""
        if self.target is not None:
            return {("target",): self.target}
        return {("targets", i): one for i, one in enumerate(self.targets or ())}
