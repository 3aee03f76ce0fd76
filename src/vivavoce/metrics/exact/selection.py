"""Which tool calls of a conversation are compared with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vivavoce.expressions import expression
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.records.call_states import call_records


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
    records = [record for record in call_records(messages) if record.was_made]
    if failed_when is not None:
        failed = expression(failed_when)
        records = [one for one in records if not (one.result and failed.found_in(one.result.text))]
    calls = [record.call for record in records]
    return of_tools(calls, only=only, ignore=ignore)


def of_tools(
    calls: Iterable[ToolCall], *, only: Sequence[str] | None = None, ignore: Sequence[str] | None = None
) -> list[ToolCall]:
    """Return the calls of the tools in `only` (None: of all tools) that are not in `ignore`."""
    return [call for call in calls if (only is None or call.name in only) and call.name not in (ignore or ())]
