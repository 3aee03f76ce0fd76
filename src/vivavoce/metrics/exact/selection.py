"""Which tool calls of a conversation are compared with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vivavoce.expressions import expression
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.records.trajectory import tool_results_by_message


def select_calls(
    messages: Sequence[AnyMessage],
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    failed_when: str | None = None,
) -> list[ToolCall]:
    """Return the tool calls of a conversation that count, in order.

    `only` and `ignore` are as in `of_tools`. `failed_when` is a regular expression searched in the text of a call's
    result; a call is dropped where it is found. A call without a result did not fail.

    Raises:
        UsageError: `failed_when` is not a regular expression.
    """
    steps = select_steps(messages, only=only, ignore=ignore, failed_when=failed_when)
    return [call for step in steps for call in step]


def select_steps(
    messages: Sequence[AnyMessage],
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    failed_when: str | None = None,
) -> list[list[ToolCall]]:
    """Return the calls of `select_calls` in one list for each message that makes any of them.

    Raises:
        UsageError: `failed_when` is not a regular expression.
    """
    failed = None if failed_when is None else expression(failed_when)
    steps: list[list[ToolCall]] = []
    for pairs in tool_results_by_message(messages):
        made = [call for call, result in pairs if not (failed and result and failed.found_in(result.text))]
        steps.append(of_tools(made, only=only, ignore=ignore))
    return [step for step in steps if step]


def of_tools(
    calls: Iterable[ToolCall], *, only: Sequence[str] | None = None, ignore: Sequence[str] | None = None
) -> list[ToolCall]:
    """Return the calls of the tools in `only` (None: of all tools) that are not in `ignore`."""
    return [call for call in calls if (only is None or call.name in only) and call.name not in (ignore or ())]
