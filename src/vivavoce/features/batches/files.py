"""Questions as files for a batch service, which answers within a day and at half the price, and its answers as replies.

Source of the format and of the limits: OpenAI's reference of `POST /batches`, as Azure, vLLM and others speak it. A
line that asks is `{"custom_id", "method", "url", "body"}`; `lines` reads the ones that answer. For readers of the file,
a line that asks also says what about: `"sample"`, `"metric"` and `"piece"`, the turns judged.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from vivavoce.errors import ModelFault, Problem, UsageError
from vivavoce.features.batches.service import MODE, custom_id, is_answer_of, model_hash, read_line, reply_in
from vivavoce.files.rows import Row, read_rows
from vivavoce.models.cache import KeptReplies, decode_reply, encode_reply, reply_key
from vivavoce.models.model import Model, ModelReply, Request, Subject
from vivavoce.models.names import model_identity, model_name
from vivavoce.models.openai import OpenAIModel
from vivavoce.models.prices import Price, batch_price
from vivavoce.records.replies import StoredReply
from vivavoce.records.score import Usage, shorten, usage_of

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
URL = "/v1/chat/completions"
_CAUSE = 300
"""Characters of a cause that are kept."""


@dataclass(slots=True)
class _Part:
    """A file that is written under a temporary name next to its final place."""

    place: Path
    beside: Path
    file: BinaryIO
    requests: int = 0
    size: int = 0


class RequestFile:
    """A model that writes its requests to files and never answers: each question fails with the kind `exported`.

    The same question is written once. Around it, a `CachedModel` answers what is known already, so that only what is
    missing is written. `files` are the ones written by `close`, and `asked` is how many requests they hold.
    Where one file would hold more than the service takes, `NAME-2.jsonl` and so on follow.

    Raises:
        UsageError: the file exists already or cannot be written, or the model does not use OpenAI's format.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Model,
        *,
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        if not isinstance(model, OpenAIModel):
            raise UsageError(f"{model.name} cannot be used with a request file: only models with OpenAI's API can")
        self.name = model.name
        self.identity = model.identity
        self.settings = model.settings
        self.asked = 0
        self.files: list[Path] = []
        self._model = model
        self._path = Path(path)
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._keys: set[str] = set()
        self._verdict: dict[str, str] = {}
        self._parts: list[_Part] = []
        self._error: UsageError | None = None
        _check_free(self._path)
        if not self._path.parent.is_dir():
            raise UsageError(Problem("cannot be written: there is no such folder", self._path))

    def ask_for(self, sample: str, metric: str) -> None:
        """Say whose verdict the next requests are for; their lines name the sample and the metric."""
        self._verdict = {"sample": sample, "metric": metric}

    async def complete(self, request: Request) -> ModelReply:
        """Write a request down.

        Raises:
            ModelFault: always, of kind `exported`; of kind `unsupported` where JSON is not asked for natively, or tools
                are offered, and so nothing is written.
            UsageError: the file cannot be written.
        """
        key = reply_key(self.identity, self.settings, request)
        if key not in self._keys:
            body = self._model.body(request)
            check_body(body)
            about = {**self._verdict, **_judged(request.subject)}
            named = {"custom_id": custom_id(key, self.identity), **about}
            self._write({**named, "method": "POST", "url": URL, "body": body})
            self._keys.add(key)
        raise ModelFault(f"asked in {self._path}; import the responses", kind="exported")

    async def close(self) -> None:
        """Move the files to their final places, if anything was asked; a later question begins another file.

        Raises:
            UsageError: something could not be written, and no file is left.
        """
        parts, self._parts = self._parts, []
        try:
            for part in parts:
                part.file.close()
            if self._error is not None:
                raise self._error
            for part in parts:
                _check_free(part.place)
            for part in parts:
                os.replace(part.beside, part.place)
                self.files.append(part.place)
                self.asked += part.requests
        except OSError as error:
            raise _not_writable(self._path, error) from error
        finally:
            for part in parts:
                part.beside.unlink(missing_ok=True)
        await self._model.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            part = self._parts[-1] if self._parts else self._begin()
            full = part.requests == self._most_requests or part.size + len(data) > self._most_bytes
            if part.requests and full:
                part.file.close()
                part = self._begin()
            part.file.write(data)
            part.requests, part.size = part.requests + 1, part.size + len(data)
        except OSError as error:
            self._error = _not_writable(self._path, error)
            raise self._error from error

    def _begin(self) -> _Part:
        number = len(self.files) + len(self._parts) + 1
        place = self._path if number == 1 else self._path.with_stem(f"{self._path.stem}-{number}")
        beside = place.with_name(f".{secrets.token_hex(8)}.part")
        self._parts.append(part := _Part(place, beside, beside.open("xb")))
        return part


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question of a batch without a usable answer; `cause` is one line, partly from the service."""

    custom_id: str
    cause: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The content of a file of responses: `answered` are kept, `added` of them are new.

    `replaced` took the place of another answer that had been imported. `usage` is that of the whole
    batch with its cost, where the service reports it.
    """

    answered: int
    added: int
    failed: tuple[Unanswered, ...]
    usage: Usage
    replaced: int = 0


def import_responses(path: str | os.PathLike[str], replies: KeptReplies, model: str) -> ImportReport:
    """Keep the answers of a file that a batch service returned, all or none.

    `model` is the judge as it was named for the export. A refusal, an answer that was cut off or is not a JSON
    object, and a request that failed are not kept: asked again, they are exported again. Whether an answer matches its
    schema is checked when it is used; one that does not is exported again too. An answer that differs from one that was
    imported before replaces it, for it is a correction. A second import of the same file changes nothing.

    Raises:
        UsageError: the file cannot be read, a line is not a response or belongs to another model, or two lines
            contradict each other; it names file and line.
        StoreError: the store cannot be written.
    """
    name = model_name(model)
    reading = _Responses(Path(path), name, model_hash(model_identity(model)), batch_price(name))
    reading.read()
    now = time.time()
    rows = [StoredReply(key, name, encode_reply(answer.reply), now) for key, answer in reading.answers.items()]
    corrected = [key for key, answer in reading.answers.items() if differs(replies.get(key), answer.reply)]
    added = replies.add(rows, replacing=corrected)
    failed = tuple(question for key, question in reading.failed.items() if key not in reading.answers)
    return ImportReport(len(rows), added, failed, reading.usage, len(corrected))


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer with the line where it stands."""

    line: int
    reply: ModelReply


@dataclass(slots=True)
class _Responses:
    """The content of a file by the keys of the questions; `model_hash` is that of the model."""

    path: Path
    model: str
    model_hash: str
    price: Price | None
    answers: dict[str, _Answer] = field(default_factory=dict[str, _Answer])
    failed: dict[str, Unanswered] = field(default_factory=dict[str, Unanswered])
    usage: Usage = field(default_factory=Usage)

    def read(self) -> None:
        """Read the file."""
        for line, row in read_rows(self.path, "jsonl"):
            try:
                self._take(line, row)
            except ValueError as error:
                raise UsageError(Problem(str(error), self.path, line)) from error

    def _take(self, line: int, row: Row) -> None:
        told = read_line(row)
        if told.model_hash not in ("", self.model_hash):
            raise ValueError(f"answers a question to a model other than {self.model}; name the judge of the export")
        try:
            if told.body is None:
                raise ModelFault(told.complaint, kind="http")
            answered = told.body.get("model")
            if not is_answer_of(answered, self.model):
                raise ValueError(f"was answered by model '{answered}', but the request was for {self.model}; resend it")
            reply = reply_in(told.body, self.price)
        except ModelFault as fault:
            self.usage += usage_of(fault) or Usage()
            self.failed.setdefault(told.key, Unanswered(row["custom_id"], _cause(fault)))
            return
        first = self.answers.setdefault(told.key, _Answer(line, reply))
        if first.line == line:  # the same answer written twice is charged once
            self.usage += reply.usage or Usage()
        if _content(first.reply) != _content(reply):
            raise ValueError(f"contradicts line {first.line}, which answers the same question; remove one of the two")


def check_body(body: Mapping[str, Any]) -> None:
    """Check that a question can be asked in a batch.

    Raises:
        ModelFault: JSON is not asked for natively, or tools are offered (kind `unsupported`).
    """
    if "response_format" not in body or "tools" in body:
        message = "only questions that ask for JSON natively, and offer no tools, can be asked in a batch"
        raise ModelFault(message, kind="unsupported")


def _judged(subject: Subject | None) -> dict[str, Any]:
    """Return the metric that asks, and the turns that it judges, where a request says so."""
    if subject is None:
        return {}
    turns = {"first_turn": subject.first_turn, "last_turn": subject.last_turn}
    return {"metric": subject.metric, "piece": turns}


def _content(reply: ModelReply) -> tuple[str, Any]:
    return reply.text, reply.parsed


def differs(kept: str | None, reply: ModelReply) -> bool:
    """Say whether a cached reply came from a batch and has other content."""
    if kept is None:
        return False
    try:
        before = decode_reply(kept)
    except ValueError:
        return True
    return before.applied.get("mode") == MODE and _content(before) != _content(reply)


def _cause(fault: ModelFault) -> str:
    words = f"{fault}: {fault.evidence}" if fault.evidence else str(fault)
    return shorten(" ".join(words.split()), _CAUSE) or ""


def _check_free(path: Path) -> None:
    if path.exists():
        raise UsageError(Problem("already exists; name another file, or remove it", path))


def _not_writable(path: Path, error: OSError) -> UsageError:
    return UsageError(Problem(f"cannot be written: {error.strerror or error}", path))
