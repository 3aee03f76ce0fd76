"""A line that a batch service returned: whose question it answers, and the reply in it or why there is none.

Source of the format: OpenAI's reference of `POST /batches`, as Azure, vLLM and others speak it. A line that answers is
`{"custom_id", "response": {"status_code", "body"}, "error"}`. `custom_id` is the key that the reply will be kept under,
and a hash of the model that is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from vivavoce.errors import ModelFault
from vivavoce.models.answers import read_answer
from vivavoce.models.model import ModelReply
from vivavoce.models.names import is_version_of
from vivavoce.models.openai import json_answer
from vivavoce.models.prices import Price
from vivavoce.records.usage import Usage, charge, usage_of
from vivavoce.wire.chat import read_completion
from vivavoce.wire.http import Answer

MODE = "batch"
"""The mode of an answer from a batch, which sets it apart from an answer that a model gave directly."""


class NotJson(ModelFault):
    """An answer came that holds no JSON object, and may be asked for again."""


class Line(NamedTuple):
    """What a service says about one question: the chat completion, or in words why there is none.

    `status` is that of the HTTP answer, `code` the service's word for the failure; both None where it has none.
    """

    key: str
    model_hash: str
    body: dict[str, Any] | None
    complaint: str = ""
    status: int | None = None
    code: str | None = None


def custom_id(key: str, identity: str) -> str:
    """Return what names a question to a model in a batch."""
    return f"{key}-{model_hash(identity)}"


def model_hash(identity: str) -> str:
    """Return a short hash of a model, which sets its questions apart from those to other models."""
    return blake2b(identity.encode(), digest_size=4).hexdigest()


def named_question(name: object) -> tuple[str, str]:
    """Return the key of a question and the hash of its model, which is empty where the name has none.

    Raises:
        ValueError: the name is none that `custom_id` makes.
    """
    match = re.fullmatch("([0-9a-f]{32})(?:-([0-9a-f]{8}))?", name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"custom_id: 32 hexadecimal digits are needed, as vivavoce exports them, got {name!r:.60}")
    return match[1], match[2] or ""


def read_line(row: Mapping[str, Any]) -> Line:
    """Read a line of a file that a service returned.

    Raises:
        ValueError: it is not a line of a response.
    """
    named = named_question(row.get("custom_id"))
    match row:
        case {"method": _}:
            raise ValueError("is a request; the file that the service returned is needed")
        case {"error": error} if error:
            return Line(*named, None, complaint_of(error), code=_code(error))
        case {"response": {"status_code": 200, "body": {**body}}}:
            return Line(*named, cast("dict[str, Any]", body))
        case {"response": {"status_code": int(status), **rest}}:
            return Line(*named, None, f"status {status}: {complaint_of(rest.get('body'))}", status)
        case _:
            raise ValueError("has neither a response with its status_code nor an error")


def reply_in(body: Mapping[str, Any], price: Price | None) -> ModelReply:
    """Return the reply of a chat completion that asked for JSON; `price` is that of a batch, None for unknown.

    Raises:
        ModelFault: the model declined, was cut off, or did not answer with a JSON object; it has what that used.
    """
    try:
        completion = read_completion(Answer("the batch", json.dumps(body).encode(), fault=ModelFault))
    except ModelFault as fault:
        fault.usage = priced(usage_of(fault), price)
        raise
    usage = priced(completion.usage, price)
    try:
        text = json_answer(completion, "json_schema", {})
        if text is None:
            raise ModelFault("it calls a tool that was not offered", kind="format")
        return json_reply(text, usage)
    except ModelFault as fault:
        charge(fault, usage)
        raise


def json_reply(text: str, usage: Usage) -> ModelReply:
    """Return the reply that a text with a JSON object is.

    Raises:
        NotJson: it has none.
    """
    try:
        answer = read_answer(text, {})
    except ValueError as error:
        raise NotJson(str(error), kind="format", evidence=text) from error
    return ModelReply(text, answer.parsed, usage=usage, applied=answer.noted({"mode": MODE}))


def priced(usage: Usage | None, price: Price | None) -> Usage:
    """Return the usage of one answer with its cost; of one that does not say, that it was a call."""
    if usage is None:
        return Usage(calls=1)
    return usage if price is None else usage.model_copy(update={"cost": price.cost(usage)})


def is_answer_of(answered: object, model: str) -> bool:
    """Say whether what a service calls the model that answered is the model that was asked.

    A deployment of Azure has another name than its model.
    """
    if not isinstance(answered, str) or model.startswith("azure:"):
        return True
    return is_version_of(answered, model.partition("#" if "#" in model else ":")[2])


def complaint_of(body: Any) -> str:
    """Return the message of a service, which may be inside an `error` with a code."""
    match body:
        case {"error": error} if error:
            return complaint_of(error)
        case {"message": str(message), **rest}:
            return f"{rest['code']}: {message}" if isinstance(rest.get("code"), str) else message
        case str():
            return body
        case _:
            return json.dumps(body)


def _code(error: object) -> str | None:
    match error:
        case {"code": str(code)}:
            return code
        case _:
            return None
