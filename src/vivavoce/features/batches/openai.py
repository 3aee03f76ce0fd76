"""`OpenAIBatches`: the batches of OpenAI, and of every service that speaks its wire.

Source of the format: OpenAI's reference of `POST /files` and `POST /batches`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Collection, Iterator, Sequence

from vivavoce.errors import ModelFault
from vivavoce.features.batches.files import MOST_REQUESTS, URL, check_body
from vivavoce.features.batches.service import (
    LIMITS,
    Line,
    NotJson,
    Prepared,
    Settled,
    State,
    checked_id,
    is_answer_of,
    listed_objects,
    read_counts,
    read_line,
    read_object,
    reply_in,
    rows_of,
)
from vivavoce.models.model import Request
from vivavoce.models.openai import OpenAIModel, most_output
from vivavoce.models.prices import Price
from vivavoce.records.replies import Batch
from vivavoce.wire.chat import json_bytes

_ENDED = frozenset(("completed", "expired", "cancelled"))
_PASSES = frozenset((408, 409, 429))
"""Statuses of a request that may be answered when it is asked again; each from 500 is another."""
_LATE = frozenset(("batch_expired", "batch_cancelled"))
"""Codes of requests that the service never came to."""
_TOO_MUCH = "token_limit_exceeded"
"""The code of a batch that was refused because too many tokens wait already."""
_PAGE, _PAGES = 100, 50


class OpenAIBatches:
    """Asks a model on OpenAI's wire in batches: a file of requests goes up, files with the answers come down."""

    most_requests = MOST_REQUESTS
    takes_files = True

    def __init__(self, model: OpenAIModel, price: Price | None) -> None:
        self._model = model
        self._price = price
        self._endpoint = model.endpoint(LIMITS)

    async def prepare(self, custom_id: str, request: Request) -> Prepared:
        """Return a question as one line of a batch, without sending it.

        Raises:
            ModelFault: it does not ask for JSON natively, or offers tools (kind `unsupported`).
        """
        body = self._model.body(request)
        check_body(body)
        line = json_bytes({"custom_id": custom_id, "method": "POST", "url": URL, "body": body})
        return Prepared(line, most_output(body))

    async def upload(self, lines: Sequence[bytes], name: str) -> str:
        """Send requests as a file of this name, and return what the service calls it."""
        mark = secrets.token_hex(16)
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        data = b"".join(
            (head.encode(), *(part for line in lines for part in (line, b"\n")), f"\r\n--{mark}--\r\n".encode())
        )
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
        answer = await self._endpoint.send("POST", "/files", data, headers)
        return checked_id(read_object(answer.json()).get("id"), "uploading a file")

    async def create(self, lines: Sequence[bytes], file: str | None) -> State:
        """Make a batch of an uploaded file."""
        del lines
        body = {"input_file_id": file, "endpoint": URL, "completion_window": "24h"}
        return _state((await self._endpoint.send("POST", "/batches", json_bytes(body))).json())

    async def find(self, batch: Batch, known: Collection[str]) -> str | None:
        """Return the id of the batch that was made of an uploaded file, None where there is none."""
        after = ""
        for _ in range(_PAGES if batch.file is not None else 0):
            answer = await self._endpoint.send("GET", f"/batches?limit={_PAGE}{after}", repeatable=True)
            listed = listed_objects(read_object(answer.json()), "data")
            for one in listed:
                if one.get("input_file_id") == batch.file and one.get("id") not in known:
                    return checked_id(one.get("id"), "finding a batch")
            if len(listed) < _PAGE:
                return None
            after = f"&after={checked_id(listed[-1].get('id'), 'listing batches')}"
        return None

    async def look(self, service_id: str) -> State:
        """Return how far a batch is."""
        return _state((await self._endpoint.send("GET", f"/batches/{service_id}", repeatable=True)).json())

    async def cancel(self, service_id: str) -> None:
        """Ask the service to answer no more of a batch; what it has answered stays, and is charged."""
        await self._endpoint.send("POST", f"/batches/{service_id}/cancel", repeatable=True)

    async def results(self, state: State) -> AsyncIterator[Settled]:
        """Yield what came of each question of a batch that has ended."""
        for file in state.outputs:
            answer = await self._endpoint.send("GET", f"/files/{file}/content", repeatable=True)
            for settled in self._settled(answer.text):
                yield settled

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()
        await self._model.close()

    def _settled(self, text: str) -> Iterator[Settled]:
        for row in rows_of(text):
            try:
                line = read_line(row)
            except ValueError as error:
                yield Settled(
                    str(row.get("custom_id")), fault=ModelFault(f"a line of the batch {error}", kind="format")
                )
            else:
                yield self._one(row["custom_id"], line)

    def _one(self, name: str, line: Line) -> Settled:
        if line.body is None:
            status = line.status or 0
            again = line.code in _LATE or status in _PASSES or status >= 500
            return Settled(
                name,
                fault=ModelFault(line.complaint, kind="http", status=line.status),
                then="ask again" if again else "give up",
            )
        answered = line.body.get("model")
        try:
            if not is_answer_of(answered, self._model.name):
                raise ModelFault(f"answered by the model '{answered}' instead of {self._model.name}", kind="format")
            return Settled(name, reply_in(line.body, self._price))
        except ModelFault as fault:
            return Settled(name, fault=fault, then="repair" if isinstance(fault, NotJson) else "give up")


def _state(payload: object) -> State:
    told = read_object(payload)
    service_id, status = checked_id(told.get("id"), "a batch"), told.get("status")
    counts = read_counts(told)
    settled, broken = counts.get("completed", 0) + counts.get("failed", 0), counts.get("failed", 0)
    if status == "failed":
        complaints = listed_objects(read_object(told.get("errors") or {}), "data")
        cause = (
            "; ".join(f"{complaint.get('code')}: {complaint.get('message')}" for complaint in complaints[:3])
            or "it does not say why"
        )
        return State(
            service_id,
            "refused",
            cause=cause,
            too_much=any(complaint.get("code") == _TOO_MUCH for complaint in complaints),
        )
    if status not in _ENDED:
        return State(service_id, "going", settled, broken)
    files = [told.get(name) for name in ("output_file_id", "error_file_id")]
    outputs = tuple(checked_id(file, "a file of results") for file in files if file)
    return State(service_id, "ended", settled, broken, outputs)
