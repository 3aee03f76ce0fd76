"""What a result of a tool says of itself, in the `metadata` of its message: who gave it, and what the user had said."""

from __future__ import annotations

import json
from typing import Any, Literal, cast

from vivavoce.messages import ToolMessage
from vivavoce.records.call_states import outcome_of

Source = Literal["canned", "recording", "function", "mcp", "user", "vivavoce"]
"""Who answered: a value in the suite, a recording, code, a server, the user who refused, or we who found a mistake."""

_MOCKED: dict[str, str] = {"canned": "canned", "recording": "recorded"}
_SAID: dict[str, str] = {"approve": "approved", "refuse": "refused"}


def notes_of(
    source: Source,
    seconds: float,
    *,
    approval: str | None,
    passed_over: str | None = None,
    changed_state: bool | None = None,
) -> dict[str, Any]:
    """Return the metadata of a result.

    `seconds` is how long it took, `approval` what the user had said, `passed_over` why what the row says of the tool
    was not the answer, `changed_state` whether it changed the state of the row, None where it gets none.
    """
    notes: dict[str, Any] = {"answered_by": source, "mocked": source in _MOCKED}
    if approval is not None:
        notes["approval"] = approval
    if passed_over is not None:
        notes["passed_over"] = passed_over
    if changed_state is not None:
        notes["changed_state"] = changed_state
    return {**notes, "seconds": round(seconds, 3)}


def error_of(result: ToolMessage) -> str | None:
    """Return what the result of a failed call says of the error: the `error` of a JSON object, or else its text.

    None stands for a call that did not fail.
    """
    if outcome_of(result) != "failed":
        return None
    text = result.text
    try:
        value: Any = json.loads(text) if '"error"' in text else None
    except (ValueError, RecursionError):
        value = None
    error = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not error:
        return text
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, sort_keys=True)


def origin(message: ToolMessage) -> str:
    """Return in a word or two what a reader should know of a result: whether it was made up, and what the user said.

    A result that the row should perhaps have given says that it did not.
    """
    notes = message.metadata or {}
    refused = "refused" if message.stated_outcome == "refused" else None
    words = (_SAID.get(str(notes.get("approval"))) or refused, _MOCKED.get(str(notes.get("answered_by"))))
    passed_over = "not as in the row" if notes.get("passed_over") else None
    return ", ".join(word for word in (*words, passed_over) if word)
