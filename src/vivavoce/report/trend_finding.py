"""`finding`: a trend in sentences, including what it cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vivavoce.report.changes import SUBJECTS
from vivavoce.report.text import count, one_line
from vivavoce.report.trend_point import Point, step_between

ENOUGH = 3
"""The minimum number of runs of a trend."""
MOST = 0.6
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
    sentence = _moved(name, points, stretch) if len(stretch) > 1 else _alone(name, points[stretch[0]])
    return " ".join([*sentence, *_left_out(points, scored, begins)])


def _alone(name: str, point: Point) -> Iterator[str]:
    """Describe a run that cannot be compared with any other."""
    known = "no interval" if point.low is None else f"{point.low:.2f} to {point.high:.2f}"
    yield f"{name} is {point.mean:.2f} ({known}) in run {one_line(point.run, 60)}. One run is too few for a trend."


def _moved(name: str, points: Sequence[Point], stretch: Sequence[int]) -> Iterator[str]:
    """Compare the newest mean with the one before the last change, or with the first."""
    newest = points[stretch[-1]]
    changed = [at for at in range(stretch[0] + 1, stretch[-1] + 1) if points[at].changes]
    before = points[max(place for place in stretch if place < changed[-1])] if changed else points[stretch[0]]
    since = _since(points[changed[-1]]) if changed else f"over {count(len(stretch), 'run')}, with no known change"
    yield _step(name, before, newest, since, _turning(points, stretch, before))
    runs_since = sum(place >= changed[-1] for place in stretch) if changed else len(stretch)
    if len(stretch) < ENOUGH:
        yield "Two runs are too few for a trend."
    elif runs_since < ENOUGH:
        yield f"{'One run since then is' if runs_since == 1 else 'Two runs since then are'} too few for a trend."


def _since(point: Point) -> str:
    subjects = [SUBJECTS[change.kind] for change in point.changes]
    listed = " and ".join(filter(None, (", ".join(subjects[:-1]), subjects[-1])))
    return f"since run {one_line(point.run, 60)}, when {listed} changed"


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
    most = [point for point in since if point.step and moved and point.step.difference / moved > MOST]
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
