"""Mistakes in the options of graders of tool calls: names that nobody knows, and what leaves nothing to compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, Self

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.grading.grader import Grader
from vivavoce.metrics.exact.arguments import Arguments
from vivavoce.metrics.exact.tool_calls import CallOptions
from vivavoce.samples.sample import Sample

_CLOSE, _CLOSE_SHORT, _SHORT = 0.8, 0.6, 5
"""How similar two names are when one is the other misspelt; a short one has few letters to be similar in."""


class CallMistake(NamedTuple):
    """An option by which a grader of tool calls compares nothing, empty for all of them, and the mistake in words."""

    option: str
    message: str


@dataclass(frozen=True, slots=True)
class KnownTools:
    """The names of tools in rows: those of `expected` calls, and `others`, which targets have or recordings call.

    `offered` says that the targets' tools are known, `references` that a row has `reference_tool_calls`.
    """

    expected: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    offered: bool = False
    references: bool = False

    @classmethod
    def of(cls, samples: Iterable[Sample], offered: Collection[str] = ()) -> Self:
        """Return what rows say; `offered` are the tools of the targets, none where they are not known."""
        expected, others, references = set[str](), set(offered), False
        for sample in samples:
            references = references or sample.reference_tool_calls is not None
            expected.update(call.name for call in sample.expected_calls)
            others.update(sample.called_tools)
        return cls(frozenset(expected), frozenset(others), bool(offered), references)


def wrong_calls(options: CallOptions, known: KnownTools) -> Iterator[CallMistake]:
    """Yield the names that no row and no target knows, and what leaves nothing to compare in any row.

    Where only the calls are counted that were made, a tool may never be called, unless the tools of the targets are
    known or the name is misspelt.
    """
    names = known.expected | known.others
    per_option = {"only": options.only or (), "ignore": options.ignore, "arguments": tuple(options.arguments.tools)}
    for option, tools in per_option.items():
        for tool in tools:
            cutoff = _CLOSE if len(tool) > _SHORT else _CLOSE_SHORT
            is_close = bool(get_close_matches(tool, names, n=1, cutoff=cutoff))
            if names and tool not in names and (options.expects or known.offered or is_close):
                who = "no row expects the tool" if options.expects else "no conversation calls the tool"
                yield CallMistake(option, f"{who} '{tool}', which no target has{did_you_mean(tool, names)}")
    if not options.expects:
        return
    tools = names.intersection(options.only) if options.only is not None else known.expected
    if known.expected and not tools.difference(options.ignore):
        yield CallMistake("", "only and ignore exclude all calls that rows expect, so nothing would be compared")
    elif known.references and options.is_always_true_without_calls and not any(map(options.counts, known.expected)):
        message = f"no row expects a call, and mode {options.mode} is true of any calls then; write mode: strict"
        yield CallMistake("mode", message)


def unknown_paths(options: CallOptions, samples: Iterable[Sample]) -> Iterator[CallMistake]:
    """Yield the paths of arguments that compare nothing, as no expected call has them."""
    for path in options.arguments.unknown_paths(_expected_calls(samples)):
        yield CallMistake("arguments", unknown_path(path))


def mistakes_in(
    options: CallOptions, samples: Callable[[], Iterable[Sample]], offered: Collection[str] = ()
) -> Iterator[CallMistake]:
    """Yield all mistakes in some options; samples are read only where names or paths need them."""
    if options.needs_known_tools:
        yield from wrong_calls(options, KnownTools.of(samples(), offered))
    if options.arguments.has_paths:
        yield from unknown_paths(options, samples())


def check_call_options(graders: Iterable[Grader], samples: Callable[[], Iterable[Sample]]) -> None:
    """Check the options of graders of tool calls against the rows that they grade.

    Raises:
        UsageError: with every name that nobody knows, and everything that leaves nothing to compare.
    """
    problems = [
        ": ".join(filter(None, (grader.name, mistake.option, mistake.message)))
        for grader in graders
        for options in grader.calls
        for mistake in mistakes_in(options, samples)
    ]
    if problems:
        raise UsageError(*problems)


def unknown_tool(tool: str, names: Iterable[str]) -> str:
    """Return what is wrong with the name of a tool that no call of an assertion has, in words."""
    return f"no call here is of the tool '{tool}'{did_you_mean(tool, names)}"


def unknown_path(path: str) -> str:
    """Return what is wrong with a path that no expected call has, in words."""
    return f"no expected call has an argument '{path}', so that this rule compares nothing"


def _expected_calls(samples: Iterable[Sample]) -> Iterator[tuple[str, Arguments]]:
    for sample in samples:
        for call in sample.expected_calls:
            try:
                yield call.name, call.args
            except (ValueError, RecursionError):  # such a call matches nothing, which its reason says
                continue
