"""Messages and conversations: one native schema, the shape of the OpenAI chat wire, and the turns of a conversation.

Other spellings are read, never stored: `type: human | ai` and `ToolCall(name=…, args=…)` as Ragas writes them, flat
tool calls `{"id", "name", "arguments": {…}}`, and arguments given as an object. Keys we do not know are kept next to
the content, so what a provider sent comes back unchanged; a message whose words are under such a key alone is an error.

Source of the shape: the `messages` parameter and the content parts of OpenAI's chat completions reference.

A conversation of several sessions is one list of messages. Each message of a user has the mark of its session, as has
what is said in a session before its user says something; so a part of the conversation still says which one it is of.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from vivavoce import langchain_messages
from vivavoce.comparing.call_outcomes import CallOutcome, read_outcome, stated_outcome
from vivavoce.comparing.json_values import read_strict_json
from vivavoce.comparing.text import is_blank, join_text_parts
from vivavoce.errors import did_you_mean
from vivavoce.plugins import lazy
from vivavoce.validation import construct


class Wire(BaseModel):
    """A shape of the wire: immutable, keeps unknown keys, and dumps only what was given (`to_dict`)."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="constants")

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, as plain JSON types."""
        return self.model_dump(mode="json", exclude_unset=True)


class Typed(Wire):
    """A part that says its own type."""

    def model_post_init(self, context: Any, /) -> None:
        """Count the type as given, so that it is never left out of a dump."""
        self.__pydantic_fields_set__.add("type")


class ImageURL(Wire):
    """Where an image is: a web address or a `data:` URL."""

    url: str
    detail: str | None = None


class InputAudio(Wire):
    """Sound, base64-encoded."""

    data: str
    format: str


class FileReference(Wire):
    """A file by id, or base64-encoded in place."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class TextPart(Typed):
    """Text within a message of several parts."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Typed):
    """An image within a message."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageURL


class AudioPart(Typed):
    """Sound within a message."""

    type: Literal["input_audio"] = "input_audio"
    input_audio: InputAudio


class FilePart(Typed):
    """A file within a message."""

    type: Literal["file"] = "file"
    file: FileReference


class RefusalPart(Typed):
    """The words with which a model declined."""

    type: Literal["refusal"] = "refusal"
    refusal: str


ContentPart = Annotated[TextPart | ImagePart | AudioPart | FilePart | RefusalPart, Field(discriminator="type")]
Content = str | list[ContentPart]


class SessionMark(BaseModel, frozen=True):
    """A session by its number, which counts from 1 as people do, and the name of its user where there is one."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=1, strict=True)
    user: str | None = None

    @property
    def label(self) -> str:
        """What people read: `session 2 · ana`."""
        return f"session {self.number}" if self.user is None else f"session {self.number} · {self.user}"


MarkOrOther = Annotated[SessionMark | JsonValue, Field(union_mode="left_to_right")]
"""A mark, or what a message of somebody else has under that name."""


NOT_ON_THE_WIRE = ("timestamp", "metadata", "retrieval_context", "agent_tools", "handoff_to", "outcome")
"""The members of a message that are annotations of ours, which no endpoint takes."""


class FunctionCall(Wire):
    """The function that a model asks for; `arguments` is JSON text, as models write it."""

    name: str
    arguments: str = "{}"

    def model_post_init(self, context: Any, /) -> None:
        """Count the arguments as given, because endpoints want them."""
        self.__pydantic_fields_set__.add("arguments")


class ToolCall(Typed):
    """One call of a tool, asked for by an assistant message.

    Built from the wire shape, from `name=` and `args=` (a dict), or from a flat `name` and `arguments`. A call of a
    custom tool, which takes any text, is read as one whose only argument is `input`.
    """

    id: str | None = None
    type: Literal["function"] = "function"
    function: FunctionCall

    if TYPE_CHECKING:  # a real __init__ would run on every validation; this one only tells the spellings

        def __init__(
            self,
            *,
            id: str | None = None,  # noqa: A002
            function: FunctionCall | None = None,
            name: str | None = None,
            args: Mapping[str, Any] | None = None,
            **extra: Any,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _read_other_spellings(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        fields = dict(cast("Mapping[str, Any]", data))
        if isinstance(custom := fields.get("custom"), Mapping) and fields.get("type") == "custom":
            del fields["custom"]  # a tool of OpenAI that takes any text, as the item `custom_tool_call` has it
            called = cast("Mapping[str, Any]", custom)
            fields |= {"type": "function", "name": called.get("name"), "arguments": {"input": called.get("input")}}
        function = fields.get("function")
        if isinstance(function, Mapping):
            wire = cast("Mapping[str, Any]", function)
            fields["function"] = {**wire, "arguments": _json_text(wire.get("arguments"))}
        if "function" in fields or "name" not in fields:
            return fields
        arguments = fields.pop("args") if "args" in fields else fields.pop("arguments", None)
        if fields.get("type") in (None, "tool_call"):
            fields["type"] = "function"
        fields["function"] = {"name": fields.pop("name"), "arguments": _json_text(arguments)}
        return fields

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.name

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as a dict.

        Raises:
            ValueError: the model wrote something that is not a JSON object in strict JSON; an object with the same key
                twice does not say which value is meant.
        """
        value = read_strict_json(self.function.arguments or "{}")
        if not isinstance(value, dict):
            raise ValueError(f"arguments of {self.name} are not a JSON object: {self.function.arguments[:80]}")
        return cast("dict[str, Any]", value)


_CALL_KEYS = frozenset(("id", "type", "name", "index", "function", "custom"))
"""What an expected call may have besides its arguments; an id, a type, and an index come from recorded calls."""
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "input_parameters", "kwargs")
"""Names of the arguments of a call in other formats."""


def read_expected_call(value: object, *other_keys: str) -> object:
    """Return a call that a row expects, with its arguments under `arguments`, however its format names them.

    `other_keys` are those that it may have besides. Any other key would be dropped, and with it what it demands, so it
    is an error.

    Raises:
        ValueError: a key is unknown, the arguments are given twice, or they are not an object.
    """
    if isinstance(value, ToolCall):
        extra = {**(value.model_extra or {}), **(value.function.model_extra or {})}
        _check_call_keys(extra, _CALL_KEYS)
        _check_name(value.name)
        _check_arguments(value.function.arguments, "arguments")
        return value
    if not isinstance(value, Mapping):
        return value
    call = dict(cast("Mapping[str, object]", value))
    function = call.get("function")
    if isinstance(function, Mapping):
        inner = dict(cast("Mapping[str, object]", function))
        _check_call_keys(inner, {"name", *_ARGUMENT_KEYS})
        _check_call_keys(call, (_CALL_KEYS - {"name"}).union(other_keys))
        return {**call, "function": _with_arguments(inner)}
    _check_call_keys(call, {*_CALL_KEYS, *_ARGUMENT_KEYS, *other_keys})
    if call.get("type") in ("tool_use", "function_call", "tool_call"):
        call["type"] = "function"
    return _with_arguments(call)


def _check_call_keys(call: Mapping[str, object], known: Collection[str]) -> None:
    if unknown := [key for key in call if key not in known]:
        hint = did_you_mean(unknown[0], ("name", *known))
        raise ValueError(f"a tool call has no '{unknown[0]}'{hint} Write {{name: …, arguments: {{…}}}}")


def _with_arguments(call: Mapping[str, object]) -> dict[str, object]:
    """Return a call with its arguments under that name, which are an object or its JSON text."""
    keys = [key for key in _ARGUMENT_KEYS if key in call]
    if len(keys) > 1:
        raise ValueError(f"a tool call has its arguments twice, as '{keys[0]}' and as '{keys[1]}'")
    rest = {key: value for key, value in call.items() if key not in keys}
    _check_name(call.get("name"))
    if not keys:
        return rest
    arguments = call[keys[0]]
    if not (arguments is None or isinstance(arguments, str | Mapping)):
        got = type(arguments).__name__
        raise ValueError(f"{keys[0]} of a tool call is a {got}, not an object such as {{order: 1042}}")
    if isinstance(arguments, str):
        _check_arguments(arguments, keys[0])
    return {**rest, "arguments": {} if arguments is None else arguments}


def _check_name(name: object) -> None:
    if isinstance(name, str) and is_blank(name):
        raise ValueError("a tool call has an empty name; write the name of the tool")


def _check_arguments(text: str, key: str) -> None:
    """Check that a text is a JSON object; a call with other arguments would never be the one that is expected."""
    try:
        value = read_strict_json(text or "{}")
    except ValueError as error:
        raise ValueError(f"{key} of a tool call are not a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{key} of a tool call are not a JSON object: {text[:80]}")


def _read_expected(value: object) -> object:
    return read_expected_call(value)


ExpectedCall = Annotated[ToolCall, BeforeValidator(_read_expected)]
"""A call that a row expects."""


class Message(Wire):
    """One thing said or done; the roles are its subclasses. Of several sessions, `session` says which it is of."""

    role: str
    content: Content | None = None
    name: str | None = None
    timestamp: datetime | None = None
    metadata: dict[str, Any] | None = None
    retrieval_context: list[str | dict[str, Any]] | None = None
    session: MarkOrOther = None

    def model_post_init(self, context: Any, /) -> None:
        """Count the role as given, so that it is never left out of a dump."""
        self.__pydantic_fields_set__.add("role")

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, as plain JSON types."""
        words = self.plain
        return super().to_dict() if words is None else {"role": self.role, "content": words}

    @property
    def text(self) -> str:
        """The text of the message: its text parts, concatenated; empty without any."""
        if isinstance(self.content, str):
            return self.content
        if not self.content:
            return ""
        return join_text_parts(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def plain(self) -> str | None:
        """The words of a message that has nothing else, None for any other."""
        content = self.content
        return content if isinstance(content, str) and self.__pydantic_fields_set__ == _PLAIN else None

    @property
    def mark(self) -> SessionMark | None:
        """Its session, None where it says none."""
        return self.session if isinstance(self.session, SessionMark) else None

    def to_wire(self) -> dict[str, Any]:
        """Return what a chat completions endpoint accepts: our own annotations are left out."""
        fields = self.to_dict()
        if self.plain is not None:
            return fields
        return _without(fields, *NOT_ON_THE_WIRE, *(["session"] * (self.mark is not None)))

    def pretty_repr(self) -> str:
        """Return the message as one readable line or more."""
        return f"{_SPEAKERS[self.role]}: {self.text or _parts_note(self.content)}".rstrip()


class SystemMessage(Message):
    """What the system under test was told beforehand."""

    role: Literal["system", "developer"] = "system"  # pyright: ignore[reportIncompatibleVariableOverride]


class HumanMessage(Message):
    """What the user said."""

    role: Literal["user"] = "user"  # pyright: ignore[reportIncompatibleVariableOverride]


class AIMessage(Message):
    """What the system under test said, the tools it called, or both.

    Where several agents make up the system, `name` is the one that speaks, `agent_tools` are the names of the tools
    that it had, and `handoff_to` is the agent to whom it hands the conversation over with this message.
    """

    role: Literal["assistant"] = "assistant"  # pyright: ignore[reportIncompatibleVariableOverride]
    tool_calls: list[ToolCall] | None = None
    refusal: str | None = None
    agent_tools: list[str] | None = None
    handoff_to: str | None = None

    @property
    def words(self) -> str:
        """The message's text, or if it has none, the refusal that the provider marked as such."""
        text = self.text
        return text if text.strip() else self.marked_refusal or text

    @property
    def marked_refusal(self) -> str | None:
        """The text of a refusal that the provider marked as such, in its own field or in parts of the content."""
        if self.refusal or not isinstance(self.content, list):
            return self.refusal or None
        return join_text_parts(part.refusal for part in self.content if isinstance(part, RefusalPart)) or None

    def pretty_repr(self) -> str:
        """Return the words and, below them, each tool call."""
        lines = [super().pretty_repr()] if self.content or not self.tool_calls else []
        lines += [f"  → {call.name}({call.function.arguments})" for call in self.tool_calls or ()]
        return "\n".join(lines)


OutcomeOrOther = Annotated[CallOutcome | JsonValue, Field(union_mode="left_to_right")]
"""An outcome, or what a message stored by somebody else has under that name."""


class ToolMessage(Message):
    """What a tool returned; `tool_call_id` names the call it answers.

    `outcome` is `failed`, `refused` (the call was never made), or `succeeded`, where the source of the message states
    it. Messages of other formats may have a mark instead, such as `status: error`; `stated_outcome` reads both. Without
    either, the words of the result decide; `records.call_states` alone decides that.
    """

    role: Literal["tool"] = "tool"  # pyright: ignore[reportIncompatibleVariableOverride]
    tool_call_id: str | None = None
    outcome: OutcomeOrOther = None

    @property
    def stated_outcome(self) -> CallOutcome | None:
        """The outcome that the message states, in `outcome` or in a mark of another format; None if it states none."""
        if (outcome := read_outcome(self.outcome)) is not None:
            return outcome
        if not self.model_extra and not self.metadata:
            return None
        return stated_outcome({**(self.model_extra or {}), "metadata": self.metadata})


_PLAIN = {"role", "content"}
_SPEAKERS = {"system": "System", "developer": "System", "user": "Human", "assistant": "AI", "tool": "Tool"}
_KINDS: Mapping[str, type[Message]] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
    "tool": ToolMessage,
}


def _with_role(row: Any) -> Any:
    """Read `type: human` as `role: user`, and a message object of another library as the dict that it would be."""
    row = langchain_messages.as_row(row) or row
    if not isinstance(row, Mapping) or "role" in row or "type" not in row:
        return cast("Any", row)
    fields = dict(cast("Mapping[str, Any]", row))
    kind = fields.pop("type")
    return {"role": langchain_messages.ROLES.get(str(kind), kind), **fields}


def _read_rows(rows: Any, validated: ValidatorFunctionWrapHandler) -> list[Message]:
    """Return the messages of rows in any known spelling; only those that are more than role and text are validated."""
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return validated(rows)
    row_list: Sequence[Any] = rows  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    if row_list and are_plain(row_list):  # whether a list may be empty, its field says
        return [construct(_KINDS[row["role"]], {"role": row["role"], "content": row["content"]}) for row in row_list]
    return validated([_plain(row) or _with_role(row) for row in row_list])


def _plain(row: Any) -> Message | None:
    """Return the message of a row that is a role and a text, as nearly all are: there is nothing to validate."""
    if type(row) is not dict:
        return None
    fields: dict[Any, Any] = row  # pyright: ignore[reportUnknownVariableType]  # a cast is a call, made for each
    if len(fields) != 2:
        return None
    role, content = fields.get("role"), fields.get("content")
    if type(content) is not str or type(role) is not str or role not in _KINDS:
        return None
    return construct(_KINDS[role], {"role": role, "content": content})


def are_plain(rows: Sequence[Any]) -> bool:
    """Return whether rows are messages of a role and a text, as nearly all are."""
    for row in rows:
        if type(row) is not dict:
            return False
        fields: dict[Any, Any] = row  # pyright: ignore[reportUnknownVariableType]  # a cast is a call, made for each
        if fields.keys() != _PLAIN:
            return False
        role, content = fields["role"], fields["content"]
        if type(content) is not str or type(role) is not str or role not in _KINDS:
            return False
    return True


def said_by_user(text: str) -> HumanMessage:
    """Return a text as the user's message."""
    return cast("HumanMessage", _plain({"role": "user", "content": text})) or HumanMessage(content=text)


def said_by_assistant(text: str) -> AIMessage:
    """Return a text as a message of the system under test."""
    return cast("AIMessage", _plain({"role": "assistant", "content": text})) or AIMessage(content=text)


def _json_text(arguments: Any) -> str:
    """Write a tool's arguments as JSON text; text stays as it is, None means no arguments."""
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps({} if arguments is None else arguments, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the arguments cannot be written as JSON: {error}") from error


def _without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _parts_note(content: Content | None) -> str:
    if not content or isinstance(content, str):
        return ""
    return " ".join(f"[{part.type}]" for part in content)


AnyMessage = Annotated[SystemMessage | HumanMessage | AIMessage | ToolMessage, Field(discriminator="role")]
"""A message of any role, chosen by its role."""


def unread_text(message: Message) -> str | None:
    """Return the path of the text under an unknown key, where a message has neither content nor calls.

    An explicit null is content: it says that nothing was said.
    """
    if message.content is not None or not message.model_extra or "content" in message.model_fields_set:
        return None
    if isinstance(message, AIMessage) and (message.tool_calls or message.refusal):
        return None
    texts = [text_path for key, value in message.model_extra.items() for text_path in _texts(value, key)]
    return max(texts)[1] if texts else None


def _with_content(message: Message) -> Message:
    if key := unread_text(message):
        raise ValueError(
            f"has no 'content', and the text under {_short(key)} is not read; "
            "write it as 'content' (or write 'content': null, if the message is empty)"
        )
    if isinstance(message.session, dict) and "number" in message.session:
        raise ValueError('has an invalid session; expected {"number": 2, "user": "ana"}, numbered from 1')
    if isinstance(message, ToolMessage) and message.outcome is not None and read_outcome(message.outcome) is None:
        raise ValueError(f"has the unknown outcome {_short(message.outcome)}; write succeeded, failed, or refused")
    return message


def _texts(value: Any, path: str, depth: int = 4) -> Iterator[tuple[int, str]]:
    """Yield the length and the path of every text in what stands under an unknown key."""
    if isinstance(value, str):
        if value.strip():
            yield len(value), path
    elif isinstance(value, Mapping) and depth:
        for key, child in cast("Mapping[object, Any]", value).items():
            yield from _texts(child, f"{path}.{key}", depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for index, child in enumerate(cast("Sequence[Any]", value)):
            yield from _texts(child, f"{path}.{index}", depth - 1)


Messages = Annotated[list[Annotated[AnyMessage, AfterValidator(_with_content)]], WrapValidator(_read_rows)]
"""A list of messages in any known spelling."""

StoredMessages = Annotated[list[AnyMessage], WrapValidator(_read_rows)]
"""A list of messages of a record: what was accepted once can be read forever."""

_read: TypeAdapter[list[AnyMessage]] = TypeAdapter(Messages)
_stored: TypeAdapter[list[AnyMessage]] = TypeAdapter(list[AnyMessage], config={"ser_json_inf_nan": "constants"})


def read_messages(data: Iterable[Mapping[str, Any] | Message]) -> list[AnyMessage]:
    """Read messages in any known spelling.

    Raises:
        ValueError: a message is malformed; the text begins with its index.
    """
    try:
        return _read.validate_python(list(data))
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def read_message(data: Mapping[str, Any] | Message) -> AnyMessage:
    """Read one message in any known spelling."""
    plain: Any = _plain(data)
    return plain or read_messages([data])[0]


def plain_texts(messages: Iterable[Message]) -> list[str | None]:
    """Return what `plain` is for each message."""
    texts: list[str | None] = []
    for message in messages:
        content = message.content
        texts.append(content if isinstance(content, str) and message.__pydantic_fields_set__ == _PLAIN else None)
    return texts


def dump_messages(messages: Sequence[AnyMessage]) -> str:
    """Return messages as JSON text, holding just what was given; what JSON does not know is its `str`."""
    rows: list[dict[str, str]] = []
    for message, text in zip(messages, plain_texts(messages), strict=True):
        if text is not None:  # the same text, in half the time
            rows.append({"role": message.role, "content": text})
    try:
        if len(rows) == len(messages):
            return to_json(rows).decode()
        return _stored.dump_json(list(messages), exclude_unset=True).decode()
    except PydanticSerializationError:
        return json.dumps([one.model_dump(mode="json", exclude_unset=True, fallback=str) for one in messages])


def load_messages(text: str | bytes) -> list[AnyMessage]:
    """Read the JSON text of `dump_messages`."""
    return _stored.validate_python(json.loads(text))


def describe(error: ValidationError) -> str:
    """Say in one line what is wrong and where: `message 3 tool_calls.0.function: is missing`.

    Where a value may be of several types and fits none, the complaint of the type that it comes closest to is given.
    """
    located = [(_path(entry), entry) for entry in error.errors(include_url=False)]
    start = located[0][0]
    path, closest = max(
        (entry for entry in located if entry[0][: len(start)] == start), key=lambda entry: len(entry[0])
    )
    place = _place(path)
    return f"{place}: {_rule(closest)}" if place else _rule(closest)


_BRANCHES = {"str", "int", "float", "bool", "HumanMessage"}
_TAGS = {*_SPEAKERS, "text", "image_url", "input_audio", "file", "refusal"}
_CONVERSATIONS = ("messages", "user_input", "turns")


def _path(problem: ErrorDetails) -> tuple[int | str, ...]:
    """Where an error is, without the names of the types that were tried."""
    loc = problem["loc"]
    if problem["type"] == "extra_forbidden":
        return loc
    return tuple(
        part
        for before, part in zip((None, *loc), loc, strict=False)
        if isinstance(part, int)
        or not ("[" in part or part in _BRANCHES or (isinstance(before, int) and part in _TAGS))
    )


def _place(path: tuple[int | str, ...]) -> str:
    if len(path) > 1 and path[0] in _CONVERSATIONS:
        path = path[1:]
    if not path or isinstance(path[0], str):
        return ".".join(map(str, path))
    return " ".join([f"message {path[0]}", ".".join(map(str, path[1:]))]).rstrip()


def _rule(problem: ErrorDetails) -> str:
    match problem["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "unknown field"
        case "value_error":
            return problem["msg"].removeprefix("Value error, ")
        case "union_tag_invalid" | "union_tag_not_found":
            context = problem.get("ctx", {})
            got = f", got {_short(context['tag'])}" if "tag" in context else ""
            if context["discriminator"] == "'role'":
                return f"needs a role: system, user, assistant or tool{got}"
            return f"needs a type: {context.get('expected_tags', 'text, image_url, input_audio, file or refusal')}{got}"
        case _:
            rule = problem["msg"].removeprefix("Input ").replace(" or object to extract fields from", "")
            return f"{rule}, got {_short(problem['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class ConversationHistory(BaseModel):
    """The ordered messages of one conversation, with an id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    messages: Messages = Field(validation_alias=AliasChoices("messages", "turns"))
    conversation_id: str | None = None

    @property
    def turns(self) -> list[AnyMessage]:
        """The messages, under the name that older interfaces use; exchanges are in `split_turns`."""
        return self.messages

    def to_dict_list(self, *, include_metadata: bool = False) -> list[dict[str, Any]]:
        """Return the messages as plain dicts, each with a role and a content; null becomes the empty text.

        Tool calls stay; `include_metadata` keeps timestamps, metadata and retrieved contexts, too.
        """
        dicts = [message.to_dict() if include_metadata else message.to_wire() for message in self.messages]
        return [{**row, "role": row["role"], "content": row.get("content") or ""} for row in dicts]

    @classmethod
    def from_dict_list(cls, turns: Iterable[Mapping[str, Any] | Message]) -> ConversationHistory:
        """Read a conversation from dicts with `role` and `content`."""
        return cls(messages=read_messages(turns))

    def _repr_html_(self) -> str:
        """Return the conversation for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:conversation_html")(self))

    def pretty_repr(self) -> str:
        """Return the conversation as readable lines."""
        return pretty(self.messages)


def pretty(messages: Iterable[Message]) -> str:
    """Return messages as readable lines, one speaker after the other."""
    return "\n".join(message.pretty_repr() for message in messages)


def split_turns(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[list[AnyMessage]]]:
    """Split messages into what stands before the first user message, and the turns.

    A turn is a user message and everything up to the next user message; tool calls are steps inside it. The first turn
    of a later session also holds what was said there before its user said something.
    """
    opening: list[AnyMessage] = []
    turns: list[list[AnyMessage]] = []
    current: list[AnyMessage] = opening
    mark: SessionMark | None = None
    greeted = False
    for message in messages:
        message_mark = None if message.session is None else message.mark
        later = message_mark is not None and mark is not None and message_mark != mark
        mark = message_mark or mark
        is_user = message.role == "user"
        if later or (is_user and not greeted):
            current = []
            turns.append(current)
        greeted = not is_user and (later or greeted)
        current.append(message)
    return opening, turns


def mark_of(messages: Iterable[Message]) -> SessionMark | None:
    """Return the session of the messages of a turn, None where they say none."""
    for message in messages:
        if message.session is not None and (mark := message.mark):
            return mark
    return None


def windows(turns: Sequence[Sequence[AnyMessage]], size: int) -> Iterator[list[AnyMessage]]:
    """Yield, for each turn, the messages of that turn and of up to `size - 1` turns before it."""
    if size < 1:
        raise ValueError(f"a window needs at least 1 turn, got {size}")
    for end in range(1, len(turns) + 1):
        yield [message for turn in turns[max(0, end - size) : end] for message in turn]
