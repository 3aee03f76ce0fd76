"""How a tool call ended: what a field of its result states and, where no field does, what its words say."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from vivavoce.comparing.text import fold, fold_encoding, is_blank

CallOutcome = Literal["succeeded", "failed", "refused"]
"""What a result states about its call. A `refused` call was never made: the user declined it, or it was invalid."""

SPELLINGS: Mapping[str, CallOutcome] = {
    **dict.fromkeys(("succeeded", "success"), "succeeded"),
    **dict.fromkeys(("failed", "fail", "error", "errored", "failure"), "failed"),
    **dict.fromkeys(("refused", "denied", "rejected"), "refused"),
}
"""How formats write an outcome, in lower case."""

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_NO_ERROR = frozenset(("false", "0", "null", "undefined", "none", "nil", "no error", "n/a"))
"""What a field for an error holds where there was none, folded."""
_ANSWERED_WITHOUT_TOOL = ("user", "vivavoce")
_STATUS_OF_ERROR = ("error", "incomplete")
_STRONGEST_FIRST: tuple[CallOutcome, ...] = ("refused", "failed", "succeeded")
_HEAD_CHARS = 1000
"""How much of a result is looked at for the words that it begins with."""
_MAX_PYTHON_CHARS = 20_000
"""The longest text that is read as a value of Python."""
_MAX_WRAPPERS = 8
"""How many objects and lists around the words of a result are opened."""
_WRAPPERS = frozenset(("content", "message", "output", "response", "result", "text"))
"""Keys of an object that holds nothing but the result itself."""
_OF_MCP = ("meta", "structuredcontent")
"""Keys of a result of MCP that may be empty."""
_MARKUP = r"(?:[^\w{]|_)*"
"""Signs before a word, such as an emoji; what follows a brace is data."""
_EMPTY_ELEMENT = r"\s*(?:/>|>\s*</)"
_FAILURE_AT_START = re.compile(
    rf"{_MARKUP}(?:error|exception|failed|failure|traceback)(?:\b|_+(?!\w))(?!{_EMPTY_ELEMENT})", re.IGNORECASE
)
_EXCEPTION_AT_START = re.compile(rf"{_MARKUP}(?:\w+\.)*[A-Z]\w*?(?:Error|Exception)[*_`\"']*\s?:")
"""The name of an exception, with or without its module, as Python, Java, and JavaScript print it."""
_TAG = re.compile(r"<[^<>{]*>")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*(?:json[5cl]?|python|py|text|txt|yaml|output|console)?\s+", re.IGNORECASE)
_PYTHON_ERROR = re.compile(r"\s*\{\s*'error'\s*:(?!\s*(?:None|False|''|\"\"|\[\]|\{\}))", re.IGNORECASE)
"""A dict that begins with an error and holds more than plain values, as Python prints it."""


def read_outcome(spelling: object) -> CallOutcome | None:
    """Return the outcome that a word stands for, None for anything else."""
    return SPELLINGS.get(fold(spelling)) if isinstance(spelling, str) else None


def is_true(mark: object) -> bool:
    """Return whether a mark says yes, in any spelling: true, "True", 1, "yes"."""
    return _spelling(mark) in _TRUE


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
    `error`, `failed`, `success`, or `ok`, in the message, in its metadata, or in an object in either, where converters
    keep the fields of other formats; of a `status` there, only `error` and `incomplete` count. A mark may be written in
    any spelling of yes or no, such as "True" or 1. Only an `is_error` that is the bool false states a success.
    `status: success` and `ok: true` state nothing, because libraries write them whatever the tool returned.
    """
    if (outcome := read_outcome(_member(fields, "outcome"))) is not None:
        return outcome
    notes = _objects_in(fields, "metadata")
    inner = [fields_inside for holder in (fields, *notes) for fields_inside in _objects_in(holder)]
    inner += [original for fields_inside in inner for original in _objects_in(fields_inside, "fields")]
    marks = {_status_in(holder) for holder in (fields, *notes)} | set(map(_mark_in, inner)) | {_mark_in(fields)}
    return next((mark for mark in _STRONGEST_FIRST if mark in marks), None)


def _objects_in(fields: Mapping[str, object], *names: str) -> list[Mapping[str, object]]:
    """Return the members of these names that are objects, of all names without any."""
    values = [_member(fields, name) for name in names] if names else fields.values()
    return [cast("Mapping[str, object]", value) for value in values if isinstance(value, Mapping)]


def _member(fields: Mapping[str, object], name: str) -> object:
    """Return a member of an object, however its key is written; None where it is not there."""
    if name in fields:
        return fields[name]
    return next((value for key, value in fields.items() if _plain_key(key) == name), None)


def _status_in(holder: Mapping[str, object]) -> CallOutcome | None:
    """Return the failure or the refusal that a `status` states, in any spelling."""
    outcome = read_outcome(_member(holder, "status"))
    return None if outcome == "succeeded" else outcome


def _mark_in(holder: Mapping[str, object]) -> CallOutcome | None:
    if holder.get("answered_by") in _ANSWERED_WITHOUT_TOOL:
        return "refused"
    members = list(holder.items())
    if _spelling(_member(holder, "status")) in _STATUS_OF_ERROR or _members_say_failed(members):
        return "failed"
    return "succeeded" if any(_plain_key(key) == "iserror" and mark is False for key, mark in members) else None


def _members_say_failed(members: Sequence[tuple[str, object]]) -> bool:
    """Return whether a member of an object, be it a message or a result, says that the call failed."""
    return any(_member_says_failed(_plain_key(key), value) for key, value in members)


def _plain_key(key: object) -> str:
    """Return a key without its spelling: `isError` and `is_error` are one."""
    return re.sub(r"[\s_-]", "", fold(key)) if isinstance(key, str) else ""


def _member_says_failed(key: str, value: object) -> bool:
    match key:
        case "error" | "errormessage" | "errortext" | "exception":
            return _is_error(value)
        case "iserror":
            return is_true(value)
        case "failed":  # a number counts something, such as the tests that failed
            return isinstance(value, bool | str) and is_true(value)
        case "success" | "succeeded" | "successful" | "issuccess" | "ok":
            return _spelling(value) in _FALSE
        case _:
            return False


def _is_error(value: object) -> bool:
    """Return whether the value of a field for an error is one: anything but an empty value, or a word for none."""
    return bool(value) and not (isinstance(value, str) and (is_blank(value) or fold(value) in _NO_ERROR))


def words_say_failed(text: str) -> bool:
    """Return whether the words of a result say that its call failed: they begin so, or are an object with an error.

    The words may be in a code fence, in a list of text parts, or in an object that holds nothing else.
    """
    return _text_says_failed(text, _MAX_WRAPPERS)


def _text_says_failed(text: str, wrappers: int) -> bool:
    text = _without_fence(text)
    head = fold_encoding(text.lstrip()[:_HEAD_CHARS])
    if any(map(_begins_with_failure, (head, _TAG.sub(" ", head)))):
        return True
    value = _value_at_start(text)
    return _PYTHON_ERROR.match(text) is not None if value is None else _value_says_failed(value, wrappers)


def _without_fence(text: str) -> str:
    """Return a text without the code fence around it, if there is one, and without blanks before it."""
    text = _without_blanks(text)
    fence = _FENCE.match(text)
    return text if fence is None else _without_blanks(text[fence.end() :].rstrip("`~ \t\r\n"))


def _without_blanks(text: str) -> str:
    """Return a text without what cannot be seen at its start."""
    return text[next((at for at, sign in enumerate(text) if not is_blank(sign)), len(text)) :]


def _begins_with_failure(head: str) -> bool:
    return bool(_FAILURE_AT_START.match(head) or _EXCEPTION_AT_START.match(head))


class _Members(list[tuple[str, object]]):
    """The members of a JSON object: every value of a key that occurs twice counts."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Members)


def _value_at_start(text: str) -> object:
    """Return the JSON or the Python object or list that a text begins with, None for any other text."""
    if not text.startswith(("{", "[", '"')):
        return None
    try:
        return cast("object", _DECODER.raw_decode(text)[0])
    except (ValueError, RecursionError):
        pass
    if len(text) > _MAX_PYTHON_CHARS:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return _with_members(value)


def _with_members(value: object) -> object:
    """Return a Python value with the members of its objects and lists as JSON has them; the depth is that of text."""
    if isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
        return _Members((key, _with_members(item)) for key, item in members if isinstance(key, str))
    if isinstance(value, list | tuple):
        return [_with_members(item) for item in cast("Sequence[object]", value)]
    return value


def _value_says_failed(value: object, wrappers: int) -> bool:
    """Return whether a result says that its call failed; `wrappers` limits how many levels are opened."""
    if wrappers < 0:
        return False
    if isinstance(value, str):
        return _text_says_failed(value, wrappers - 1)
    if isinstance(value, _Members):
        if any(_result_member_says_failed(_plain_key(key), member) for key, member in value) or _is_refusal(value):
            return True
        inner = _wrapped_in(value)
        return inner is not None and _value_says_failed(inner, wrappers - 1)
    if not isinstance(value, list) or not value:
        return False
    items = cast("list[object]", value)
    texts = [_part_text(item) for item in items]
    parts = [text for text in texts if text is not None]
    if len(parts) == len(items):
        return _text_says_failed("".join(parts), wrappers - 1)
    return all(isinstance(item, _Members) and _value_says_failed(item, wrappers - 1) for item in items)


def _result_member_says_failed(key: str, value: object) -> bool:
    if key == "type":
        return isinstance(value, str) and value in _TYPES_OF_FAILURES
    return read_outcome(value) == "failed" if key == "status" else _member_says_failed(key, value)


def _is_refusal(members: _Members) -> bool:
    """Return whether an object says that what was asked for was not done, and says nothing else but why.

    `{"status": "rejected", "reason": "slot taken"}` is one; next to data, a status is that of the data.
    """
    fields = {_plain_key(key): value for key, value in members if value not in (None, "", [], {})}
    if fields.keys() - _KEYS_OF_A_STATUS - _KEYS_OF_A_REASON - {"errors"}:
        return False
    return "errors" in fields or any(_refuses(key, value) for key, value in fields.items())


def _refuses(key: str, mark: object) -> bool:
    if isinstance(mark, int) and not isinstance(mark, bool):
        return key in {*_KEYS_OF_A_STATUS, "code"} and 400 <= mark < 600
    if key not in _KEYS_OF_A_STATUS or not isinstance(mark, str):
        return False
    is_refused = read_outcome(mark) in ("failed", "refused") or _plain_key(mark) in _REFUSALS
    return is_refused or _HTTP_ERROR.match(mark) is not None


_HTTP_ERROR = re.compile(r"\s*[45]\d\d(?!\d)")
"""The beginning of a status of HTTP that is an error."""


_KEYS_OF_A_STATUS = frozenset(("status", "statuscode", "httpstatus", "result", "outcome"))
_KEYS_OF_A_REASON = frozenset(
    ("reason", "reasons", "message", "msg", "detail", "details", "description", "explanation", "hint", "code", "title")
) | frozenset(("requestid", "timestamp", "retryafter"))
_REFUSALS = frozenset(
    ("declined", "unavailable", "conflict", "forbidden", "unauthorized", "unauthorised", "notallowed", "notfound")
) | frozenset(("timeout", "timedout", "unsuccessful", "notavailable", "soldout"))
"""Words of a status, without blanks and hyphens, that say that something was not done."""
_TYPES_OF_FAILURES = frozenset(("error-text", "error-json", "execution-denied", "tool_result_error"))
"""Types of results of other tools that say that a call failed."""


def _wrapped_in(members: _Members) -> object:
    """Return what an object holds that holds nothing else, None where it has data of its own."""
    plain_members = [(_plain_key(key), value) for key, value in members]
    if (text := _part_text(members)) is not None:
        return text
    inner = [value for key, value in plain_members if key in _WRAPPERS]
    others = [value for key, value in plain_members if key not in _WRAPPERS and not _states_no_failure(key, value)]
    return inner[0] if len(inner) == 1 and not others else None


def _states_no_failure(key: str, value: object) -> bool:
    """Return whether a member is the mark of a failure that is not set, which is not data."""
    return (key in ("error", "iserror") and not _is_error(value)) or (
        key in ("meta", "structuredcontent") and not value
    )


def _part_text(value: object) -> str | None:
    """Return the text of a text part, None for anything else."""
    if not isinstance(value, _Members):
        return None
    fields = {_plain_key(key): member for key, member in value}
    text = fields.get("text")
    return text if fields.get("type") in ("text", "output_text") and isinstance(text, str) else None
