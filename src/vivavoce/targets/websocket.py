"""`WebSocketTarget`: a bot behind a WebSocket, with a connection for each conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vivavoce.errors import SuiteFault, TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.records.score import shorten
from vivavoce.settings import as_variables, environment_of, from_environment
from vivavoce.targets.target import FirstToken, Opening, Reply, read_reply
from vivavoce.targets.template import NotThere, address_template, header_lines, structure_template, value_at
from vivavoce.wire.chat import wire_messages
from vivavoce.wire.http import checked_url
from vivavoce.wire.own_traffic import add_marks
from vivavoce.wire.session import open_session

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse, WSMessage

VARIABLES = ("message", "messages", "conversation_id", "user", "session", "sample")
_NOTHING_YET: Mapping[str, Any] = {"session": None, "message": "", "messages": []}
"""The values of variables before the first message."""

_LARGEST = 10_000_000
"""Bytes of one frame."""


@dataclass(frozen=True, slots=True)
class Frames:
    """What the frames of a bot hold, as paths in their JSON.

    Attributes:
        reply: the reply: a text, a message or a list of messages; empty where a frame is the text of the reply.
        piece: a piece of the reply; pieces are joined.
        end: what stands where in the frame that ends the turn; without it the first reply is the turn.
        error: what is there only in a frame that says that the bot failed.
        session: the bot's id of the conversation.
    """

    reply: str = ""
    piece: str | None = None
    end: Mapping[str, Any] | None = None
    error: str | None = None
    session: str | None = None


class WebSocketTarget:
    """A bot that gets each message as a frame, and answers in one frame or in several.

    `url`, `message`, `first` and `headers` may hold the variables of `HttpTarget`, and `${NAME}` from the environment.
    `message` is the frame that is sent for each message, and `first` one that is sent after connecting; a structure is
    sent as JSON. `timeout` is in seconds, for one reply.

    Raises:
        UsageError: a template or the address is not valid, an environment variable is not set, or pieces lack an end.
    """

    stateless = False

    def __init__(
        self,
        name: str,
        url: str,
        *,
        message: object = "{{ message }}",
        first: object = None,
        frames: Frames = Frames(),
        headers: Mapping[str, str] | None = None,
        timeout: float = 300.0,
    ) -> None:
        self.name, self.frames, self.timeout = name, frames, timeout
        given = (message, first, headers)
        self.environment = {key: value for one in given for key, value in environment_of(one, name).items()}
        variables = (*VARIABLES, "environment") if self.environment else VARIABLES
        address = _checked(from_environment(url, f"{name}.url"), f"{name}.url")
        self.url = address_template(address, f"{name}.url", VARIABLES)
        self.message = structure_template(as_variables(message), f"{name}.message", variables)
        self.first = None if first is None else structure_template(as_variables(first), f"{name}.first", variables)
        self.headers = structure_template(as_variables(headers or {}), f"{name}.headers", variables)
        used = [self.url, self.message, self.headers, *([] if self.first is None else [self.first])]
        self.knows_users = any("user" in template.variables for template in used)
        if not self.message.variables & {"message", "messages"}:
            raise UsageError(f"{name}.message: it has no '{{{{ message }}}}' and no '{{{{ messages }}}}'")
        if frames.piece is not None and frames.end is None:
            raise UsageError(f"{name}.piece: needs end, the content of the frame after the last piece")

    async def open(self, opening: Opening) -> WebSocketSession:
        """Connect.

        Raises:
            TargetFault: the server cannot be reached; it may be tried again.
        """
        session = WebSocketSession(self, opening)
        await session.connect()
        return session

    async def close(self) -> None:
        """Do nothing: each conversation has its own connection."""


@dataclass(slots=True)
class _Turn:
    """What came of a turn so far."""

    token: FirstToken = field(default_factory=FirstToken)
    pieces: list[str] = field(default_factory=list[str])
    replies: list[object] = field(default_factory=list[object])


class WebSocketSession:
    """One connection."""

    opening: Sequence[AnyMessage] = ()

    def __init__(self, target: WebSocketTarget, opening: Opening) -> None:
        self._target = target
        self._client: ClientSession | None = None
        self._socket: ClientWebSocketResponse | None = None
        self._session: str | None = None
        self._values = {**opening.variables, "environment": target.environment}

    @property
    def id(self) -> str | None:
        """The bot's id of the conversation, once it gave one."""
        return self._session

    async def connect(self) -> None:
        """Open the connection.

        Raises:
            TargetFault: it cannot be opened.
        """
        from aiohttp import ClientError, WSServerHandshakeError

        target = self._target
        url = target.url.fill({**self._values, **_NOTHING_YET})
        headers = add_marks(header_lines(target.headers.fill({**self._values, **_NOTHING_YET}), target.headers.place))
        first = None if target.first is None else target.first.fill({**self._values, **_NOTHING_YET})
        self._client = open_session(1, is_websocket=True)
        try:
            async with asyncio.timeout(target.timeout):
                self._socket = await self._client.ws_connect(url, headers=headers, max_msg_size=_LARGEST)
                if first is not None:
                    await self._write(first)
        except WSServerHandshakeError as error:
            await self._client.close()
            raise TargetFault(f"{target.name} refused to connect: status {error.status}", kind="http") from error
        except (ClientError, OSError, TimeoutError, ValueError) as error:
            await self._client.close()
            said = f"{target.name} cannot be connected to: {error or type(error).__name__}"
            raise TargetFault(said, kind="connection", retryable=True) from error
        except BaseException:
            await self._client.close()
            raise

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send a frame and read frames until the turn has ended.

        Raises:
            SuiteFault: the template asks for something that the sample does not have.
            TargetFault: the bot failed, went away in the middle of its reply, or did not answer in time.
        """
        target, turn = self._target, _Turn()
        values = {**self._values, "session": self._session, "message": messages[-1].text}
        written = target.message.fill({**values, "messages": wire_messages(messages)})
        limit = asyncio.timeout(target.timeout)
        try:
            async with limit:
                await self._write(written)
                while not self._read(await self._next(turn), turn):
                    pass
        except TimeoutError as error:
            if not limit.expired():
                raise
            said = f"{target.name} did not end its reply within {target.timeout:g} s"
            raise TargetFault(said, kind="timeout", evidence=_so_far(turn)) from error
        except (ConnectionError, RuntimeError) as error:
            raise self._gone(turn, str(error)) from error
        reply = read_reply(_whole(turn), target.name)
        return Reply(turn.token.noted_in(reply.messages), reply.usage)

    async def state(self) -> dict[str, Any] | None:
        """Return None: a connection shows no state."""
        return None

    async def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            await self._socket.close()
        if self._client is not None:
            await self._client.close()

    async def _write(self, frame: object) -> None:
        assert self._socket is not None
        try:
            text = frame if isinstance(frame, str) else json.dumps(frame)
        except (TypeError, ValueError) as error:
            raise SuiteFault(
                f"{self._target.message.place}: cannot be sent as JSON: {error}", kind="template"
            ) from error
        await self._socket.send_str(text)

    async def _next(self, turn: _Turn) -> str:
        """Return the text of the next frame."""
        assert self._socket is not None
        frame: WSMessage = await self._socket.receive()
        data: object = frame.data
        if isinstance(data, str) and not frame.type.name.startswith("CLOS"):
            return data
        if isinstance(data, bytes | bytearray):
            return bytes(data).decode("utf-8", "replace")
        code = self._socket.close_code
        raise self._gone(turn, f"it closed the connection{'' if code is None else f' with code {code}'}")

    def _gone(self, turn: _Turn, why: str) -> TargetFault:
        where = "in the middle of its reply" if turn.pieces or turn.replies else "before its reply"
        return TargetFault(
            f"{self._target.name} disconnected {where}: {why}", kind="connection", evidence=_so_far(turn)
        )

    def _read(self, text: str, turn: _Turn) -> bool:
        """Take what a frame holds, and return whether the turn has ended."""
        frames = self._target.frames
        if not frames.reply and frames.piece is None and frames.end is None and frames.error is None:
            turn.replies.append(text)
            return True
        payload = self._json(text)
        if (failed := _found(payload, frames.error)) is not None:
            raise TargetFault(f"{self._target.name} failed: {shorten(_text(failed), 500)}", evidence=shorten(text))
        if (session := _found(payload, frames.session)) is not None:
            self._session = str(session)
        if (piece := _found(payload, frames.piece)) is not None:
            turn.token.note_piece()
            turn.pieces.append(_text(piece))
        reply = _found(payload, frames.reply or None)
        if reply is not None:
            turn.replies.append(reply)
        if frames.end is None:
            return reply is not None
        return all(_found(payload, path) == value for path, value in frames.end.items())

    def _json(self, text: str) -> object:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            said = f"{self._target.name} sent a frame that is not JSON"
            raise TargetFault(said, kind="format", evidence=shorten(text)) from error


def _found(payload: object, path: str | None) -> object:
    """Return what stands at a path of a frame, None where nothing does."""
    if path is None:
        return None
    try:
        return value_at(payload, path)
    except NotThere:
        return None


def _whole(turn: _Turn) -> object:
    """Return the reply of a turn: its replies, or else its pieces together."""
    if not turn.replies:
        return "".join(turn.pieces)
    if len(turn.replies) == 1:
        return turn.replies[0]
    rows: list[object] = []
    for reply in turn.replies:
        said = {"role": "assistant", "content": reply} if isinstance(reply, str) else reply
        rows += said if isinstance(said, list) else [said]
    return rows


def _so_far(turn: _Turn) -> str | None:
    said = "".join(turn.pieces) or "\n".join(map(_text, turn.replies))
    return shorten(said) or None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _checked(url: str, place: str) -> str:
    if not url.startswith(("ws://", "wss://")):
        raise UsageError(f"{place}: '{url}' is not an address such as wss://bot.example/talk")
    checked_url("http" + url[2:], place)
    return url
