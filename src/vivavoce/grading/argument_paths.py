"""Paths of arguments that a grader names and that no expected call of a dataset has: a slip that compares nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from vivavoce.grading.grader import Grader
from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.arguments import Arguments
from vivavoce.samples.sample import Sample


class UnknownPath(NamedTuple):
    """A path that a grader names in vain, and the mistake in words."""

    grader: str
    path: str
    message: str


def unknown_paths(graders: Sequence[Grader], read: Callable[[], Iterable[Sample]]) -> list[UnknownPath]:
    """Return the paths that compare nothing; the samples are read only for graders that name paths."""
    return [
        UnknownPath(grader.name, path, unknown_path(path))
        for grader in graders
        if grader.arguments is not None and grader.arguments.has_paths
        for path in grader.arguments.unknown_paths(_expected_calls(read()))
    ]


def unknown_path(path: str) -> str:
    """Return what is wrong with a path that no expected call has, in words."""
    return f"no expected call has an argument '{path}', so that this rule compares nothing"


def _expected_calls(samples: Iterable[Sample]) -> Iterator[tuple[str, Arguments]]:
    for sample in samples:
        for item in sample.reference_tool_calls or ():
            for call in [item] if isinstance(item, ToolCall) else item or ():
                try:
                    yield call.name, call.args
                except (ValueError, RecursionError):  # such a call matches nothing, which its reason says
                    continue
