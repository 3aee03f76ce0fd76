"""How far a run went as it was recorded: in lines for every reader of a summary."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.records.details import CallsCovered, DifferenceKind, DifferentConversations, PairedGrades
from vivavoce.records.details import RecordingSummary as Recorded
from vivavoce.records.score import conversation_label, turn_label
from vivavoce.report.text import count, one_line
from vivavoce.run.summary import Summary

_WORDS: dict[DifferenceKind, str] = {
    "said": "the user says something else",
    "length": "more or fewer turns",
    "call": "other calls of tools",
    "unrecorded": "a call that is not in the recording",
    "order": "the calls in another order",
    "result": "other results of tools",
    "reply": "the same calls, another reply",
}


def recorded_lines(summary: Summary) -> list[str]:
    """Return a line for each thing that is known, without markup; names in it are as the suite has them."""
    several = len(summary.recording) > 1
    return [
        f"{one.target}: {line}" if several and index == 0 else line
        for one in summary.recording
        for index, line in enumerate(lines_of(one))
    ]


def lines_of(one: Recorded) -> Iterator[str]:
    """Yield a line for each thing that is known of one target."""
    held = count(one.conversations, "conversation")
    rest = [f"{one.unrecorded:,} not in the recording"] if one.unrecorded else []
    rest += [f"{one.errors:,} ended with an error before a difference"] if one.errors else []
    yield "; ".join([f"as recorded: {one.same:,} of {held}", *rest])
    yield from map(_different, one.different)
    if calls := _calls(one.calls, one.ended):
        yield f"calls of tools: {calls}"
    yield from map(_paired, one.pairs)


def _different(one: DifferentConversations) -> str:
    where = f"{conversation_label(one.sample, one.trial)}, {turn_label(one.turn)}"
    first = "" if one.conversations == 1 else "the earliest: "
    return f"{_WORDS[one.kind]}: {one.conversations:,} ({first}{where}: {one_line(one.what, 300)})"


def _calls(calls: CallsCovered, ended: list[str]) -> str:
    """Return in words how calls are covered, empty where there are none."""
    parts = [
        (calls.answered, "answered from the recording"),
        (calls.live, "answered live"),
        (calls.missed, f"not in it ({'; '.join(ended)}{'; …' * (calls.missed > len(ended))})"),
    ]
    said = [f"{number:,} {words}" for number, words in parts if number]
    if calls.unused:
        more = calls.unused - len(calls.examples)
        named = ", ".join(calls.examples) + (f" and {more:,} more" if more > 0 else "")
        said.append(f"{calls.unused:,} recorded and not made: {named}")
    return ", ".join(said)


def _paired(one: PairedGrades) -> str:
    left = f", {one.left_out:,} without both scores" if one.left_out else ""
    alike = one.n - one.better - one.worse
    test = f", sign test p {one.p_value:.2g}" if one.better + one.worse else ""
    return (
        f"{one.grader}, {count(one.n, f'comparable {one.of}')}{left}: {one.better:,} better, {one.worse:,} worse, "
        f"{alike:,} the same; mean recorded {one.recorded:.3f}, now {one.new:.3f}{test}"
    )
