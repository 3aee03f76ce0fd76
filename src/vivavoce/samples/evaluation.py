"""`SingleTurnSample` and `MultiTurnSample`: one row of an evaluation dataset, with the fields Ragas uses.

Source of the fields: https://docs.ragas.io/en/stable/concepts/components/eval_sample/
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Annotated, Any, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from vivavoce.conversation import pretty
from vivavoce.messages import AIMessage, AnyMessage, Messages, ToolCall, ToolMessage

Rubrics = Annotated[dict[str, str] | None, Field(validation_alias=AliasChoices("rubrics", "rubric"))]


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


DocumentId = Annotated[int | str, BeforeValidator(_whole_number)]


class _Sample(BaseModel):
    """The common part of both kinds: immutable, no unknown fields, readable."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="constants")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that were given, as plain JSON types."""
        return self.model_dump(mode="json", exclude_unset=True)

    def get_features(self) -> list[str]:
        """Return the names of the fields that hold something."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    def to_string(self) -> str:
        """Return the fields that hold something as text, each below its name, laid out as Ragas does."""
        fields = self.to_dict()
        return "".join(f"\n{name}:\n\t{fields[name]}\n" for name in self.get_features())

    def pretty_repr(self) -> str:
        """Return the sample as readable text."""
        rows = ((name, getattr(self, name)) for name in self.get_features())
        return "\n".join(f"{name}: {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        """Show the sample in a notebook; every text is escaped."""
        return f"<pre style='white-space:pre-wrap'>{escape(self.pretty_repr())}</pre>"


class SingleTurnSample(_Sample):
    """One question, one answer, and what is known about the right one."""

    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    reference_contexts: list[str] | None = None
    retrieved_context_ids: list[DocumentId] | None = None
    reference_context_ids: list[DocumentId] | None = None
    response: str | None = None
    multi_responses: list[str] | None = None
    reference: str | None = None
    rubrics: Rubrics = None
    persona_name: str | None = None
    query_style: str | None = None
    query_length: str | None = None

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if not self.get_features():
            raise ValueError("a sample with no field says nothing; give at least user_input")
        return self


class MultiTurnSample(_Sample):
    """A conversation between a person, an assistant and its tools, and what is known about the right outcome.

    Raises:
        ValidationError: a message is empty or out of place; the text names the message's index, counted from 0.
    """

    user_input: Messages
    reference: str | None = None
    reference_tool_calls: list[ToolCall] | None = None
    rubrics: Rubrics = None
    reference_topics: list[str] | None = None

    @field_validator("user_input")
    @classmethod
    def _in_order(cls, messages: list[AnyMessage]) -> list[AnyMessage]:
        check_order(messages)
        return messages

    def to_messages(self) -> list[dict[str, Any]]:
        """Return the conversation as plain dicts in the wire shape."""
        return [message.to_dict() for message in self.user_input]

    def pretty_repr(self) -> str:
        """Return the conversation as readable lines, then what is known about it."""
        rest = [f"{name}: {getattr(self, name)}" for name in self.get_features() if name != "user_input"]
        return "\n".join([pretty(self.user_input), *(["---", *rest] if rest else [])])


def check_order(messages: Sequence[AnyMessage]) -> None:
    """Check that a conversation is possible: nothing empty, every tool message answers a call.

    A tool may return nothing; a person or an assistant who says nothing and calls nothing is an error. Ids are matched
    where both sides give one; without ids, as many results may follow as calls are open.

    Raises:
        ValueError: the text names the index of the message, counted from 0.
    """
    if not messages:
        raise ValueError("a conversation needs at least one message")
    open_calls: list[ToolCall] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _answer(open_calls, message, index)
            continue
        if _is_empty(message):
            raise ValueError(f"message {index} ({message.role}) is empty: it has no content{_or_call(message)}")
        open_calls = list(message.tool_calls or ()) if isinstance(message, AIMessage) else []


def _answer(open_calls: list[ToolCall], message: ToolMessage, index: int) -> None:
    if not open_calls:
        raise ValueError(f"message {index} (tool) must follow an assistant message with a tool call still unanswered")
    call_id = message.tool_call_id
    if call_id is None or all(call.id is None for call in open_calls):
        open_calls.pop(0)
        return
    match = next((call for call in open_calls if call.id == call_id), None)
    if match is None:
        ids = ", ".join(str(call.id) for call in open_calls)
        raise ValueError(f"message {index} (tool) answers call '{call_id}', but the open calls are: {ids}")
    open_calls.remove(match)


def _is_empty(message: AnyMessage) -> bool:
    if isinstance(message, AIMessage) and (message.tool_calls or message.refusal or message.model_extra):
        return False
    return not (message.content.strip() if isinstance(message.content, str) else message.content)


def _or_call(message: AnyMessage) -> str:
    return " and no tool call" if isinstance(message, AIMessage) else ""
