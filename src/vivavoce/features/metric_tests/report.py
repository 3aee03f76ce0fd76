"""What a test of metrics shows, in words and tables, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.features.metric_tests.records import Difference, MetricFigures, MetricTest, Rate, Seen, SelfPreference
from vivavoce.records.details import dollars
from vivavoce.report.markdown import code, table
from vivavoce.report.text import FittingTable, count, figures_table
from vivavoce.safe_text import safe

_SUMMARY = ["metric", "defects", "seen", "95% interval", "harmless", "moved", "95% interval", "verdicts", "cost"]
_DEFECTS = ["defect", "n", "seen", "95% interval", "right turn", "drop"]
_HARMLESS = ["harmless edit", "n", "moved", "95% interval", "drop"]
_RESCUED = ["defect that was seen, with", "n", "passed", "95% interval"]

_RANKS = {"95% interval": 3, "harmless": 2, "cost": 2, "drop": 1, "verdicts": 1, "defects": 1}
"""What a narrow window leaves out, the highest first."""

Part = tuple[list[str], list[list[str]]]
"""The heads of a table, and its rows."""


def terminal_lines(test: MetricTest) -> Iterator[str | FittingTable]:
    """Yield a test of metrics as lines of text and tables."""
    yield heading(test)
    for heads, rows in _parts(test):
        yield ""
        yield figures_table(heads, rows, [_RANKS.get(head, 0) for head in heads])
    yield ""
    yield from closing(test)


def markdown_lines(test: MetricTest) -> Iterator[str]:
    """Yield a test of metrics as Markdown."""
    yield f"**{code(heading(test), 400)}**"
    yield ""
    for heads, rows in _parts(test):
        yield from table(heads, "l" + "r" * (len(heads) - 1), rows)
        yield ""
    for line in closing(test):
        yield f"- {code(line, 400)}"


def heading(test: MetricTest) -> str:
    """Return which conversations were changed."""
    bad = test.left_out - test.unscored
    why = [f"{bad:,} that are not good as they are"] if bad else []
    why += [f"{test.unscored:,} with an error instead of a score"] if test.unscored else []
    out = f"; left out: {', '.join(why)}" if why else ""
    return f"{count(test.conversations, 'conversation')} with defects and harmless edits{out}"


def closing(test: MetricTest) -> Iterator[str]:
    """Yield sentences about what the tables do not say."""
    if test.no_place:
        yield f"no conversation has a place for {', '.join(test.no_place)}"
    for metric in test.metrics:
        name = safe(metric.title)
        if metric.failed_as_is:
            yield f"{name}: not compared are {count(metric.failed_as_is, 'conversation')} that it fails as it is"
        if metric.errors:
            yield f"{name}: {count(metric.errors, 'error')}; viva show {metric.run} says why"
        if metric.skipped:
            yield f"{name}: {count(metric.skipped, 'version')} skipped, to which it does not apply"
        if missed := [seen for seen in metric.edits if seen.wanted and seen.moved.n and not seen.moved.times]:
            yield f"{name} sees none of these: {', '.join(seen.edit for seen in missed)}"
        if not metric.compared:
            yield f"{name}: nothing could be compared"
        if metric.detection.times and metric.position is not None and metric.position.difference is not None:
            yield f"{name}: {_position(metric.position)}"
    yield from map(_self_preference, test.self_preference)


def _self_preference(preference: SelfPreference) -> str:
    between = (
        "" if preference.low is None or preference.high is None else f" [{preference.low:+.1%}, {preference.high:+.1%}]"
    )
    own = f"{preference.own:+.1%} of that ({count(preference.conversations, 'conversation')})"
    return safe(
        f"{preference.metric} by {preference.judge}: prefers what its own model said by {preference.difference:+.1%}"
        f"{between}: next to the other judges it passes {own} and {preference.others:+.1%} of the rest"
    )


def gate_lines(test: MetricTest, min_detection: float | None, max_false_alarms: float | None) -> Iterator[str]:
    """Yield a sentence for each metric that sees too few defects, or that too many harmless edits move.

    Where nothing could be counted, nothing is said: see `inconclusive`.
    """
    for metric in test.metrics:
        seen, moved = metric.detection, metric.false_alarms
        if min_detection is not None and seen.share is not None and seen.share < min_detection:
            yield safe(f"{metric.title} sees {_rate_text(seen)} of the defects, less than {min_detection:.1%}")
        if max_false_alarms is not None and moved.share is not None and moved.share > max_false_alarms:
            rate = _rate_text(moved)
            yield safe(f"{metric.title} is moved by {rate} of the harmless edits, more than {max_false_alarms:.1%}")


def inconclusive(test: MetricTest, min_detection: float | None, max_false_alarms: float | None) -> bool:
    """Say whether something has no score, or there is nothing to count that was asked for."""
    for metric in test.metrics:
        uncounted = (min_detection is not None and not metric.detection.n) or (
            max_false_alarms is not None and not metric.false_alarms.n
        )
        if metric.errors or not metric.compared or uncounted:
            return True
    return False


def _parts(test: MetricTest) -> Iterator[Part]:
    yield _SUMMARY, [_summary(metric) for metric in test.metrics]
    if len(test.metrics) > 1:
        yield _matrix(test)
    for metric in test.metrics:
        defects = [seen for seen in metric.edits if seen.wanted]
        harmless = [seen for seen in metric.edits if seen.kind == "harmless"]
        name = [safe(metric.title)]
        if defects:
            yield [*name, *_DEFECTS[1:]], [_defect(seen) for seen in defects]
        if harmless:
            yield _HARMLESS, [_harmless(seen) for seen in harmless]
        if any(seen.moved.n for seen in metric.rescued):
            yield _RESCUED, [[seen.edit, *_rate(seen.moved)] for seen in metric.rescued]


def _matrix(test: MetricTest) -> Part:
    """Return how many versions with each defect each metric fails, a dash where it is not there to see it."""
    cells = [{seen.edit: seen for seen in metric.edits if seen.wanted} for metric in test.metrics]
    names = dict.fromkeys(name for cell in cells for name in cell)
    rows = [[name, *(_count_text(cell[name].moved) if name in cell else "–" for cell in cells)] for name in names]
    return ["defect", *(safe(metric.title) for metric in test.metrics)], rows


def _count_text(rate: Rate) -> str:
    return f"{rate.times:,} of {rate.n:,}"


def _summary(figures: MetricFigures) -> list[str]:
    cost = "–" if figures.usage.cost is None else dollars(figures.usage.cost)
    seen, moved = _rate(figures.detection), _rate(figures.false_alarms)
    return [safe(figures.title), *seen, *moved, f"{figures.verdicts:,}", cost]


def _defect(edit: Seen) -> list[str]:
    turn = f"{edit.placed} of {edit.moved.times}" if edit.named else "–"
    return [edit.edit, *_rate(edit.moved), turn, _drop(edit)]


def _harmless(edit: Seen) -> list[str]:
    return [edit.edit, *_rate(edit.moved), _drop(edit)]


def _drop(edit: Seen) -> str:
    return "–" if edit.drop is None else f"{edit.drop:.2f}"


def _rate(rate: Rate) -> list[str]:
    return [f"{rate.n:,}", _share(rate), _interval(rate) or "–"]


def _share(rate: Rate) -> str:
    return "–" if rate.share is None else f"{rate.share:.1%}"


def _rate_text(rate: Rate) -> str:
    """Return a share with its interval, in a sentence."""
    return f"{_share(rate)} {_interval(rate)}".rstrip()


def _interval(rate: Rate) -> str:
    return "" if rate.low is None or rate.high is None else f"[{rate.low:.1%}, {rate.high:.1%}]"


def _position(difference: Difference) -> str:
    return (
        f"of defects in the later half of a conversation {_share(difference.one)} are seen, in the earlier half "
        f"{_share(difference.other)}: {difference.difference:+.1%} [{difference.low:+.1%}, {difference.high:+.1%}]"
    )
