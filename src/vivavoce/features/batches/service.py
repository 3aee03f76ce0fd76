"""The port to batch services: what one must do, and what its lines say.

Source of the format: OpenAI's reference of `POST /batches`, as Azure, vLLM and others speak it. A line that answers is
`{"custom_id", "response": {"status_code", "body"}, "error"}`. `custom_id` is the key that the reply will be kept under,
and a hash of the model that is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Protocol, cast

from vivavoce.errors import ModelFault
from vivavoce.models.answers import read_answer
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.names import is_version_of
from vivavoce.models.openai import json_answer
from vivavoce.models.prices import Price
from vivavoce.records.replies import Batch, Then
from vivavoce.records.score import Usage, charge, usage_of
from vivavoce.wire.chat import read_completion
from vivavoce.wire.http import Answer, Limits

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
        raise ValueError(f"custom_id: expected 32 hexadecimal digits, as vivavoce exports them, got {name!r:.60}")
    return match[1], match[2] or ""


def read_line(row: Mapping[str, Any]) -> Line:
    """Read a line of a file that a service returned.

    Raises:
        ValueError: it is not a line of a response.
    """
    named = named_question(row.get("custom_id"))
    match row:
        case {"method": _}:
            raise ValueError("is a request; use the file that the service returned")
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


def read_object(payload: object) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        ModelFault: it is something else.
    """
    if isinstance(payload, dict):
        return cast("dict[str, Any]", payload)
    raise ModelFault(f"the batch service answered {str(payload)[:80]!r}, which is not a JSON object", kind="format")


def listed_objects(payload: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list, which is empty where there is none.

    Raises:
        ModelFault: it holds something else.
    """
    listed = payload.get(name)
    return [read_object(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []


def read_counts(payload: Mapping[str, Any]) -> dict[str, int]:
    """Return how many requests of a batch are in each state."""
    told = payload.get("request_counts")
    counts = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    return {name: number for name, number in counts.items() if isinstance(number, int)}


def rows_of(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of results.

    Raises:
        ModelFault: a line is not a JSON object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelFault(f"line {number} of the results is not JSON: {error}", kind="format") from error
        yield read_object(row)


def checked_id(given: object, what: str) -> str:
    """Return an id that a service gave, which becomes a part of addresses.

    Raises:
        ModelFault: it is not one that could.
    """
    if isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,200}", given):
        return given
    raise ModelFault(f"{what}: the service gave no usable id: {str(given)[:80]!r}", kind="format")


LIMITS = Limits(concurrency=4, timeout=600.0, size=1_000_000_000)
"""Files of many answers are large, and take their time."""
MOST_BYTES = 64_000_000
"""Bytes of requests in one batch: less than any service takes, since they are in memory while they are sent."""


class State(NamedTuple):
    """How far a batch is: what its service says of it.

    `settled` requests have ended, `broken` of them without an answer. `outputs` are files of the service with what came
    of them. Of a batch that was refused as a whole `cause` says why, and `too_much` whether it, or part of it, may be
    sent again when others have ended.
    """

    id: str
    stage: Literal["going", "ended", "refused"]
    settled: int = 0
    broken: int = 0
    outputs: tuple[str, ...] = ()
    cause: str = ""
    too_much: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one question: a `reply`, or a `fault`, and what can then be done about it.

    `custom_id` is what the service calls the question.
    """

    custom_id: str
    reply: ModelReply | None = None
    fault: ModelFault | None = None
    then: Then = "give up"


class Prepared(NamedTuple):
    """A question as one line of a batch; `most_output` is the tokens that its answer may have, None for unbounded."""

    line: bytes
    most_output: int | None


class BatchService(Protocol):
    """A service that answers many questions to one model within a day.

    Every call may raise a `ModelFault` or `RateLimited`; those that change something there are made once, and whoever
    calls finds out with `find` whether one that broke has taken effect. `takes_files` is whether the requests have to
    be uploaded before a batch is made of them.
    """

    @property
    def most_requests(self) -> int:
        """How many requests one batch takes at most."""
        ...

    @property
    def takes_files(self) -> bool:
        """Whether the requests have to be uploaded first."""
        ...

    async def prepare(self, custom_id: str, request: Request) -> Prepared:
        """Return a question as one line of a batch, without sending it.

        Raises:
            ModelFault: it cannot be asked in a batch (kind `unsupported`).
        """
        ...

    async def upload(self, lines: Sequence[bytes], name: str) -> str:
        """Send requests as a file of this name, and return what the service calls it."""
        ...

    async def create(self, lines: Sequence[bytes], file: str | None) -> State:
        """Make a batch of an uploaded file, or of the requests themselves where the service takes no files."""
        ...

    async def find(self, batch: Batch, known: Collection[str]) -> str | None:
        """Return the service's own id of a batch that may have been made, None where it was not.

        `known` are the ids of other batches.
        """
        ...

    async def look(self, service_id: str) -> State:
        """Return how far a batch is."""
        ...

    async def cancel(self, service_id: str) -> None:
        """Ask the service to answer no more of a batch; what it has answered stays, and is charged."""
        ...

    def results(self, state: State) -> AsyncIterator[Settled]:
        """Yield what came of each question of a batch that has ended."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
