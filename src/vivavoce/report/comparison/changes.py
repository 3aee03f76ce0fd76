"""What changed from one run of a suite to the next: a grader, the target, the tester, the samples, vivavoce.

It uses only the stored records of the runs: their suites as data, the fingerprints of graders, and hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict

from vivavoce.records.run import Grading, described_targets
from vivavoce.report.text import one_line
from vivavoce.store.browse.series import Graded
from vivavoce.suites.command_line import target_names

Kind = Literal["metric", "target", "tester", "dataset", "version"]

SUBJECTS: Mapping[Kind, str] = {
    "metric": "the metric",
    "target": "the target",
    "tester": "the tester",
    "dataset": "the dataset",
    "version": "vivavoce",
}
"""The subject of each kind of change, in words."""

MAX_CHARS = 60
"""Characters of a value that is shown; a longer value is only reported as changed."""
MAX_DIFFERENCES = 4
"""Differences of a change that are shown."""
BRIEF = 18
"""Characters of the brief text of a change."""

_CHOICE = ("driver", "trials", "max_samples", "sample_tags")
"""What else, besides the dataset, decides which conversations are held."""
_RUN_VALUES = ("called", "code", "contents", "conversations", "prompts", "version")
"""Values of a run that are not in its suite: a difference counts only if both values are known."""
_UNKNOWN = "fingerprint"
_WORDS = {"called": "", "model_handles": "model", "version": ""}


class Difference(BaseModel):
    """A setting that differs; `before` and `after` are shortened, None where there is no value."""

    model_config = ConfigDict(frozen=True)

    name: str
    before: str | None
    after: str | None


class Change(BaseModel):
    """A change, with the settings that differ; none if only a hash differs."""

    model_config = ConfigDict(frozen=True)

    kind: Kind
    differences: list[Difference]

    @property
    def sentence(self) -> str:
        """What changed, in words."""
        subject = SUBJECTS[self.kind].removeprefix("the ")
        subject = subject if self.kind == "version" else subject.capitalize()
        if any(difference.name == _UNKNOWN for difference in self.differences):
            return "It is unknown whether the metric was the same before"
        return f"{subject} changed: {self.phrases or 'its prompt, code or judge; the suite has not changed'}"

    @property
    def phrases(self) -> str:
        """The settings that differ, in words; empty if only a hash differs."""
        more = len(self.differences) - MAX_DIFFERENCES
        text = ", ".join(_phrase(difference, self.kind) for difference in self.differences[:MAX_DIFFERENCES])
        return f"{text}{f' and {more} more' if more > 0 else ''}"

    @property
    def brief(self) -> str:
        """What changed, in a word or two."""
        values = {difference.name.rpartition(".")[2]: difference.after for difference in self.differences}
        if self.kind == "metric":
            return "judge" if "model" in values else "metric"
        if self.kind == "version":
            return one_line(f"vivavoce {values.get('version')}", BRIEF)
        return one_line(values.get("called") or values.get("model_handles") or self.kind, BRIEF)


def changes_between(
    before: Graded, after: Graded, targets: tuple[str | None, str | None] = (None, None)
) -> list[Change]:
    """Return what changed apart from the graders; `targets` are the names of the targets that the two runs tested."""
    versions = ({"version": side.run.version or None} for side in (before, after))
    differences_by_kind: list[tuple[Kind, list[Difference]]] = [
        ("target", _target(before, after, targets)),
        ("tester", _tester(before, after)),
        ("dataset", _dataset(before, after)),
        ("version", list(_compare_parts(*versions))),
    ]
    return [Change(kind=kind, differences=differences) for kind, differences in differences_by_kind if differences]


def metric_change(before: Grading | None, after: Grading | None, grader: str) -> Change | None:
    """Return how a grader changed, None if it is the same or unknown on both sides."""
    if before is None or after is None:
        return None
    first, other = rules_of(before, grader), rules_of(after, grader)
    if first == other:
        return None
    if first is None or other is None:
        return Change(kind="metric", differences=[Difference(name=_UNKNOWN, before=first, after=other)])
    return Change(kind="metric", differences=list(_compare_parts(_rules(before, grader), _rules(after, grader))))


def rules_of(grading: Grading | None, grader: str) -> str | None:
    """Return what identifies the rules of a grader, None if unknown; a reward depends on all graders."""
    if grading is None or not grading.fingerprints:
        return None
    if grader == "reward":
        return json.dumps([grading.spec.get("reward"), grading.fingerprints], sort_keys=True)
    return grading.fingerprints.get(grader)


def _rules(grading: Grading, grader: str) -> dict[str, Any]:
    graders = _part(grading.spec, "graders")
    return {**_part(grading.spec, "reward"), **graders} if grader == "reward" else _part(graders, grader)


def _target(before: Graded, after: Graded, names: tuple[str | None, str | None]) -> list[Difference]:
    renamed = list(_compare_parts({"called": names[0]}, {"called": names[1]}))
    implied = ("function", "model_handles", "name", "code") if renamed else ()
    sides = (
        {**_target_called(side.run.spec, name), "code": _hash(side.run.options.get("code"))}
        for side, name in zip((before, after), names, strict=True)
    )
    return [*renamed, *(difference for difference in _compare_parts(*sides) if difference.name not in implied)]


def _target_called(spec: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return the only target of a suite, of several the one that goes by a name."""
    targets = described_targets(spec)
    matches = targets if len(targets) < 2 else [target for target in targets if name in target_names(target)]
    return matches[0] if matches else {}


def _tester(before: Graded, after: Graded) -> list[Difference]:
    """Return the differences in its settings, or the hash if only that differs."""
    settings = list(_compare_parts(_part(before.run.spec, "tester"), _part(after.run.spec, "tester")))
    hashes = ({"prompts": _hash(side.run.options.get("tester"))} for side in (before, after))
    return settings or list(_compare_parts(*hashes))


def _dataset(before: Graded, after: Graded) -> list[Difference]:
    return list(_compare_parts(_describe_selection(before), _describe_selection(after)))


def _describe_selection(side: Graded) -> dict[str, Any]:
    """Return what decides which conversations are held; their number is known only for a finished run."""
    spec, options = side.run.spec, side.run.options
    summary = (side.grading and side.grading.summary) or {}
    ended = side.run.status == "finished" and summary.get("stopped") is None
    graders = cast("list[dict[str, Any]]", summary.get("graders") or [])
    targets = {grader["target"] for grader in graders}
    return {
        **{name: value for name, value in _part(spec, "dataset").items() if name != "rows"},
        "contents": _hash(options.get("dataset")),
        **{name: options.get(name, spec.get(name)) for name in _CHOICE},
        "conversations": summary["attempts"] // (len(targets) or 1) if ended and "attempts" in summary else None,
    }


def _compare_parts(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the differences of two parts of suites, in the order of the second."""
    if first == other:
        return
    before, after = dict(_leaves(first)), dict(_leaves(other))
    for name in {**after, **before}:
        values = before.get(name), after.get(name)
        if values[0] != values[1] and not (name in _RUN_VALUES and None in values):
            yield Difference(
                name=one_line(name, MAX_CHARS), before=_format_value(values[0]), after=_format_value(values[1])
            )


def _leaves(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _leaves(cast("dict[str, Any]", value), f"{path}{name}.")
        elif value is not None:
            yield f"{path}{name}", value


def _part(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = spec.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def _hash(value: object) -> str | None:
    return value[:8] if isinstance(value, str) and value else None


def _format_value(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(entry, str) for entry in cast("list[Any]", value)):
        value = ", ".join(cast("list[str]", value))
    text = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text, MAX_CHARS + 1)


def _phrase(difference: Difference, kind: Kind) -> str:
    name = "judge" if (kind, difference.name) == ("metric", "model") else _WORDS.get(difference.name, difference.name)
    if any(value is not None and len(value) > MAX_CHARS for value in (difference.before, difference.after)):
        return f"{name} rewritten"
    if difference.before is None or difference.after is None:
        return f"{name} {difference.before} removed" if difference.after is None else f"{name} {difference.after} added"
    return f"{name} {difference.before} → {difference.after}".strip()
