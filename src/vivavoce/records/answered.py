"""What a result of a tool says of itself, in the `metadata` of its message: who gave it, and what the user had said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from vivavoce.messages import ToolMessage

Source = Literal["canned", "recording", "function", "mcp", "user", "vivavoce"]
"""Who answered: a value in the suite, a recording, code, a server, the user who refused, or we who found a mistake."""

_MOCKED: dict[str, str] = {"canned": "canned", "recording": "recorded"}
_SAID: dict[str, str] = {"approve": "approved", "refuse": "refused"}


NO_TOOL: tuple[Source, ...] = ("user", "vivavoce")
"""Those who answer a call that was never made."""


def was_made(result: ToolMessage | None) -> bool:
    """Say whether a call with this result was made, as far as that says; a refused one was not."""
    return result is None or (result.metadata or {}).get("answered_by") not in NO_TOOL


def notes_of(
    source: Source,
    seconds: float,
    *,
    failed: bool,
    approval: str | None,
    passed_over: str | None = None,
    changed_state: bool | None = None,
) -> dict[str, Any]:
    """Return the metadata of a result.

    `seconds` is how long it took, `approval` what the user had said, `passed_over` why what the row says of the tool
    was not the answer, `changed_state` whether it changed the state of the row, None where it gets none.
    """
    notes: dict[str, Any] = {"answered_by": source, "mocked": source in _MOCKED}
    if failed:
        notes["failed"] = True
    if approval is not None:
        notes["approval"] = approval
    if passed_over is not None:
        notes["passed_over"] = passed_over
    if changed_state is not None:
        notes["changed_state"] = changed_state
    return {**notes, "seconds": round(seconds, 3)}


def says_failed(result: ToolMessage) -> bool:
    """Say whether a result carries a mark that its call failed, ours or that of the format that it was read from."""
    notes = {**(result.model_extra or {}), **(result.metadata or {})}
    kept = [cast("Mapping[str, object]", one) for one in notes.values() if isinstance(one, Mapping)]
    return any(_is_failed(one) for one in (notes, *kept))


def error_of(result: ToolMessage) -> str | None:
    """Return what a result says of the error that it is: its `error` if it is an object of JSON, else its text.

    None stands for a result that neither carries a mark of an error nor has an `error`.
    """
    text = result.text
    try:
        value: Any = json.loads(text) if '"error"' in text else None
    except ValueError:
        value = None
    found = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not found:
        return text if says_failed(result) else None
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, sort_keys=True)


def _is_failed(notes: Mapping[str, object]) -> bool:
    return notes.get("failed") is True or notes.get("is_error") is True or notes.get("status") == "error"


def origin(message: ToolMessage) -> str:
    """Return in a word or two what a reader should know of a result: whether it was made up, and what the user said.

    A result that the row should perhaps have given says that it did not.
    """
    notes = message.metadata or {}
    words = (_SAID.get(str(notes.get("approval"))), _MOCKED.get(str(notes.get("answered_by"))))
    passed_over = "not as in the row" if notes.get("passed_over") else None
    return ", ".join(word for word in (*words, passed_over) if word)
