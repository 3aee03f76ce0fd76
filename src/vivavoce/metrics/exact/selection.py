"""Which tool calls of a conversation are compared with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vivavoce.expressions import expression
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.records.call_states import call_records, group_by_message


def select_calls(
    messages: Sequence[AnyMessage],
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    failed_when: str | None = None,
) -> list[ToolCall]:
    """Return the tool calls of a conversation that count, in order; a call that was refused was not made.

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
    records = [record for record in call_records(messages) if record.was_made]
    if failed_when is not None:
        failure = expression(failed_when)
        records = [record for record in records if not (record.result and failure.found_in(record.result.text))]
    groups = group_by_message(records)
    steps = [of_tools([record.call for record in group], only=only, ignore=ignore) for group in groups]
    return [step for step in steps if step]


def of_tools(
    calls: Iterable[ToolCall], *, only: Sequence[str] | None = None, ignore: Sequence[str] | None = None
) -> list[ToolCall]:
    """Return the calls of the tools in `only` (None: of all tools) that are not in `ignore`."""
    return [call for call in calls if (only is None or call.name in only) and call.name not in (ignore or ())]
