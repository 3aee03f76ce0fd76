"""`HttpTarget`: any bot with an HTTP interface, described by a request template and the path of the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vivavoce.errors import SuiteFault, TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.records.score import shorten
from vivavoce.settings import as_variables, environment_of, from_environment
from vivavoce.targets.target import Opening, Reply, read_reply
from vivavoce.targets.template import (
    NotThere,
    address_template,
    header_lines,
    is_object,
    shape_of,
    structure_template,
    value_at,
)
from vivavoce.wire.chat import wire_messages
from vivavoce.wire.http import Answer, Client, Limits, checked_url
from vivavoce.wire.own_traffic import add_marks

VARIABLES = ("message", "messages", "conversation_id", "user", "session", "sample")
COOKIE = "cookie"
"""The value of `session` that means: send the cookies back."""
WHOLE = "$"
"""The value of `reply` that means: the answer as it is, as text, also where it is JSON."""

_MISSING = object()


class HttpTarget:
    """A bot that is asked by one HTTP request a turn.

    `url`, `body` and `headers` may hold `{{ message }}`, `{{ messages }}` (the conversation as wire messages),
    `{{ conversation_id }}`, `{{ user }}` (an id that stays the same in all sessions of a user), `{{ session }}` (null
    in the first turn) and `{{ sample.extra_vars.x }}`, also `sample.agent_args` and `sample.id`; also `${NAME}` from
    the environment. `body` is sent as JSON.
    `reply` is the path of the reply in the answer, such as `choices.0.message.content`, leading to a text, a wire
    message or a list of those; empty when the answer is the text, and `$` where that text may be a JSON object.
    `session` is the path of an id in the answer that later turns send back, or `cookie`.

    A target is stateless when its requests hold the whole conversation and name no session; only then is a request
    resent if its answer is lost.

    Raises:
        UsageError: a template is not valid, or an environment variable is not set.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        body: object = None,
        reply: str = "",
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        session: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self.method = method.upper()
        self.reply_path = reply
        self.session_path = session
        self.environment = environment_of(body, f"{name}.body") | environment_of(headers, f"{name}.headers")
        address = from_environment(url, f"{name}.url")
        self.url = address_template(checked_url(address, f"{name}.url"), f"{name}.url", VARIABLES)
        variables = (*VARIABLES, "environment") if self.environment else VARIABLES
        self.body = structure_template(as_variables(body), f"{name}.body", variables)
        self.headers = structure_template(
            _header_sources(headers or {}, has_body=body is not None), f"{name}.headers", variables
        )
        self.has_body = body is not None
        self.knows_users = "user" in self._used
        self.stateless = self._is_stateless()
        self._client = Client(limits, [*self.environment.values(), *environment_of(url, f"{name}.url").values()])

    async def open(self, opening: Opening) -> HttpSession:
        """Begin a conversation."""
        return HttpSession(self, opening)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, values: Mapping[str, Any], cookies: Mapping[str, str]) -> Answer:
        """Send the request that these values make."""
        url = self.url.fill(values)
        values = {**values, "environment": self.environment}
        data = _encoded(self.body.fill(values), self.body.place) if self.has_body else None
        filled = self.headers.fill(values)
        headers = add_marks(header_lines(filled, self.headers.place))
        if cookies:
            headers["Cookie"] = _cookie_header(cookies)
        return await self._client.request(self.method, url, data, headers, repeatable=self.stateless)

    @property
    def _used(self) -> frozenset[str]:
        return self.url.variables | self.body.variables | self.headers.variables

    def _is_stateless(self) -> bool:
        used = self._used
        if not used & {"message", "messages"}:
            raise UsageError(
                f"{self.name}: neither url, body nor headers say '{{{{ message }}}}' or '{{{{ messages }}}}'"
            )
        return "messages" in used and self.session_path is None and not used & {"session", "conversation_id", "user"}


class HttpSession:
    """One conversation over HTTP, with the session id or the cookies that the server gave it."""

    opening: Sequence[AnyMessage] = ()

    def __init__(self, target: HttpTarget, opening: Opening) -> None:
        self._target = target
        self._values = opening.variables
        self._session: object = None
        self._cookies: dict[str, str] = {}

    @property
    def id(self) -> str | None:
        """The server's id of this conversation, once it gave one."""
        return None if self._session is None else str(self._session)

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send one turn and read the reply out of the answer.

        Raises:
            SuiteFault: the templates ask for something that the sample does not have.
            TargetFault: the server failed, or its answer has nothing at the path of the reply.
        """
        target = self._target
        values = {**self._values, "session": self._session, "message": messages[-1].text}
        values["messages"] = wire_messages(messages)
        answer = await target.ask(values, self._cookies)
        self._remember(answer)
        reply = _reply(answer, target.reply_path)
        try:
            return read_reply(reply, f"{target.name} ({answer.source})")
        except TargetFault as fault:
            raise fault.restate(str(fault), evidence=shorten(answer.text)) from fault.__cause__

    async def state(self) -> dict[str, Any] | None:
        """Return None: HTTP shows no state of the bot."""
        return None

    async def close(self) -> None:
        """Do nothing: the server ends sessions by itself."""

    def _remember(self, answer: Answer) -> None:
        """Keep the session id or the cookies; an answer may leave the id out once it was given."""
        path = self._target.session_path
        if path == COOKIE:
            self._cookies.update(answer.cookies)
            self._session = _cookie_header(self._cookies) or None
        elif path:
            default = _MISSING if self._session is None else self._session
            self._session = _find(answer.json(), path, answer, "session", default)


def _reply(answer: Answer, path: str) -> object:
    """Return the value at the path of the reply: a text, or messages as JSON."""
    if path in ("", WHOLE):
        return answer.text if path else _text(answer)
    value = _find(answer.json(), path, answer, "reply")
    if is_object(value) and not {"role", "type"} & value.keys():
        raise answer.malformed_fault(f"has {shape_of(value)} at reply '{path}'; give the path of the text in it")
    return value


def _text(answer: Answer) -> str:
    """Return the answer as text; an object is an error, since only a part of it can be the reply."""
    try:
        whole: object = json.loads(answer.body)
    except (ValueError, RecursionError):
        return answer.text
    if is_object(whole):
        raise answer.malformed_fault(f"is {shape_of(whole)}; set reply: to the path of the reply")
    return answer.text


def _find(payload: Any, path: str, answer: Answer, what: str, default: object = _MISSING) -> object:
    try:
        return value_at(payload, path)
    except NotThere as error:
        if default is not _MISSING:
            return default
        raise answer.malformed_fault(f"has nothing at {what} '{path}': {error}") from error


def _header_sources(headers: Mapping[str, str], *, has_body: bool) -> dict[str, str]:
    """Return the templates of the headers, with the type of the body where none is given."""
    sources: dict[str, str] = as_variables(headers)
    if has_body and not any(key.lower() == "content-type" for key in sources):
        sources["Content-Type"] = "application/json"
    return sources


def _encoded(body: object, place: str) -> bytes:
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError) as error:
        raise SuiteFault(f"{place}: cannot be sent as JSON: {error}", kind="template") from error


def _cookie_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
