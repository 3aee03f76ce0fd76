"""The port to language models: a request, a reply, and what a model must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.models.attempts import current_attempt
from vivavoce.records.usage import Usage
from vivavoce.wire.chat import WireMessages, wire_messages

Schema = Mapping[str, Any] | type[BaseModel]
"""The schema of a structured reply: a JSON schema, or a class whose fields are the answer."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question to a judge is about: the metric that asks, and the first and the last turn judged, from 0."""

    metric: str
    first_turn: int
    last_turn: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model: the conversation, the schema that its answer must match, the tools it may call.

    `settings` such as `temperature` go before those of the model. `trial` counts repetitions of one question from 0,
    `sample_trial` is the trial of the sample that the question is about, from 0, and `attempt` names a repeated attempt
    at a conversation. None of them is sent, but a cache keeps their answers apart. `subject` is not sent either, and
    decides nothing.
    """

    messages: Sequence[AnyMessage]
    schema: Schema | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: {})
    trial: int = 0
    subject: Subject | None = field(default=None, compare=False)
    sample_trial: int = 0
    attempt: str = field(default_factory=current_attempt)
    _wire: list[WireMessages] = field(init=False, default_factory=lambda: [], compare=False, repr=False)

    @property
    def wire(self) -> WireMessages:
        """The messages as an endpoint accepts them, made once for the key of a cache and for the request."""
        if not self._wire:
            self._wire.append(wire_messages(self.messages))
        return self._wire[0]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The answer of a model: `parsed` is the JSON object of `text` where the request has a schema.

    `applied` is what was actually sent: `mode` (`text`, `tools` or `json_schema`), whether it was `repaired`, and every
    setting, with None for one that the model does not take. Where the answer was not clean JSON, it has in `read` what
    was cut off or spelled otherwise; `text` is the answer as it came. `raw` is the request and the answer as they were,
    no keys.
    """

    text: str
    parsed: dict[str, Any] | None = None
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    applied: Mapping[str, Any] = field(default_factory=lambda: {})
    raw: Mapping[str, Any] | None = None


class Model(Protocol):
    """A language model; `name` is its name with its provider.

    A model may have an `identity` beside its name: see `identity_of`.
    """

    name: str

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request.

        Raises:
            ModelFault: there is no answer, or it does not match the schema.
            RateLimited: it asked to slow down, and kept asking.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


def identity_of(model: Model) -> str:
    """Return the unique identity of a model: its `identity`, or its name where it has none.

    Cached replies and fingerprints hold it. A name such as `azure:chat` does not tell where the model is, so its
    identity holds the address.
    """
    return known_identity(model) or model.name


def known_identity(model: Model) -> str | None:
    """Return the identity that a model states, None where it has only a name, which others may share."""
    identity: object = getattr(model, "identity", None)
    return identity if isinstance(identity, str) else None
