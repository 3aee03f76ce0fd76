"""How a tool call ended: what a field of its result states and, where no field does, what its words say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal, cast

from vivavoce.comparing.text import fold, fold_encoding, is_blank

CallOutcome = Literal["succeeded", "failed", "refused"]
"""What a result states about its call. A `refused` call was never made: the user declined it, or it was invalid."""

SPELLINGS: Mapping[str, CallOutcome] = {
    **dict.fromkeys(("succeeded", "success"), "succeeded"),
    **dict.fromkeys(("failed", "error", "failure"), "failed"),
    **dict.fromkeys(("refused", "denied", "rejected"), "refused"),
}
"""How formats write an outcome, in lower case."""

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_MARKS_OF_ERROR = ("is_error", "isError")
_ANSWERED_WITHOUT_TOOL = ("user", "vivavoce")
_STATUS_OF_ERROR = ("error", "incomplete")
_STRONGEST_FIRST: tuple[CallOutcome, ...] = ("refused", "failed", "succeeded")
_HEAD_CHARS = 1000
"""How much of a result is looked at for the words that it begins with."""
_MARKUP = r"(?:[^\w{]|_)*"
"""Signs before a word, such as an emoji; what follows a brace is data."""
_EMPTY_ELEMENT = r"\s*(?:/>|>\s*</)"
_FAILURE_AT_START = re.compile(
    rf"{_MARKUP}(?:error|exception|failed|failure|traceback)(?:\b|_+(?!\w))(?!{_EMPTY_ELEMENT})", re.IGNORECASE
)
_EXCEPTION_AT_START = re.compile(rf"{_MARKUP}(?:\w+\.)*[A-Z]\w*?(?:Error|Exception)[*_`\"']*\s?:")
"""The name of an exception, with or without its module, as Python, Java, and JavaScript print it."""
_TAG = re.compile(r"<[^<>{]*>")
_PYTHON_ERROR = re.compile(r"\s*\{\s*'error'\s*:(?!\s*(?:None|False|''|\"\"|\[\]|\{\}))", re.IGNORECASE)
"""A dict that begins with an error, as Python prints it."""


def read_outcome(spelling: object) -> CallOutcome | None:
    """Return the outcome that a word stands for, None for anything else."""
    return SPELLINGS.get(fold(spelling)) if isinstance(spelling, str) else None


def is_true(mark: object) -> bool:
    """Return whether a mark says yes, in any spelling: true, "True", 1, "yes"."""
    return _spelling(mark) in _TRUE


def _is_false(mark: object) -> bool:
    return _spelling(mark) in _FALSE


def _spelling(mark: object) -> str:
    """Return how a mark is written, folded; a number is written without a fraction, if it has none."""
    if isinstance(mark, float) and mark.is_integer():
        return str(int(mark))
    return fold(str(mark)) if isinstance(mark, str | int) else ""


def failed_if(mark: object) -> CallOutcome | None:
    """Return `failed` where a mark of an error is set.

    Use it for marks that a library writes as false whatever the tool returned: false then states nothing.
    """
    return "failed" if mark else None


def stated_outcome(fields: Mapping[str, object]) -> CallOutcome | None:
    """Return the outcome that the fields of a tool message state, None where the words of the result decide.

    `outcome` decides. Without it, a mark of a refusal or a failure decides wherever it is: `status`, `is_error`,
    `isError`, `failed`, in the message, in its metadata, or in an object in either, where converters keep the fields of
    other formats; of a `status` there, only `error` and `incomplete` count. A mark may be written in any spelling of
    yes, such as "True" or 1. Only an `is_error` that is the bool false states a success. `status: success` states
    nothing, because libraries write it whatever the tool returned.
    """
    if (outcome := read_outcome(fields.get("outcome"))) is not None:
        return outcome
    notes = _objects_in(fields, "metadata")
    inner = [kept for holder in (fields, *notes) for kept in _objects_in(holder)]
    inner += [original for kept in inner for original in _objects_in(kept, "fields")]
    marks = {_status_in(holder) for holder in (fields, *notes)} | set(map(_mark_in, inner)) | {_mark_in(fields)}
    return next((mark for mark in _STRONGEST_FIRST if mark in marks), None)


def _objects_in(fields: Mapping[str, object], *names: str) -> list[Mapping[str, object]]:
    """Return the members of these names that are objects, of all names without any."""
    values = [fields.get(name) for name in names] if names else fields.values()
    return [cast("Mapping[str, object]", value) for value in values if isinstance(value, Mapping)]


def _status_in(holder: Mapping[str, object]) -> CallOutcome | None:
    """Return the failure or the refusal that a `status` states, in any spelling."""
    outcome = read_outcome(holder.get("status"))
    return None if outcome == "succeeded" else outcome


def _mark_in(holder: Mapping[str, object]) -> CallOutcome | None:
    if holder.get("answered_by") in _ANSWERED_WITHOUT_TOOL:
        return "refused"
    failed, marks = holder.get("failed"), [holder.get(key) for key in _MARKS_OF_ERROR]
    is_count = not isinstance(failed, bool | str)  # such as the tests that failed, of a tool that runs tests
    if _spelling(holder.get("status")) in _STATUS_OF_ERROR or (is_true(failed) and not is_count):
        return "failed"
    if any(map(is_true, marks)):
        return "failed"
    return "succeeded" if any(mark is False for mark in marks) else None


def words_say_failed(text: str) -> bool:
    """Return whether the words of a result say that its call failed: they begin so, or are an object with an error."""
    head = fold_encoding(text.lstrip()[:_HEAD_CHARS])
    if any(map(_begins_with_failure, (head, _TAG.sub(" ", head)))):
        return True
    text = text[max(text.find("{"), 0) :] if is_blank(text.partition("{")[0]) else text
    if not text.startswith("{"):
        return False
    try:
        value: object = json.loads(text, object_pairs_hook=list)  # keeps every value of a key that occurs twice
    except (ValueError, RecursionError):
        return _PYTHON_ERROR.match(text) is not None
    members = cast("list[tuple[str, object]]", value)
    return any(_member_says_failed(fold(key), member) for key, member in members)


def _begins_with_failure(head: str) -> bool:
    return bool(_FAILURE_AT_START.match(head) or _EXCEPTION_AT_START.match(head))


def _member_says_failed(key: str, value: object) -> bool:
    match key:
        case "error":
            return bool(value)
        case "iserror" | "is_error":
            return is_true(value)
        case "success" | "ok":
            return _is_false(value)
        case "status":
            return read_outcome(value) == "failed"
        case _:
            return False
