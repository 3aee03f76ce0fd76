"""The trend of a grader over the runs of a suite: means with intervals, and what changed from run to run.

Scores of different graders are never joined in one line: such a run `breaks` the trend. Only the summaries of runs
are read, never their scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import NotFound
from vivavoce.records.run import Grading
from vivavoce.report.changes import Change, changes_between, metric_change, rules_of
from vivavoce.report.headline import gate_of
from vivavoce.report.html.metrics import gates_of, is_about
from vivavoce.report.trend_finding import finding
from vivavoce.report.trend_point import Point, step_between
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.store.browse.series import Graded, Series
from vivavoce.store.store import Store

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
        label = next((one.own.label for one in reversed(entries) if one.own), None)
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
            names |= dict.fromkeys(one.name for one in summary.graders) if summary else {}
            names |= dict.fromkeys(graded.grading.fingerprints) if graded.grading else {}
        return list(names)

    @cached_property
    def targets(self) -> list[str]:
        """The targets of these runs, those of the newest first."""
        return list(
            dict.fromkeys(one.target for _, summary in reversed(self._runs_read) if summary for one in summary.graders)
        )

    @property
    def headline(self) -> str | None:
        """The grader that the newest graded run is known by."""
        newest = next((one for one, summary in reversed(self._runs_read) if summary and summary.graders), None)
        gate = gate_of(newest.grading).get("metric_key") if newest and newest.grading else None
        return next((name for name in (gate, "reward") if name in self.graders), next(iter(self.graders), None))

    @cached_property
    def _runs_read(self) -> list[tuple[Graded, Summary | None]]:
        before = [self.series.before] if self.series.before else []
        return [(one, _summary(one)) for one in (*before, *self.series.runs)]

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
            names = dict.fromkeys(one.target for one in summary.graders) if summary else {}
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
                    (one for one in summary.graders if one.name == grader and target in (None, one.target)), None
                )
                if own is not None:
                    yield _Entry(graded, summary, own)


def _summary(graded: Graded) -> Summary | None:
    found = graded.grading and graded.grading.summary
    return Summary.model_validate(found) if found else None


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
        failed=summary is not None and own is not None and _failed(summary, own),
        changes=[],
        **known,
    )


def _failed(summary: Summary, own: GraderSummary) -> bool:
    return any(reason.verdict == "fail" and is_about(reason, own) for reason in summary.reasons)
