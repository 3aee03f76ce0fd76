"""Trends: the scores of an experiment over time, its points, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import NotFound
from vivavoce.records.run import Grading
from vivavoce.report.comparison.changes import SUBJECTS, Change, changes_between, metric_change, rules_of
from vivavoce.report.html.plots import Point, Step
from vivavoce.report.html.run import gates_of, is_about
from vivavoce.report.text import count, one_line
from vivavoce.report.verdict import gate_of
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.store.browse.series import Graded, Series
from vivavoce.store.store import Store


def step_between(before: Point, after: Point) -> Step | None:
    """Return the difference of two means, None if one of them is missing.

    The interval takes them for independent, which two runs of the same samples are not: matched sample by sample it is
    narrower, as `compare` has it.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures: a general approach,
    Statistics in Medicine 27 (2008): the limits from those of the two means.
    """
    if before.mean is None or after.mean is None:
        return None
    difference = after.mean - before.mean
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return Step(since=before.run, difference=difference)
    below = math.hypot(after.mean - after.low, before.high - before.mean)
    above = math.hypot(after.high - after.mean, before.mean - before.low)
    return Step(since=before.run, difference=difference, low=difference - below, high=difference + above)


ENOUGH = 3
"""The minimum number of runs of a trend."""
MAJORITY_SHARE = 0.6
"""The share of a change that counts as most of it."""


def finding(name: str, points: Sequence[Point]) -> str:
    """Return a summary of the means of a grader, oldest first; `name` is its display name."""
    name = one_line(name, 60)
    scored = [place for place, point in enumerate(points) if point.mean is not None]
    if not scored:
        return (
            f"{f'None of these {len(points)} runs has a' if len(points) > 1 else 'No run here has a'} score of {name}."
        )
    begins = max((at for at, place in enumerate(scored) if points[place].breaks), default=0)
    stretch = scored[begins:]
    sentence = _describe_change(name, points, stretch) if len(stretch) > 1 else _alone(name, points[stretch[0]])
    return " ".join([*sentence, *_left_out(points, scored, begins)])


def _alone(name: str, point: Point) -> Iterator[str]:
    """Describe a run that cannot be compared with any other."""
    known = "no interval" if point.low is None else f"{point.low:.2f} to {point.high:.2f}"
    yield f"{name} is {point.mean:.2f} ({known}) in run {one_line(point.run, 60)}. One run is too few for a trend."


def _describe_change(name: str, points: Sequence[Point], stretch: Sequence[int]) -> Iterator[str]:
    """Compare the newest mean with the one before the last change, or with the first."""
    newest = points[stretch[-1]]
    changed = [at for at in range(stretch[0] + 1, stretch[-1] + 1) if points[at].changes]
    before = points[max(place for place in stretch if place < changed[-1])] if changed else points[stretch[0]]
    since = _since(points[changed[-1]]) if changed else f"over {count(len(stretch), 'run')} without a recorded change"
    yield _step(name, before, newest, since, _turning(points, stretch, before))
    runs_since = sum(place >= changed[-1] for place in stretch) if changed else len(stretch)
    if len(stretch) < ENOUGH:
        yield "Two runs are too few for a trend."
    elif runs_since < ENOUGH:
        yield f"{'One run since then is' if runs_since == 1 else 'Two runs since then are'} too few for a trend."


def _since(point: Point) -> str:
    subjects = [SUBJECTS[change.kind] for change in point.changes]
    subject_text = " and ".join(filter(None, (", ".join(subjects[:-1]), subjects[-1])))
    return f"since run {one_line(point.run, 60)}, when {subject_text} changed"


def _step(name: str, before: Point, after: Point, since: str, turning: Point | None) -> str:
    step = step_between(before, after)
    means = f"{before.mean:.2f} to {after.mean:.2f}"
    if step is None or step.low is None:
        return f"{name} went from {means} {since}; without intervals it is unknown how certain that is."
    if not step.sure:
        return f"{name} shows no clear change {since}: {before.mean:.2f} before, {after.mean:.2f} now."
    sentence = f"{name} {'fell' if step.difference < 0 else 'rose'} from {means} {since}"
    return f"{sentence}, mostly in run {one_line(turning.run, 60)}." if turning else f"{sentence}."


def _turning(points: Sequence[Point], stretch: Sequence[int], before: Point) -> Point | None:
    """Return the run at which most of the movement since `before` was, if nothing is known to have changed there."""
    moved = (points[stretch[-1]].mean or 0.0) - (before.mean or 0.0)
    since = [points[place] for place in stretch if points[place].started_at > before.started_at]
    most = [point for point in since if point.step and moved and point.step.difference / moved > MAJORITY_SHARE]
    return most[-1] if len(since) > 1 and most and not most[-1].changes else None


def _left_out(points: Sequence[Point], scored: Sequence[int], begins: int) -> Iterator[str]:
    if begins:
        between = points[scored[begins - 1] + 1 : scored[begins] + 1]
        known = any(change.kind == "metric" for point in between for change in point.changes)
        why = "were graded in a different way" if known else "may have been graded in a different way"
        yield f"Scores before run {one_line(points[scored[begins]].run, 60)} {why} and are not compared."
    unscored = sum(point.mean is None and point.status != "running" for point in points)
    if unscored:
        yield f"{count(unscored, 'run')} of {len(points)} {'has' if unscored == 1 else 'have'} no score."


LIMIT = 60
"""The default number of runs in a trend."""


class Trend(BaseModel):
    """A grader over some runs of a suite that follow one another, oldest first.

    `grader` is None if no run was graded, `label` the name to display where the suite gives one. `target` is the one
    that is followed, None if every run tested one only. `finding` says in sentences what there is to see. `graders`
    and `targets` are those of these runs, `left_out` is how many runs lack this grader or this target. `earlier` and
    `later` are the ids of the runs next to these, None if there is none.
    """

    model_config = ConfigDict(frozen=True)

    suite: str
    grader: str | None
    label: str | None = None
    target: str | None = None
    finding: str
    points: list[Point]
    graders: list[str]
    targets: list[str]
    left_out: int = 0
    earlier: str | None = None
    later: str | None = None


def trend(
    store: Store,
    suite: str,
    grader: str | None = None,
    target: str | None = None,
    *,
    first: str | None = None,
    last: str | None = None,
    limit: int = LIMIT,
) -> Trend:
    """Return the trend of a grader over at most `limit` runs: the newest, those from `first` on, or up to `last`.

    The grader is the one that runs are known by unless it is named: that of the gate, else the reward, else the first.
    Where runs have several targets, the first one of the newest such run is followed unless one is named.

    Raises:
        UsageError: there is no such suite, grader, target or run.
    """
    return Trends(suite, store.series.of(suite, first=first, last=last, limit=limit)).trend(grader, target)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A run with its summary, and the summary of the grader for the target."""

    graded: Graded
    summary: Summary | None
    own: GraderSummary | None


@dataclass(frozen=True)
class Trends:
    """The trends of all graders over the same runs, which are read once."""

    suite: str
    series: Series

    def trend(self, grader: str | None = None, target: str | None = None) -> Trend:
        """Return the trend of one grader.

        Raises:
            UsageError: no run has such a grader, or such a target.
        """
        for name, kind, known in ((grader, "grader", self.graders), (target, "target", self.targets)):
            if name is not None and name not in known:
                raise NotFound(kind, name, within=f"these runs of '{self.suite}'", known=known)
        grader, target = grader or self.headline, target or self._several()
        entries = list(self._entries(grader, target))
        points = list(self._points(entries, grader or ""))
        if entries and self.series.before is not None and entries[0].graded is self.series.before:
            points = points[1:]
        label = next((entry.own.label for entry in reversed(entries) if entry.own), None)
        return Trend(
            suite=self.suite,
            grader=grader,
            label=label,
            target=target,
            finding=finding(label or grader or "any grader", points),
            points=points,
            graders=self.graders,
            targets=self.targets,
            left_out=len(self.series.runs) - len(points),
            earlier=self.series.before.run.id if self.series.before else None,
            later=self.series.after,
        )

    @cached_property
    def graders(self) -> list[str]:
        """The graders of these runs, those of the newest first."""
        names: dict[str, None] = {}
        for graded, summary in reversed(self._runs_read):
            names |= dict.fromkeys(grader.name for grader in summary.graders) if summary else {}
            names |= dict.fromkeys(graded.grading.fingerprints) if graded.grading else {}
        return list(names)

    @cached_property
    def targets(self) -> list[str]:
        """The targets of these runs, those of the newest first."""
        return list(
            dict.fromkeys(
                grader.target for _, summary in reversed(self._runs_read) if summary for grader in summary.graders
            )
        )

    @property
    def headline(self) -> str | None:
        """The grader that the newest graded run is known by."""
        newest = next((graded for graded, summary in reversed(self._runs_read) if summary and summary.graders), None)
        gate = gate_of(newest.grading).get("metric_key") if newest and newest.grading else None
        return next((name for name in (gate, "reward") if name in self.graders), next(iter(self.graders), None))

    @cached_property
    def _runs_read(self) -> list[tuple[Graded, Summary | None]]:
        before = [self.series.before] if self.series.before else []
        return [(graded, _summary(graded)) for graded in (*before, *self.series.runs)]

    def _points(self, entries: list[_Entry], grader: str) -> Iterator[Point]:
        before: _Entry | None = None
        scored: Point | None = None
        rules: str | None = None
        known: Grading | None = None
        for entry in entries:
            grading = entry.graded.grading
            point = _point(entry, grader)
            update: dict[str, object] = {}
            if before is not None:
                metric = metric_change(known, grading, grader)
                update["changes"] = [*([metric] if metric else []), *self._changes(before, entry)]
            if point.mean is not None:
                mine = rules_of(grading, grader)
                breaks = scored is not None and (mine is None or mine != rules)
                update |= {"breaks": breaks, "step": None if scored is None or breaks else step_between(scored, point)}
                scored, rules = point, mine
            yield point.model_copy(update=update)
            before, known = entry, grading or known

    def _changes(self, before: _Entry, after: _Entry) -> list[Change]:
        """Return what changed besides the graders, which is found out once for all of them."""
        targets = before.own and before.own.target, after.own and after.own.target
        pair = before.graded.run.id, after.graded.run.id, targets
        if pair not in self._known:
            self._known[pair] = changes_between(before.graded, after.graded, targets)
        return self._known[pair]

    @cached_property
    def _known(self) -> dict[tuple[str, str, tuple[str | None, str | None]], list[Change]]:
        return {}

    def _several(self) -> str | None:
        """Return the first target of the newest run that has several, None if every run has one."""
        for _, summary in reversed(self._runs_read):
            names = dict.fromkeys(grader.target for grader in summary.graders) if summary else {}
            if len(names) > 1:
                return next(iter(names))
        return None

    def _entries(self, grader: str | None, target: str | None) -> Iterator[_Entry]:
        """Yield the runs that have the grader and the target; a run with errors has both."""
        for graded, summary in self._runs_read:
            if summary is None or not summary.graders:
                prints = graded.grading.fingerprints if graded.grading else {}
                if grader in prints or not prints:
                    yield _Entry(graded, summary, None)
            else:
                own = next(
                    (
                        summary_of_grader
                        for summary_of_grader in summary.graders
                        if summary_of_grader.name == grader and target in (None, summary_of_grader.target)
                    ),
                    None,
                )
                if own is not None:
                    yield _Entry(graded, summary, own)


def _summary(graded: Graded) -> Summary | None:
    stored_summary = graded.grading and graded.grading.summary
    return Summary.model_validate(stored_summary) if stored_summary else None


_OF_SUMMARY = {
    *("target", "mean", "low", "high", "scored", "errors", "skipped"),
    *("tester_errors", "pass_rate", "raw_pass_rate", "highest_pass_rate", "population", "measured"),
}


def _point(entry: _Entry, grader: str) -> Point:
    run, grading = entry.graded
    summary, own = entry.summary, entry.own
    known = own.model_dump(include=_OF_SUMMARY) if own else {}
    stopped = summary.stopped if summary else None
    if run.status == "interrupted" and stopped is None:
        stopped = "interrupted"
    return Point(
        run=run.id,
        started_at=run.started_at,
        status=run.status,
        version=run.version,
        verdict=grading.verdict if grading else None,
        stopped=stopped,
        gate=gates_of(grading).get(grader) if grading else None,
        failed=summary is not None and own is not None and _did_fail(summary, own),
        changes=[],
        **known,
    )


def _did_fail(summary: Summary, own: GraderSummary) -> bool:
    return any(reason.verdict == "fail" and is_about(reason, own) for reason in summary.reasons)
